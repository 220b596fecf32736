//! Searches for an order of calls in which each result is possible.
//!
//! A linearisation in the sense of Herlihy and Wing (1990), searched as Lowe (2017) does: entries and returns are passed one after the other,
//! and a call is taken when it returns at the latest, after those under way that let its result be so. A call that changes nothing is taken
//! as soon as its result is so. No state is looked at twice: one that led nowhere leads nowhere again.
//!
//! No order explains some results: the kernel looks a path up before it acts on it. `link("d/f", "d/f")` succeeds where `d` is another
//! directory at the second lookup.

use crate::overlaps::state::{Meant, State, mix};
use crate::overlaps::{Known, MOST_EFFORT, Orders, Touch};
use crate::paths::{PathId, Paths};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Calls that are tried for one result, before it is given up (chosen: some seconds).
const MOST_TRIES: usize = 2_000_000;
/// Calls under way at once that are tried one before the other (chosen: more than there are processors).
const MOST_TRIED: usize = 64;

/// Find an order of calls. Returns what must wait for what, so that they are taken in it.
pub(super) fn find_order(
    touches: &[&Touch],
    known: &FxHashMap<PathId, Known>,
    paths: &Paths,
    effort: &mut u64,
) -> Orders {
    let before = || State::before(touches, known, paths);
    let is_spent = *effort >= MOST_EFFORT;
    let mut search = Linearizer::new(touches, before(), paths);
    while !search.advance(effort) {
        if *effort >= MOST_EFFORT {
            search.stop(usize::from(!is_spent));
            break;
        }
        search.give_up();
    }
    let ranks = search.ranks(before());
    search.orders(&ranks)
}

/// A line in which a call was entered or returned.
#[derive(Debug, Clone, Copy)]
enum Event {
    Entry(usize),
    Return(usize),
}

/// A state in which a call has to be taken that returns.
#[derive(Debug)]
struct Choice {
    begin: Place,
    /// Calls to be tried, the best last.
    calls: Vec<usize>,
}

/// How far a search has come: the next event, what can be undone, and how many calls are taken.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    event: usize,
    mark: usize,
    taken: usize,
}

struct Linearizer<'a> {
    paths: &'a Paths,
    touches: &'a [&'a Touch],
    events: Vec<Event>,
    state: State<'a>,
    /// The next event, and the calls under way then.
    at: usize,
    pending: BTreeSet<usize>,
    /// Calls in their order, which those are, and a number that stands for them.
    order: Vec<usize>,
    is_taken: Vec<bool>,
    taken: u64,
    way: Vec<Choice>,
    seen: FxHashSet<u64>,
    /// What is not tried otherwise any more.
    fixed: Place,
    /// The event that could not be passed, and the order up to there.
    furthest: (usize, Vec<usize>),
    tries: usize,
    unexplained: usize,
    /// What each call means, as far as is known, and the last call that uses a description.
    meant: Vec<Meant>,
    last: FxHashMap<u32, usize>,
}

impl<'a> Linearizer<'a> {
    fn new(touches: &'a [&'a Touch], state: State<'a>, paths: &'a Paths) -> Self {
        let spans = touches.iter().map(|touch| touch.span).enumerate();
        let lines = spans.flat_map(|(call, span)| [(span.0, false, call), (span.1, true, call)]);
        let mut lines: Vec<(u64, bool, usize)> = lines.collect();
        lines.sort_unstable();
        let events = lines.into_iter().map(|(_, is_return, call)| {
            if is_return {
                Event::Return(call)
            } else {
                Event::Entry(call)
            }
        });
        Self {
            paths,
            touches,
            events: events.collect(),
            state,
            at: 0,
            pending: BTreeSet::new(),
            order: Vec::new(),
            is_taken: vec![false; touches.len()],
            taken: 0,
            way: Vec::new(),
            seen: FxHashSet::default(),
            fixed: Place::default(),
            furthest: (0, Vec::new()),
            tries: 0,
            unexplained: 0,
            meant: vec![Meant::default(); touches.len()],
            last: (touches.iter().enumerate())
                .flat_map(|(call, touch)| touch.descriptions().map(move |slot| (slot, call)))
                .collect(),
        }
    }

    fn touch(&self, call: usize) -> Option<&'a Touch> {
        self.touches.get(call).copied()
    }

    fn has_taken(&self, call: usize) -> bool {
        self.is_taken.get(call).is_none_or(|taken| *taken)
    }

    /// Go on to the end. False where no order leads there.
    fn advance(&mut self, effort: &mut u64) -> bool {
        while let Some(returning) = self.pass() {
            let now =
                mix(self.state.hash() ^ self.taken) ^ mix(u64::try_from(self.at).unwrap_or(0));
            if self.seen.insert(now) {
                self.choose(returning);
            }
            if !self.try_next(effort) {
                return false;
            }
        }
        true
    }

    /// Pass events up to the return of a call that is not taken yet.
    fn pass(&mut self) -> Option<usize> {
        while let Some(&event) = self.events.get(self.at) {
            if let Event::Return(call) = event
                && !self.has_taken(call)
            {
                return Some(call);
            }
            self.walk_to(self.at + 1);
            if let Event::Entry(call) = event {
                self.take_if_certain(call);
            }
        }
        None
    }

    /// Pass events, or go back.
    fn walk_to(&mut self, to: usize) {
        while self.at != to {
            let is_forward = self.at < to;
            let event = if is_forward { self.at } else { self.at - 1 };
            match (self.events.get(event), is_forward) {
                (Some(Event::Entry(call)), true) | (Some(Event::Return(call)), false) => {
                    self.pending.insert(*call);
                }
                (Some(Event::Return(call)), true) | (Some(Event::Entry(call)), false) => {
                    self.pending.remove(call);
                }
                (None, _) => {}
            }
            self.at = if is_forward { event + 1 } else { event };
        }
    }

    /// A call returns: it is taken now, or after others that are under way, those first that have to do with it.
    fn choose(&mut self, returning: usize) {
        let left = self.pending.iter().copied();
        let left = left.filter(|&call| call != returning && !self.has_taken(call));
        let mut calls: Vec<usize> = left.collect();
        for &call in calls.iter().chain([&returning]) {
            self.note_meaning(call);
        }
        calls.sort_by_cached_key(|&call| {
            let returned = self.touch(call).map(|touch| touch.span.1);
            (self.conflicts(call, returning), std::cmp::Reverse(returned))
        });
        calls.push(returning);
        let few = calls.len().saturating_sub(MOST_TRIED);
        calls.drain(..few);
        let begin = self.place();
        self.way.push(Choice { begin, calls });
    }

    fn place(&self) -> Place {
        Place {
            event: self.at,
            mark: self.state.mark(),
            taken: self.order.len(),
        }
    }

    /// Take the next call that can be taken where the last choice was made, or one before. False where there is none.
    fn try_next(&mut self, effort: &mut u64) -> bool {
        while let Some(choice) = self.way.last_mut() {
            let (begin, next) = (choice.begin, choice.calls.pop());
            self.go_back(begin);
            let Some(call) = next else {
                self.way.pop();
                continue;
            };
            *effort += 1;
            self.tries += 1;
            if self.tries > MOST_TRIES || *effort >= MOST_EFFORT {
                return false;
            }
            if self.take(call) {
                let pending: Vec<usize> = self.pending.iter().copied().collect();
                *effort += u64::try_from(pending.len()).unwrap_or(0) / 16;
                for call in pending {
                    self.take_if_certain(call);
                }
                return true;
            }
        }
        self.remember();
        false
    }

    fn go_back(&mut self, place: Place) {
        if place.taken < self.order.len() {
            self.remember();
        }
        self.walk_to(place.event);
        self.state.undo(place.mark);
        for call in self.order.drain(place.taken..) {
            self.taken ^= mark(call);
            if let Some(taken) = self.is_taken.get_mut(call) {
                *taken = false;
            }
        }
    }

    fn remember(&mut self) {
        if self.at > self.furthest.0 {
            let order = self.order.get(self.fixed.taken..).unwrap_or_default();
            self.furthest = (self.at, order.to_vec());
            self.tries = 0;
        }
    }

    fn take_if_certain(&mut self, call: usize) {
        let Some(touch) = self.touch(call).filter(|touch| !touch.changes()) else {
            return;
        };
        if !self.has_taken(call) {
            let mark = self.state.mark();
            if self.state.take(touch) == Some(true) {
                self.put(call);
            } else {
                self.state.undo(mark);
            }
        }
    }

    /// Take a call whose result can be so.
    fn take(&mut self, call: usize) -> bool {
        let mark = self.state.mark();
        let can_be = self.touch(call).and_then(|touch| self.state.take(touch));
        if can_be.is_some() {
            self.put(call);
        } else {
            self.state.undo(mark);
        }
        can_be.is_some()
    }

    fn put(&mut self, call: usize) {
        self.note_meaning(call);
        for slot in self.touch(call).into_iter().flat_map(Touch::descriptions) {
            if self.last.get(&slot) == Some(&call) {
                self.state.close(slot);
            }
        }
        self.order.push(call);
        self.taken ^= mark(call);
        if let Some(taken) = self.is_taken.get_mut(call) {
            *taken = true;
        }
    }

    fn note_meaning(&mut self, call: usize) {
        if let (Some(touch), Some(place)) = (self.touch(call), self.meant.get_mut(call)) {
            *place = self.state.meant(touch);
        }
    }

    /// No order explains the result that is furthest: take it as it is, and go on from there.
    fn give_up(&mut self) {
        self.way.clear();
        self.seen.clear();
        self.go_back(self.fixed);
        let (event, order) = std::mem::take(&mut self.furthest);
        for call in order {
            self.take(call);
        }
        self.walk_to(event);
        if let Some(&Event::Return(call)) = self.events.get(self.at)
            && let Some(touch) = self.touch(call)
        {
            self.state.believe(touch);
            if !self.take(call) {
                self.put(call);
            }
            self.unexplained += 1;
        }
        self.state.commit();
        self.fixed = self.place();
        self.tries = 0;
    }

    /// Nothing more is tried: what is left is taken where it returned. Of its results those cannot be so, and `least`, that could not there.
    fn stop(&mut self, least: usize) {
        let calls = self.touches.iter().zip(&self.is_taken);
        let left = calls.filter(|(touch, is_taken)| touch.is_refuted && !**is_taken);
        self.unexplained += left.count().max(least);
    }

    /// Whether the order of two calls may matter.
    fn conflicts(&self, one: usize, other: usize) -> bool {
        let (Some(a), Some(b)) = (self.touch(one), self.touch(other)) else {
            return false;
        };
        let meet = || {
            self.meant
                .get(one)?
                .meets(self.meant.get(other)?)
                .then_some(())
        };
        (a.changes() || b.changes())
            && (meet().is_some() || a.may_show(b, self.paths) || b.may_show(a, self.paths))
    }

    /// Where each call stands in the order, if it has a place: those that change nothing as late as they may be.
    fn ranks(&mut self, mut state: State<'_>) -> Vec<Option<usize>> {
        let mut ranks = vec![None; self.touches.len()];
        let mut order = std::mem::take(&mut self.order).into_iter().enumerate();
        let mut now = 0;
        self.walk_to(0);
        while let Some(&event) = self.events.get(self.at) {
            self.walk_to(self.at + 1);
            match event {
                Event::Entry(call) => self.rank(&[call], &mut state, now, &mut ranks),
                Event::Return(call) => {
                    while ranks.get(call) == Some(&None)
                        && let Some((place, taken)) = order.next()
                    {
                        let touch = self.touch(taken);
                        let is_ranked = ranks.get(taken).is_some_and(Option::is_some);
                        if let Some(touch) = touch.filter(|_| !is_ranked) {
                            now = 2 * (place + 1);
                            if state.take(touch).is_none() {
                                state.believe(touch);
                                state.take(touch);
                            }
                            put(&mut ranks, taken, now);
                            let pending: Vec<usize> = self.pending.iter().copied().collect();
                            self.rank(&pending, &mut state, now, &mut ranks);
                        }
                    }
                    state.commit();
                }
            }
        }
        ranks
    }

    /// Put calls after what is so now if their results are so then.
    fn rank(
        &self,
        calls: &[usize],
        state: &mut State<'_>,
        now: usize,
        ranks: &mut [Option<usize>],
    ) {
        for &call in calls {
            let Some(touch) = self.touch(call).filter(|touch| !touch.changes()) else {
                continue;
            };
            let mark = state.mark();
            if state.take(touch) == Some(true) {
                put(ranks, call, now + 1);
            } else {
                state.undo(mark);
            }
        }
    }

    /// What must wait for what.
    fn orders(mut self, ranks: &[Option<usize>]) -> Orders {
        let mut orders = Orders::default();
        let rank_of = |call: usize| ranks.get(call).copied().flatten();
        let mut taken_at = self.lines(ranks);
        self.walk_to(0);
        while let Some(&event) = self.events.get(self.at) {
            self.walk_to(self.at + 1);
            let Event::Return(returned) = event else {
                continue;
            };
            for call in taken_at.remove(&returned).into_iter().flatten() {
                let is_sooner = |&other: &usize| {
                    let is_before = rank_of(other).is_some_and(|rank| Some(rank) < rank_of(call));
                    is_before && self.conflicts(call, other)
                };
                let pending = self.pending.iter().copied().take(MOST_TRIED);
                let before = pending
                    .filter(is_sooner)
                    .filter_map(|other| self.touch(other));
                let sooner: Vec<_> = before.map(|other| (other.task, other.span.0)).collect();
                if let Some(touch) = self.touch(call)
                    && !self.pending.is_empty()
                {
                    orders.sooner.insert(touch.span.1, sooner);
                }
            }
        }
        orders.unexplained = self.unexplained;
        orders
    }

    /// By the call with whose return they are taken, at the latest: those that return later, and come before it.
    fn lines(&self, ranks: &[Option<usize>]) -> FxHashMap<usize, Vec<usize>> {
        let ranked = ranks.iter().enumerate();
        let mut ranked: Vec<_> = ranked
            .filter_map(|(call, rank)| Some(((*rank)?, call)))
            .collect();
        ranked.sort_unstable();
        let mut lines: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        let mut first: Option<(u64, usize)> = None;
        for (_, call) in ranked.into_iter().rev() {
            let own = self.touch(call).map(|touch| (touch.span.1, call));
            first = [own, first].into_iter().flatten().min();
            lines
                .entry(first.map_or(call, |(_, first)| first))
                .or_default()
                .push(call);
        }
        lines
    }
}

fn put<T>(places: &mut [Option<T>], at: usize, value: T) {
    if let Some(place) = places.get_mut(at) {
        *place = Some(value);
    }
}

/// A number that stands for a call.
fn mark(call: usize) -> u64 {
    mix(mix(u64::try_from(call).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlaps::{Effect, Proof, Subject, Use};

    #[test]
    fn results_that_cannot_be_so_and_are_not_searched_any_more_are_counted() {
        let mut paths = Paths::new();
        let name = paths.child(PathId::TOP, b"f").unwrap();
        let touch = |task, span, is_refuted| Touch {
            task,
            span,
            needs: [Some(Proof::There(name)), None],
            does: [Some(Effect::Removes(name)), None],
            file: None,
            base: None,
            is_refuted,
        };
        let touches = [touch(1, (1, 3), false), touch(2, (2, 4), true)];
        let touches: Vec<&Touch> = touches.iter().collect();
        for (mut effort, least) in [(0, 1), (MOST_EFFORT - 1, 1), (MOST_EFFORT, 1)] {
            let orders = find_order(&touches, &FxHashMap::default(), &paths, &mut effort);
            assert_eq!(orders.unexplained, least, "{effort}");
        }
    }

    #[test]
    fn names_in_a_directory_are_waited_for_by_whatever_path_they_are_meant() {
        let mut paths = Paths::new();
        let [a, c] = [b"a", b"c"].map(|name| paths.child(PathId::TOP, name).unwrap());
        let [in_a, in_c] = [a, c].map(|directory| paths.child(directory, b"f").unwrap());
        let touch = |task, span, needs, does| Touch {
            task,
            span,
            needs,
            does,
            file: None,
            base: None,
            is_refuted: false,
        };
        let there = |path| [Some(Proof::There(path)), None];
        let mut opens = touch(1, (1, 1), there(a), [None; 2]);
        opens.file = Some((Subject::Description(7), Use::Opens { empties: false }));
        let moves = [Some(Effect::Makes(c)), Some(Effect::Removes(a))];
        let moves = touch(2, (2, 8), there(a), moves);
        let mut removes = touch(1, (3, 6), there(in_a), [Some(Effect::Removes(in_a)), None]);
        removes.base = Some((7, a));
        let needs = [Some(Proof::There(c)), Some(Proof::Missing(in_c))];
        let makes = touch(3, (4, 5), needs, [Some(Effect::Makes(in_c)), None]);
        let known = |path, there| {
            let there = Some(there);
            (
                path,
                Known {
                    there,
                    ..Known::default()
                },
            )
        };
        let known = [known(a, true), known(in_a, true), known(c, false)];
        let touches = [&opens, &makes, &removes, &moves];
        let orders = find_order(&touches, &known.into_iter().collect(), &paths, &mut 0);
        assert_eq!(orders.unexplained, 0);
        assert_eq!(orders.before(5), Some(&[(1, 3), (2, 2)][..]));
    }
}
