//! Searches for an order of calls in which each result is possible.
//!
//! A linearisation in the sense of Herlihy and Wing (1990): calls of one task keep their order, and so do calls of which one had returned
//! before the other was entered. The search goes down the heads of all tasks, and looks at no state twice (Wing and Gong 1993, Lowe 2017).
//! States are small: of a few names each, whether it is there.

use crate::overlaps::{Before, Effect, MOST_EFFORT, Proof, STATE_EFFORT, Touch};
use crate::paths::{PathId, Paths};
use rustc_hash::{FxHashMap, FxHashSet};

/// States that a search looks at (chosen: a group of a hundred calls has some hundred).
const MOST_STATES: usize = 50_000;

/// Return the places of the calls in an order that allows every result, as near to that of their returns as is found first. None where there
/// is no such order, or it would take too long to find.
pub(super) fn find_order(touches: &[Touch], paths: &Paths, effort: &mut u64) -> Option<Vec<usize>> {
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
        *effort += STATE_EFFORT;
        if seen.len() >= MOST_STATES || *effort >= MOST_EFFORT {
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
#[derive(Debug)]
struct Lies {
    above: Vec<usize>,
    below: Vec<usize>,
    entries: Vec<usize>,
    /// It has other entries, which no call here is about.
    others: Is,
}

impl Names {
    fn of(touches: &[Touch], paths: &Paths) -> Self {
        let paths_of = touches.iter().flat_map(Touch::named);
        let mut all: Vec<PathId> = paths_of.map(|(path, _)| path).collect();
        all.sort_unstable();
        all.dedup();
        let numbers = |is_so: &dyn Fn(PathId) -> bool| -> Vec<usize> {
            let each = all.iter().enumerate().filter(|(_, path)| is_so(**path));
            each.map(|(number, _)| number).collect()
        };
        let around = |&path: &PathId| Lies {
            above: numbers(&|other| other != path && paths.is_at_or_below(path, other)),
            below: numbers(&|other| other != path && paths.is_at_or_below(other, path)),
            entries: numbers(&|other| other != path && paths.parent(other) == path),
            others: Is::Unknown,
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
        for touch in &taken {
            for (path, before) in touch.named() {
                if let (Before::Name(before), Some(&number)) = (before, self.numbers.get(&path))
                    && let Some(told) = told.get_mut(number).filter(|told| !**told)
                {
                    *told = true;
                    put(&mut self.first, number, before.into());
                }
            }
            // Of what lies below a name that changed, the state before is not known.
            for effect in touch.effects() {
                let lies = self.lies_around(effect.path());
                for &number in lies.into_iter().flat_map(|lies| &lies.below) {
                    put(&mut told, number, true);
                }
            }
        }
        self.count_others(&taken);
    }

    /// Whether directories have other entries than those that calls are about, and what follows for these where they have not.
    fn count_others(&mut self, taken: &[&Touch]) {
        let mut state = self.first.clone();
        for touch in taken {
            for (path, before) in touch.named() {
                if let (Before::Entries(Some(count)), Some(&number)) =
                    (before, self.numbers.get(&path))
                {
                    self.count_others_of(number, count, &mut state);
                }
            }
            // The import has believed each result, whether it could be so or not.
            for need in touch.proofs() {
                match need {
                    Proof::There(path) => self.set_there(&mut state, path),
                    Proof::Missing(path) => self.set(&mut state, path, Is::Missing),
                    _ => {}
                }
            }
            self.apply(touch, &mut state);
        }
    }

    fn count_others_of(&mut self, directory: usize, count: i64, state: &mut State) {
        let Some(lies) = self.lies.get_mut(directory) else {
            return;
        };
        let such = |what| -> Vec<usize> {
            let entries = lies.entries.iter().copied();
            entries.filter(|&entry| is(state, entry, what)).collect()
        };
        let count = usize::try_from(count).unwrap_or(0);
        let (there, unknown) = (such(Is::There).len(), such(Is::Unknown));
        if count > there + unknown.len() {
            lies.others = Is::There;
        } else if count <= there {
            lies.others = Is::Missing;
            for entry in unknown {
                put(&mut self.first, entry, Is::Missing);
                put(state, entry, Is::Missing);
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
        self.apply(touch, state);
        Some(is_certain)
    }

    /// What a call does, if it did anything.
    fn apply(&self, touch: &Touch, state: &mut State) {
        let mut moves = false;
        for effect in touch.effects() {
            if let Effect::Removes(path) = effect {
                moves = true;
                self.set(state, path, Is::Missing);
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
    }

    /// Whether a proof is known to hold; None where it cannot. What is not known is so from then on.
    fn is_so(&self, need: Proof, state: &mut State) -> Option<bool> {
        match need {
            Proof::There(path) => match self.look(state, path) {
                Is::Missing => return None,
                Is::There => {}
                Is::Unknown => {
                    self.set_there(state, path);
                    return Some(false);
                }
            },
            Proof::Missing(path) => return self.is_missing(path, state),
            Proof::EitherMissing(one, other) => {
                let sure = [one, other].map(|path| self.look(state, path) == Is::Missing);
                if !sure.contains(&true) {
                    return self
                        .is_missing(one, state)
                        .or_else(|| self.is_missing(other, state));
                }
            }
            Proof::Empty(path) => {
                let lies = self.lies_around(Some(path))?;
                let mut entries = lies.entries.iter();
                if lies.others == Is::There || entries.any(|&entry| is(state, entry, Is::There)) {
                    return None;
                }
                lies.entries
                    .iter()
                    .for_each(|&entry| put(state, entry, Is::Missing));
            }
            Proof::Filled(path) => {
                let lies = self.lies_around(Some(path))?;
                let mut entries = lies.entries.iter();
                let has_some = entries.any(|&entry| !is(state, entry, Is::Missing));
                return (lies.others != Is::Missing || has_some).then_some(true);
            }
            Proof::Count(..) | Proof::Long(..) => {}
        }
        Some(true)
    }

    fn is_missing(&self, path: PathId, state: &mut State) -> Option<bool> {
        match self.look(state, path) {
            Is::There => None,
            Is::Missing => Some(true),
            Is::Unknown => {
                self.set(state, path, Is::Missing);
                Some(false)
            }
        }
    }

    fn look(&self, state: &State, path: PathId) -> Is {
        let Some(lies) = self.lies_around(Some(path)) else {
            return Is::Unknown;
        };
        let is_missing = |number: &usize| is(state, *number, Is::Missing);
        if lies.above.iter().any(is_missing) {
            return Is::Missing;
        }
        let number = self
            .numbers
            .get(&path)
            .and_then(|&number| state.get(number));
        number.copied().unwrap_or(Is::Unknown)
    }

    fn set(&self, state: &mut State, path: PathId, is: Is) {
        if let Some(&number) = self.numbers.get(&path) {
            put(state, number, is);
        }
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

fn is(state: &[Is], number: usize, what: Is) -> bool {
    state.get(number) == Some(&what)
}

fn put<T>(places: &mut [T], number: usize, value: T) {
    if let Some(place) = places.get_mut(number) {
        *place = value;
    }
}
