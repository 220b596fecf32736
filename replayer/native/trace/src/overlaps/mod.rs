//! Calls on names that overlapped: in which order they took effect, where results prove another one than that of their returns.
//!
//! A call takes effect between its entry and its return, and an import takes it where it returned. A later result may show that this was
//! wrong: a file is found that somebody had removed already. Then the logs are read once more, all calls on names are noted, and those that
//! have to do with each other are searched for an order that allows every result (`search.rs`). The last pass takes them in that order.

mod search;
mod state;

use crate::paths::{PathId, Paths};
use crate::tree::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// A file with so many bytes, at least and at most.
    Length(NodeId, i64, i64),
    /// Another description than this one has a lock on a file.
    Held(NodeId, u32),
}

/// What a call does if it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    Makes(PathId),
    Removes(PathId),
    /// It gives what has this name another one beside it.
    Keeps(PathId),
    Lengthens(NodeId),
    Locks(NodeId, u32),
}

/// By what a call means a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Description(u32),
    Name(PathId),
}

/// What a call does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Opens {
        empties: bool,
    },
    /// A read found so much of what it asked for; a stat, or a seek to the end, all there is.
    Sees {
        at: i64,
        got: i64,
        asked: i64,
    },
    /// It is written up to here.
    Reaches(i64),
    Grows(i64),
    Cuts(i64),
    /// It has another size, which is not known.
    Alters,
}

impl Use {
    /// All there is of a file was seen.
    pub(crate) fn is_long(size: i64) -> Self {
        Self::Sees {
            at: 0,
            got: size,
            asked: i64::MAX,
        }
    }
}

/// What was known of a name before the first call about it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    pub(crate) there: Option<bool>,
    pub(crate) entries: Option<i64>,
}

/// A call on names, or on a file that was opened by one.
#[derive(Debug, Clone)]
pub(crate) struct Touch {
    pub(crate) task: u64,
    /// The lines between which it took effect, counted over all logs: those of its entry and of its return.
    pub(crate) span: (u64, u64),
    /// What its result proves.
    pub(crate) needs: [Option<Proof>; 2],
    /// What it did: nothing where it failed.
    pub(crate) does: [Option<Effect>; 2],
    /// What it did with a file.
    pub(crate) file: Option<(Subject, Use)>,
    /// The open directory where its paths begin, and the path that this has where the call returned.
    pub(crate) base: Option<(u32, PathId)>,
    /// The result cannot be so in the order of the returns.
    pub(crate) is_refuted: bool,
}

/// A call that takes effect before another one: its task, and the line of its entry.
pub(crate) type Sooner = (u64, u64);

/// What a search has found out.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Of calls by the line in which they returned: those that take effect before them, and return later.
    sooner: FxHashMap<u64, Vec<Sooner>>,
    /// Results that no order explains that was found.
    pub(crate) unexplained: usize,
}

/// Calls that are searched at once (chosen: some 100 MB).
const MOST_NOTED: usize = 500_000;
/// What all searches may take, in steps (chosen: some ten seconds).
const MOST_EFFORT: u64 = 20_000_000;

/// What a pass sees of calls that overlap.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    /// What the pass before has found out.
    pub(crate) orders: Orders,
    /// A result was refuted, and it may be for calls that overlapped.
    pub(crate) is_contradicted: bool,
    /// What this pass finds out, where it is to do that.
    pub(crate) search: Option<OrderSearch>,
    has_met: bool,
    /// Files were given other names while the call that is taken was entered: the names of its descriptors are those of before or after.
    pub(crate) names_move: bool,
}

#[derive(Debug, Default)]
pub(crate) struct OrderSearch {
    noted: Vec<Touch>,
    known: FxHashMap<PathId, Known>,
    /// Names that those that were noted have changed.
    changed: FxHashSet<PathId>,
    pub(crate) found: Orders,
    effort: u64,
}

impl Orders {
    /// What takes effect before a call that returned in this line; None where nothing has been found out about it.
    pub(crate) fn before(&self, line: u64) -> Option<&[Sooner]> {
        self.sooner.get(&line).map(Vec::as_slice)
    }
}

impl Overlaps {
    /// Take calls in these orders.
    pub(crate) fn with(orders: Orders) -> Self {
        Self {
            orders,
            ..Self::default()
        }
    }

    /// Find out about orders.
    pub(crate) fn searching() -> Self {
        Self {
            search: Some(OrderSearch::default()),
            ..Self::default()
        }
    }

    /// Whether a call that took effect between these lines is of interest; `is_among`: others are under way.
    pub(crate) fn wants(&mut self, span: (u64, u64), is_among: bool) -> bool {
        self.has_met |= is_among || span.0 != span.1;
        self.search.is_some() || self.has_met && !self.is_contradicted
    }
}

impl OrderSearch {
    /// Whether it has been noted what was known of a name before the first call about it.
    pub(crate) fn knows(&self, path: PathId) -> bool {
        self.known.contains_key(&path)
    }

    /// Note what is known of a name before the first call about it.
    pub(crate) fn learn(&mut self, paths: &Paths, path: PathId, known: Known) {
        let mut above = paths.above(path);
        let has_moved = above.any(|above| self.changed.contains(&above));
        let known = if has_moved { Known::default() } else { known };
        self.known.insert(path, known);
    }

    pub(crate) fn note(&mut self, paths: &Paths, touch: Touch) {
        self.changed.extend(touch.changed());
        self.noted.push(touch);
        if self.noted.len() >= MOST_NOTED {
            self.end(paths);
        }
    }

    /// Find orders for the calls that were noted.
    pub(crate) fn end(&mut self, paths: &Paths) {
        let noted = std::mem::take(&mut self.noted);
        let known = std::mem::take(&mut self.known);
        self.changed.clear();
        let mut groups = together(&noted, paths);
        groups.sort_by_cached_key(|group| {
            let is_refuted = group.iter().any(|touch| touch.is_refuted);
            (!is_refuted, group.first().map(|touch| touch.span))
        });
        for group in groups {
            let orders = search::find_order(&group, &known, paths, &mut self.effort);
            self.found.unexplained += orders.unexplained;
            self.found.sooner.extend(orders.sooner);
        }
    }
}

impl Touch {
    pub(crate) fn proofs(&self) -> impl Iterator<Item = Proof> {
        self.needs.into_iter().flatten()
    }

    pub(crate) fn effects(&self) -> impl Iterator<Item = Effect> {
        self.does.into_iter().flatten()
    }

    /// The names that it changes.
    fn changed(&self) -> impl Iterator<Item = PathId> {
        self.effects().filter_map(Effect::path)
    }

    /// From where to where it renames something.
    fn renames(&self) -> Option<(PathId, PathId)> {
        match self.does {
            [Some(Effect::Makes(to)), Some(Effect::Removes(from))] => Some((from, to)),
            _ => None,
        }
    }

    /// The descriptions that it uses.
    fn descriptions(&self) -> impl Iterator<Item = u32> {
        let used = match self.file {
            Some((Subject::Description(slot), _)) => Some(slot),
            _ => None,
        };
        used.into_iter().chain(self.base.map(|(slot, _)| slot))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = PathId> {
        let needs = self.proofs().flat_map(Proof::paths);
        needs.chain(self.changed())
    }

    /// Whether it neither shows nor does anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.file.is_none() && self.proofs().next().is_none() && self.effects().next().is_none()
    }

    /// Whether it is about a name that another one changes.
    fn may_show(&self, other: &Self, paths: &Paths) -> bool {
        other.changed().any(|changed| {
            let lists = |need: Proof| need.directory() == Some(paths.parent(changed));
            let mut named = self.paths();
            named.any(|path| paths.is_at_or_below(path, changed)) || self.proofs().any(lists)
        })
    }

    /// The name of what it opened.
    fn opened(&self) -> Option<PathId> {
        let made = self.changed().next();
        made.or_else(|| self.proofs().flat_map(Proof::paths).next())
    }

    /// Whether something may be otherwise after it.
    fn changes(&self) -> bool {
        let reads = matches!(self.file, None | Some((_, Use::Sees { .. })));
        !reads || self.does.iter().any(Option::is_some)
    }
}

impl Proof {
    pub(crate) fn paths(self) -> impl Iterator<Item = PathId> {
        let paths = match self {
            Self::There(path)
            | Self::Missing(path)
            | Self::Empty(path)
            | Self::Filled(path)
            | Self::Count(path, _) => [Some(path), None],
            Self::EitherMissing(one, other) => [Some(one), Some(other)],
            Self::Length(..) | Self::Held(..) => [None; 2],
        };
        paths.into_iter().flatten()
    }

    /// The directory whose entries it is about.
    fn directory(self) -> Option<PathId> {
        match self {
            Self::Empty(path) | Self::Filled(path) | Self::Count(path, _) => Some(path),
            _ => None,
        }
    }
}

impl Effect {
    /// The name that it changes.
    pub(crate) fn path(self) -> Option<PathId> {
        match self {
            Self::Makes(path) | Self::Removes(path) => Some(path),
            Self::Keeps(_) | Self::Lengthens(_) | Self::Locks(..) => None,
        }
    }
}

/// Names of files that are given another length.
fn resized(noted: &[Touch]) -> impl Iterator<Item = PathId> {
    let opened: FxHashMap<Subject, PathId> = (noted.iter())
        .filter_map(|touch| match touch.file? {
            (file, Use::Opens { .. }) => Some((file, touch.opened()?)),
            _ => None,
        })
        .collect();
    noted.iter().filter_map(move |touch| match touch.file? {
        (_, Use::Sees { .. } | Use::Opens { empties: false }) => None,
        (Subject::Name(path), _) => Some(path),
        (file, _) => opened.get(&file).copied(),
    })
}

/// Tell calls apart that have nothing to do with each other: no name or file in common that changes, and no directory that one of them lists.
fn together<'a>(noted: &'a [Touch], paths: &Paths) -> Vec<Vec<&'a Touch>> {
    let names = noted.iter().flat_map(Touch::changed);
    let changed: FxHashSet<PathId> = names.chain(resized(noted)).collect();
    let proofs = noted.iter().flat_map(Touch::proofs);
    let counted: FxHashSet<PathId> = proofs.filter_map(Proof::directory).collect();
    let mut sets = Sets::default();
    for &path in &changed {
        let parent = paths.parent(path);
        if counted.contains(&parent) {
            sets.join(path, parent);
        }
    }
    let mut opened: FxHashMap<Subject, PathId> = FxHashMap::default();
    let mut places = Vec::new();
    for touch in noted {
        let mut first = None;
        for path in touch.paths() {
            let is_listed = |name| name == path && counted.contains(&name);
            let above = paths.above(path);
            for name in above.filter(|name| changed.contains(name) || is_listed(*name)) {
                sets.join(*first.get_or_insert(name), name);
            }
        }
        match touch.file {
            Some((file, Use::Opens { .. })) => opened.extend(first.map(|path| (file, path))),
            Some((file, _)) => first = first.or_else(|| opened.get(&file).copied()),
            None => {}
        }
        places.push(first);
    }
    let mut groups: FxHashMap<PathId, Vec<&Touch>> = FxHashMap::default();
    for (touch, place) in noted.iter().zip(places) {
        if let Some(place) = place {
            groups.entry(sets.of(place)).or_default().push(touch);
        }
    }
    groups.into_values().collect()
}

/// Sets of names that have something to do with each other.
#[derive(Debug, Default)]
struct Sets {
    of: FxHashMap<PathId, PathId>,
}

impl Sets {
    /// The name that stands for the set of a name.
    fn of(&mut self, path: PathId) -> PathId {
        let mut top = path;
        while let Some(&up) = self.of.get(&top) {
            top = up;
        }
        let mut at = path;
        while at != top {
            at = self.of.insert(at, top).unwrap_or(top);
        }
        top
    }

    fn join(&mut self, one: PathId, other: PathId) {
        let (one, other) = (self.of(one), self.of(other));
        if one != other {
            self.of.insert(one, other);
        }
    }
}
