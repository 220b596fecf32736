//! Calls on names that overlapped: in which order they took effect, where results prove another one than that of their returns.
//!
//! A call takes effect between its entry and its return, and an import takes it where it returned. A later result may show that this was
//! wrong: a file is found that somebody had removed already. Then an order is searched for that allows every result (`search.rs`), and the
//! next pass over the logs takes the calls in that order. Calls without a way to be told apart keep the order of their returns.

mod search;

use crate::paths::{PathId, Paths};
use crate::tree::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// What must have been so when a call took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Proof {
    There(PathId),
    Missing(PathId),
    /// One of both is not there.
    EitherMissing(PathId, PathId),
    /// A directory without entries.
    Empty(PathId),
    /// A directory with entries.
    Filled(PathId),
    /// A directory with so many entries.
    Count(PathId, i64),
    /// A file with so many bytes.
    Long(NodeId, i64),
}

/// What a call does if it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    Makes(PathId),
    Removes(PathId),
    Lengthens(NodeId),
}

/// What was known of a name before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Before {
    /// Whether it was there.
    Name(Option<bool>),
    /// How many entries it had.
    Entries(Option<i64>),
}

/// A call on names whose turn has come.
#[derive(Debug, Clone)]
pub(crate) struct Touch {
    pub(crate) task: u64,
    /// The lines between which it took effect, counted over all logs: those of its entry and of its return.
    pub(crate) span: (u64, u64),
    /// What its result proves, and what was known of the names that it is about.
    pub(crate) needs: [Option<(Proof, [Before; 2])>; 2],
    /// What it did: nothing where it failed. And what was known of that name.
    pub(crate) does: [Option<(Effect, Before)>; 2],
    /// The result cannot be so in this order.
    pub(crate) is_refuted: bool,
    /// It overlapped with a call that may have changed its result, or the other way round.
    pub(crate) has_met: bool,
    /// Its number among those that were taken.
    pub(crate) turn: u64,
}

/// A call that takes effect before another one: its task, and the line of its entry.
pub(crate) type Sooner = (u64, u64);

/// Of calls whose order was found out, by the line in which they returned: those that take effect before them, and return later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    of_names: FxHashMap<u64, Vec<Sooner>>,
    of_listings: FxHashMap<u64, Vec<Sooner>>,
    /// The lines in which calls were entered that others waited for, and that failed.
    failed: FxHashSet<u64>,
}

/// Calls that others which are under way may overlap: more are seldom made while one of them lasts (chosen).
const MOST_RECENT: usize = 4096;
/// Calls that changed names or overlapped, kept for what later results show of them (chosen).
const MOST_KEPT: usize = 32_768;
/// Results that wait for the calls around them to return (chosen).
const MOST_REFUTED: usize = 1024;
/// Calls that are held against others, and states of searches, in a pass: a log that somebody else's work makes strange may ask for a
/// search with each line (chosen: some seconds).
const MOST_EFFORT: u64 = 50_000_000;
/// What a state takes, in calls that are held against others (chosen: measured, about 50).
const STATE_EFFORT: u64 = 50;
/// Groups of calls that overlap each other, one after the other, that a result may depend on (chosen).
const MOST_GROUPS: usize = 8;

/// A result that cannot be so: its task, the line of its return, and the line before which nothing more can be told.
#[derive(Debug, Clone, Copy)]
struct Refuted {
    task: u64,
    line: u64,
    until: u64,
}

/// What a pass has seen of calls that overlap, and what it found out.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    /// What passes before have found out.
    pub(crate) orders: Orders,
    /// Results that no order explains that was found.
    pub(crate) unexplained: u64,
    recent: VecDeque<Touch>,
    kept: VecDeque<Touch>,
    /// How many of those that are kept made or removed a name.
    changed: FxHashMap<PathId, u32>,
    /// Directories, and how many entries they had before a call that returned in this line and may have changed that.
    counts: VecDeque<(PathId, u64, i64)>,
    turns: u64,
    /// The lines in which calls were entered that were waited for in vain: they failed.
    vain: Vec<u64>,
    refuted: Vec<Refuted>,
    effort: u64,
}

impl Orders {
    /// What takes effect before a call that returned in this line; None where nothing has been found out about it.
    pub(crate) fn before(&self, line: u64) -> Option<&[Sooner]> {
        self.of_names.get(&line).map(Vec::as_slice)
    }

    /// Whether a call that was entered in this line is known to have failed: it explains nothing.
    pub(crate) fn has_failed(&self, entered: u64) -> bool {
        self.failed.contains(&entered)
    }

    /// The listings that take effect before a call that returned in this line.
    pub(crate) fn listings_before(&self, line: u64) -> &[Sooner] {
        self.of_listings.get(&line).map_or(&[], Vec::as_slice)
    }
}

impl Overlaps {
    pub(crate) fn with(orders: Orders) -> Self {
        Self {
            orders,
            ..Self::default()
        }
    }

    /// Whether a call that overlaps with no other on a name is of no interest.
    pub(crate) fn is_idle(&self) -> bool {
        self.recent.is_empty() && self.kept.is_empty()
    }

    /// Note a call. Those that have not returned yet, and all that are made from now on, were entered in the line `oldest` or later.
    pub(crate) fn note(&mut self, paths: &Paths, mut touch: Touch, oldest: u64) {
        self.settle(paths, oldest.min(touch.span.0));
        for other in &mut self.recent {
            if touch.overlaps(other) && touch.conflicts(other, paths) {
                other.has_met = true;
                touch.has_met = true;
            }
        }
        if touch.is_refuted && self.refuted.len() < MOST_REFUTED {
            self.refuted.push(Refuted {
                task: touch.task,
                line: touch.span.1,
                until: touch.span.1,
            });
        }
        touch.turn = self.turns;
        self.turns += 1;
        self.recent.push_back(touch);
    }

    /// Note how many entries a directory had before a call that returned in this line.
    pub(crate) fn note_count(&mut self, directory: PathId, (line, count): (u64, i64), oldest: u64) {
        while let Some(&(_, returned, _)) = self.counts.front()
            && (returned < oldest || self.counts.len() >= MOST_RECENT)
        {
            self.counts.pop_front();
        }
        self.counts.push_back((directory, line, count));
    }

    /// Note a listing with a count of entries that the directory has no more: it takes effect before a call that overlapped with it,
    /// where there were as many.
    pub(crate) fn note_listing(&mut self, listed: (PathId, i64), task: u64, span: (u64, u64)) {
        let overlapped = self.counts.iter().rev();
        let mut overlapped = overlapped.take_while(|(_, line, _)| *line > span.0);
        let found = overlapped.find(|&&(directory, _, count)| (directory, count) == listed);
        if let Some(&(_, line, _)) = found {
            let sooner = self.orders.of_listings.entry(line).or_default();
            sooner.push((task, span.0));
        }
    }

    /// All calls have returned.
    pub(crate) fn end(&mut self, paths: &Paths) {
        self.settle(paths, u64::MAX);
        if self.effort > 0 {
            self.orders.failed.extend(self.vain.drain(..));
        }
    }

    /// A call that others wait for has failed, and was entered in this line.
    pub(crate) fn waited_in_vain(&mut self, entered: u64) {
        if self.vain.len() < MOST_KEPT {
            self.vain.push(entered);
        }
    }

    /// No call from now on overlaps with one that returned before this line.
    fn settle(&mut self, paths: &Paths, oldest: u64) {
        if self.refuted.iter().any(|refuted| refuted.until < oldest) {
            for mut refuted in std::mem::take(&mut self.refuted) {
                if refuted.until < oldest {
                    refuted.until = self.explain(paths, refuted, oldest);
                }
                if refuted.until >= oldest {
                    self.refuted.push(refuted);
                }
            }
        }
        while let Some(touch) = self.recent.front()
            && (touch.span.1 < oldest || self.recent.len() >= MOST_RECENT)
        {
            self.keep_first(paths);
        }
    }

    /// Nothing overlaps with the first of the recent calls any more: keep it where later results may show something of it.
    fn keep_first(&mut self, paths: &Paths) {
        let Some(touch) = self.recent.pop_front() else {
            return;
        };
        let is_needed = touch.has_met || touch.is_refuted || touch.changes();
        if !is_needed && !self.is_of_changed(&touch, paths) {
            return;
        }
        if self.kept.len() >= MOST_KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            for path in oldest.effects().filter_map(Effect::path) {
                let count = self.changed.get_mut(&path);
                if count.is_none_or(|count| {
                    *count -= 1;
                    *count == 0
                }) {
                    self.changed.remove(&path);
                }
            }
        }
        for path in touch.effects().filter_map(Effect::path) {
            *self.changed.entry(path).or_default() += 1;
        }
        self.kept.push_back(touch);
    }

    /// Whether a call is about a name that one of those that are kept has changed.
    fn is_of_changed(&self, touch: &Touch, paths: &Paths) -> bool {
        !self.changed.is_empty()
            && touch.named().any(|(path, _)| {
                let mut upwards = std::iter::successors(Some(path), |&path| {
                    (path != PathId::TOP).then(|| paths.parent(path))
                });
                upwards.any(|path| self.changed.contains_key(&path))
            })
    }

    /// Search for an order that explains a result. Returns the line before which it cannot be told, 0 where it was told or never can be.
    fn explain(&mut self, paths: &Paths, refuted: Refuted, oldest: u64) -> u64 {
        let all = self.kept.iter().chain(&self.recent);
        let is_it = |touch: &&Touch| touch.task == refuted.task && touch.span.1 == refuted.line;
        let found = all.clone().find(is_it).filter(|touch| touch.is_refuted);
        let Some(first) = found else {
            return 0; // told with another one
        };
        if self.effort >= MOST_EFFORT {
            return 0;
        }
        let mut effort = 0;
        let mut related = related(paths, first, all, &mut effort);
        if related.len() == 1 {
            self.effort += effort;
            return 0;
        }
        let groups = groups(&mut related);
        let at = groups.iter().position(|&(_, end)| end >= refuted.line);
        let Some((at, &(_, end))) = at.and_then(|at| Some((at, groups.get(at)?))) else {
            return 0;
        };
        if end >= oldest {
            return end;
        }
        let upto: Vec<Touch> = (related.iter().filter(|touch| touch.span.1 <= end))
            .map(|&touch| touch.clone())
            .collect();
        let begins = groups.iter().take(at + 1).rev().take(MOST_GROUPS);
        let mut each = begins.filter_map(|&(begin, _)| upto.get(begin..));
        let told = each.find_map(|these| Some((these, other_order(these, paths, &mut effort)?)));
        self.effort += effort;
        if let Some((these, order)) = told {
            self.take_order(these, &order);
            self.no_more_refuted(these);
        } else {
            self.unexplained += 1;
            self.no_more_refuted(&upto);
        }
        0
    }

    /// Have the next pass take calls in an order.
    fn take_order(&mut self, touches: &[Touch], order: &[usize]) {
        for touch in touches {
            self.orders.of_names.insert(touch.span.1, Vec::new());
        }
        let mut after: Option<(u64, u64)> = None;
        for touch in order.iter().rev().filter_map(|&at| touches.get(at)) {
            // It takes effect when it returns, or else right before the next one does.
            let (entered, returned) = touch.span;
            let mut at = returned;
            if let Some((line, taken)) = after.filter(|&(_, taken)| taken < returned) {
                let sooner = self.orders.of_names.entry(line).or_default();
                sooner.push((touch.task, entered));
                at = taken;
            }
            after = Some((returned, at));
        }
    }

    fn no_more_refuted(&mut self, these: &[Touch]) {
        let all = self.kept.iter_mut().chain(&mut self.recent);
        for touch in all.filter(|touch| touch.is_refuted) {
            let mut each = these.iter();
            touch.is_refuted =
                !each.any(|one| one.task == touch.task && one.span.1 == touch.span.1);
        }
    }
}

impl Touch {
    fn overlaps(&self, other: &Self) -> bool {
        self.task != other.task && self.span.0 < other.span.1 && other.span.0 < self.span.1
    }

    /// Whether the order of two calls may matter to what they return or leave behind.
    fn conflicts(&self, other: &Self, paths: &Paths) -> bool {
        let removes = |effect| matches!(effect, Effect::Removes(_));
        let both = self.effects().any(|one| {
            let mut others = other.effects();
            others.any(|two| (removes(one) || removes(two)) && is_near(paths, one, two))
        });
        both || self.may_show(other, paths) || other.may_show(self, paths)
    }

    /// Whether what a call needs depends on another one.
    fn may_show(&self, other: &Self, paths: &Paths) -> bool {
        other.effects().any(|effect| {
            let mut needs = self.proofs();
            needs.any(|need| is_seen(paths, effect, need) && !other.changes_nothing(effect, need))
        })
    }

    /// Whether a call that made a name found it there already, so that who finds it there as well has seen nothing of it.
    fn changes_nothing(&self, effect: Effect, need: Proof) -> bool {
        let found = self
            .does
            .iter()
            .flatten()
            .find(|(does, _)| does.path() == effect.path());
        let was_there = matches!(found, Some((Effect::Makes(_), Before::Name(Some(true)))));
        was_there && matches!(need, Proof::There(_))
    }

    /// Whether a name means something else after it, as far as is known.
    fn changes(&self) -> bool {
        let mut does = self.does.iter().flatten();
        does.any(|does| !matches!(does, (Effect::Makes(_), Before::Name(Some(true)))))
    }

    fn proofs(&self) -> impl Iterator<Item = Proof> {
        self.needs.into_iter().flatten().map(|(need, _)| need)
    }

    fn effects(&self) -> impl Iterator<Item = Effect> {
        self.does.into_iter().flatten().map(|(does, _)| does)
    }

    /// The names that it is about, and what was known of them.
    fn named(&self) -> impl Iterator<Item = (PathId, Before)> {
        let needs = self.needs.into_iter().flatten();
        let needs = needs.flat_map(|(need, [one, other])| need.paths().zip([one, other]));
        let does = self.does.into_iter().flatten();
        needs.chain(does.filter_map(|(does, before)| Some((does.path()?, before))))
    }
}

impl Proof {
    /// The names that it is about.
    pub(crate) fn paths(self) -> impl Iterator<Item = PathId> {
        let paths = match self {
            Self::There(path) | Self::Missing(path) | Self::Empty(path) | Self::Filled(path) => {
                [Some(path), None]
            }
            Self::EitherMissing(one, other) => [Some(one), Some(other)],
            Self::Count(..) | Self::Long(..) => [None; 2],
        };
        paths.into_iter().flatten()
    }
}

impl Effect {
    /// The name that it changes.
    pub(crate) fn path(self) -> Option<PathId> {
        match self {
            Self::Makes(path) | Self::Removes(path) => Some(path),
            Self::Lengthens(_) => None,
        }
    }
}

/// Whether an effect may change what a proof is about.
fn is_seen(paths: &Paths, effect: Effect, need: Proof) -> bool {
    let is_entry = matches!(need, Proof::Empty(_) | Proof::Filled(_));
    effect.path().is_some_and(|changed| {
        let mut each = need.paths();
        each.any(|path| {
            paths.is_at_or_below(path, changed) || is_entry && paths.parent(changed) == path
        })
    })
}

/// Whether one of two names lies at or below the other.
fn is_near(paths: &Paths, one: Effect, other: Effect) -> bool {
    let (Some(one), Some(other)) = (one.path(), other.path()) else {
        return false;
    };
    paths.is_at_or_below(one, other) || paths.is_at_or_below(other, one)
}

/// A call and all that its result may depend on, by each other.
fn related<'a>(
    paths: &Paths,
    first: &'a Touch,
    all: impl Iterator<Item = &'a Touch>,
    effort: &mut u64,
) -> Vec<&'a Touch> {
    let mut related = vec![first];
    let mut others: Vec<&Touch> = all
        .filter(|touch| (touch.task, touch.span) != (first.task, first.span))
        .collect();
    let mut looked_at = 0;
    // Most are like another one: they have to do with the same calls.
    let mut seen = FxHashSet::default();
    while let Some(&touch) = related.get(looked_at) {
        looked_at += 1;
        if !seen.insert((touch.needs, touch.does)) || *effort >= MOST_EFFORT {
            continue;
        }
        *effort += u64::try_from(others.len()).unwrap_or(u64::MAX);
        others.retain(|other| {
            let is_far = !touch.conflicts(other, paths);
            if !is_far {
                related.push(other);
            }
            is_far
        });
    }
    related
}

/// An order that allows every result, and is not the one in which a result could not be so.
fn other_order(touches: &[Touch], paths: &Paths, effort: &mut u64) -> Option<Vec<usize>> {
    let order = search::find_order(touches, paths, effort)?;
    let turns = order.iter().filter_map(|&at| touches.get(at));
    let is_other = !turns.map(|touch| touch.turn).is_sorted();
    is_other.then_some(order)
}

/// Sort calls, and tell them apart where all that came before had returned: where each group begins, and the line in which it ended.
fn groups(touches: &mut [&Touch]) -> Vec<(usize, u64)> {
    touches.sort_unstable_by_key(|touch| touch.span);
    let mut groups: Vec<(usize, u64)> = Vec::new();
    for (at, touch) in touches.iter().enumerate() {
        match groups.last_mut() {
            Some((_, end)) if touch.span.0 < *end => *end = touch.span.1.max(*end),
            _ => groups.push((at, touch.span.1)),
        }
    }
    groups
}
