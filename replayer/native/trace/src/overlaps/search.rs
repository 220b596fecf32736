//! Searches for an order of calls in which each result is possible.
//!
//! A linearisation in the sense of Herlihy and Wing (1990): calls of one task keep their order, and so do calls of which one had returned
//! before the other was entered. The search goes down the heads of all tasks, and looks at no state twice (Wing and Gong 1993, Lowe 2017).
//! States are small: of a few names each, whether it is there.

use crate::overlaps::{Before, Effect, Proof, Touch};
use crate::paths::{PathId, Paths};
use rustc_hash::{FxHashMap, FxHashSet};

/// States that a search looks at (chosen: a group of a hundred calls has some hundred).
const MOST_STATES: usize = 50_000;

/// Return the places of the calls in an order that allows every result, as near to that of their returns as is found first. None where there
/// is no such order, or it would take too long to find.
pub(super) fn find_order(touches: &[Touch], paths: &Paths) -> Option<Vec<usize>> {
    let names = Names::of(touches, paths);
    let heads = Heads::of(touches);
    let mut seen = FxHashSet::default();
    let begin = Step {
        next: vec![0; heads.lanes.len()],
        state: names.first.clone(),
        choices: Vec::new(),
    };
    let mut way = vec![begin.opened(&heads)];
    let mut order: Vec<usize> = Vec::new();
    while let Some(step) = way.last_mut() {
        if order.len() == touches.len() {
            return Some(order);
        }
        let Some(lane) = step.choices.pop() else {
            way.pop();
            order.pop();
            continue;
        };
        let head = heads.head(lane, &step.next);
        let Some((at, touch)) = head.and_then(|at| Some((at, touches.get(at)?))) else {
            continue;
        };
        let mut state = step.state.clone();
        let Some(is_certain) = names.take(touch, &mut state) else {
            continue;
        };
        if is_certain && touch.does.iter().all(Option::is_none) {
            // It changes nothing, and later it might not be possible: no other choice is better.
            step.choices.clear();
        }
        let mut next = step.next.clone();
        if let Some(count) = next.get_mut(lane) {
            *count += 1;
        }
        if seen.len() >= MOST_STATES {
            return None;
        }
        if seen.insert((next.clone(), state.clone())) {
            let step = Step {
                next,
                state,
                choices: Vec::new(),
            };
            way.push(step.opened(&heads));
            order.push(at);
        }
    }
    None
}

/// How far the calls of each task have been taken, what is so then, and who may be next.
struct Step {
    next: Vec<usize>,
    state: State,
    /// Tasks, the one to be tried first last.
    choices: Vec<usize>,
}

impl Step {
    /// Whoever was entered before any other one that is left had returned may be next.
    fn opened(mut self, heads: &Heads) -> Self {
        let lanes = 0..heads.lanes.len();
        let left = lanes.filter_map(|lane| Some((lane, heads.span(lane, &self.next)?)));
        let left: Vec<_> = left.collect();
        let mut returns: Vec<u64> = left.iter().map(|(_, span)| span.1).collect();
        returns.sort_unstable();
        let first = returns.first().copied().unwrap_or(u64::MAX);
        let mut choices: Vec<_> = (left.into_iter())
            .filter(|(_, span)| span.0 <= first)
            .collect();
        choices.sort_unstable_by_key(|(_, span)| std::cmp::Reverse(span.1));
        self.choices = choices.into_iter().map(|(lane, _)| lane).collect();
        self
    }
}

/// The calls of each task, in their order.
struct Heads {
    lanes: Vec<Vec<(usize, (u64, u64))>>,
}

impl Heads {
    fn of(touches: &[Touch]) -> Self {
        let mut by_task: FxHashMap<u64, usize> = FxHashMap::default();
        let mut lanes: Vec<Vec<(usize, (u64, u64))>> = Vec::new();
        for (at, touch) in touches.iter().enumerate() {
            let lane = *by_task.entry(touch.task).or_insert(lanes.len());
            if lane == lanes.len() {
                lanes.push(Vec::new());
            }
            if let Some(lane) = lanes.get_mut(lane) {
                lane.push((at, touch.span));
            }
        }
        Self { lanes }
    }

    fn head(&self, lane: usize, next: &[usize]) -> Option<usize> {
        Some(self.entry(lane, next)?.0)
    }

    fn span(&self, lane: usize, next: &[usize]) -> Option<(u64, u64)> {
        Some(self.entry(lane, next)?.1)
    }

    fn entry(&self, lane: usize, next: &[usize]) -> Option<(usize, (u64, u64))> {
        self.lanes.get(lane)?.get(*next.get(lane)?).copied()
    }
}

/// Whether a name is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Is {
    Unknown,
    There,
    Missing,
}

type State = Vec<Is>;

/// The names that calls are about, by number, and how they lie.
struct Names {
    numbers: FxHashMap<PathId, usize>,
    lies: Vec<Lies>,
    /// What is so before all calls.
    first: State,
}

/// Which other names lie around one.
#[derive(Debug, Default)]
struct Lies {
    above: Vec<usize>,
    below: Vec<usize>,
    entries: Vec<usize>,
    /// It may have other entries, which no call here is about.
    has_others: bool,
}

impl Names {
    fn of(touches: &[Touch], paths: &Paths) -> Self {
        let named = touches.iter().flat_map(Touch::named);
        let mut all: Vec<PathId> = named.map(|(path, _)| path).collect();
        all.sort_unstable();
        all.dedup();
        let such = |is_so: &dyn Fn(PathId) -> bool| -> Vec<usize> {
            let each = all.iter().enumerate().filter(|(_, path)| is_so(**path));
            each.map(|(number, _)| number).collect()
        };
        let around = |&path: &PathId| Lies {
            above: such(&|other| other != path && paths.is_at_or_below(path, other)),
            below: such(&|other| other != path && paths.is_at_or_below(other, path)),
            entries: such(&|other| other != path && paths.parent(other) == path),
            has_others: true,
        };
        let mut names = Self {
            lies: all.iter().map(around).collect(),
            first: vec![Is::Unknown; all.len()],
            numbers: all.into_iter().zip(0..).collect(),
        };
        names.remember(touches);
        names
    }

    /// What was known before the calls, from the one of each name that was taken first.
    fn remember(&mut self, touches: &[Touch]) {
        let mut taken: Vec<&Touch> = touches.iter().collect();
        taken.sort_unstable_by_key(|touch| touch.turn);
        let mut told = vec![false; self.first.len()];
        for touch in taken {
            for (path, before) in touch.named() {
                let Some(number) = self.numbers.get(&path).copied() else {
                    continue;
                };
                match before {
                    Before::Entries(count) => {
                        if let Some(lies) = self.lies.get_mut(number) {
                            lies.has_others &= count != Some(0);
                        }
                    }
                    Before::Name(before) => {
                        let is_told = told
                            .get_mut(number)
                            .map(|told| std::mem::replace(told, true));
                        if is_told == Some(false) {
                            put(&mut self.first, number, before.into());
                        }
                    }
                }
            }
            // Of what lies below a name that changed, the state before is not known.
            for effect in touch.effects() {
                for &number in self
                    .lies_around(effect.path())
                    .into_iter()
                    .flat_map(|lies| &lies.below)
                {
                    told.get_mut(number)
                        .into_iter()
                        .for_each(|told| *told = true);
                }
            }
        }
    }

    fn lies_around(&self, path: Option<PathId>) -> Option<&Lies> {
        self.lies.get(*self.numbers.get(&path?)?)
    }

    /// Take a call. None where its result cannot be so; else whether it is known to be so.
    fn take(&self, touch: &Touch, state: &mut State) -> Option<bool> {
        let mut is_certain = true;
        for need in touch.proofs() {
            is_certain &= self.is_so(need, state)?;
        }
        let mut moves = false;
        for effect in touch.effects() {
            if let Effect::Removes(path) = effect {
                moves = true;
                self.numbers
                    .get(&path)
                    .into_iter()
                    .for_each(|&number| put(state, number, Is::Missing));
            }
        }
        for effect in touch.effects() {
            if let (Effect::Makes(path), Some(lies)) = (effect, self.lies_around(effect.path())) {
                let was_missing = self.look(state, path) == Is::Missing;
                self.set_there(state, path);
                // What was moved brings along what lies below it; what was made is empty.
                for &number in lies.below.iter().filter(|_| moves || was_missing) {
                    put(state, number, if moves { Is::Unknown } else { Is::Missing });
                }
            }
        }
        Some(is_certain)
    }

    /// Whether a proof is known to hold; None where it cannot. What is not known is so from then on.
    fn is_so(&self, need: Proof, state: &mut State) -> Option<bool> {
        let path = need.path()?;
        let number = self.numbers.get(&path).copied()?;
        let entries = || {
            self.lies
                .get(number)
                .into_iter()
                .flat_map(|lies| &lies.entries)
        };
        let is_there = |state: &State, number: usize| state.get(number) == Some(&Is::There);
        match (need, self.look(state, path)) {
            (Proof::There(_), Is::Missing) | (Proof::Missing(_), Is::There) => None,
            (Proof::There(_), Is::There) | (Proof::Missing(_), Is::Missing) => Some(true),
            (Proof::There(_), Is::Unknown) => {
                self.set_there(state, path);
                Some(false)
            }
            (Proof::Missing(_), Is::Unknown) => {
                put(state, number, Is::Missing);
                Some(false)
            }
            (Proof::Empty(_), _) => {
                let is_empty = !entries().any(|&entry| is_there(state, entry));
                entries().for_each(|&entry| put(state, entry, Is::Missing));
                is_empty.then_some(true)
            }
            (Proof::Filled(_), _) => {
                let has_others = self.lies.get(number).is_some_and(|lies| lies.has_others);
                let mut each = entries();
                (has_others || each.any(|&entry| state.get(entry) != Some(&Is::Missing)))
                    .then_some(true)
            }
            (Proof::Long(..), _) => Some(true),
        }
    }

    fn look(&self, state: &State, path: PathId) -> Is {
        let Some(lies) = self.lies_around(Some(path)) else {
            return Is::Unknown;
        };
        let is_missing = |number: &usize| state.get(*number) == Some(&Is::Missing);
        if lies.above.iter().any(is_missing) {
            return Is::Missing;
        }
        let number = self
            .numbers
            .get(&path)
            .and_then(|&number| state.get(number));
        number.copied().unwrap_or(Is::Unknown)
    }

    /// A name is there, and so are the directories that it lies in.
    fn set_there(&self, state: &mut State, path: PathId) {
        let above = self
            .lies_around(Some(path))
            .into_iter()
            .flat_map(|lies| &lies.above);
        for &number in above.chain(self.numbers.get(&path)) {
            put(state, number, Is::There);
        }
    }
}

impl From<Option<bool>> for Is {
    fn from(known: Option<bool>) -> Self {
        match known {
            Some(true) => Self::There,
            Some(false) => Self::Missing,
            None => Self::Unknown,
        }
    }
}

fn put(state: &mut State, number: usize, is: Is) {
    if let Some(place) = state.get_mut(number) {
        *place = is;
    }
}
