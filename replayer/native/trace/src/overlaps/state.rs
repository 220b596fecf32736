//! What is so between two calls: which names are there and which files they lead to, how many entries directories have, how long files are.

use crate::overlaps::{Effect, Known, Proof, Subject, Touch, Use};
use crate::paths::{PathId, Paths};
use rustc_hash::{FxHashMap, FxHashSet};

/// Something that calls change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cell {
    /// `MISSING`, or the file that it leads to.
    Name(PathId),
    /// How many files this name may have led to.
    Births(PathId),
    /// How many entries a directory has.
    Entries(PathId),
    /// How many names and descriptions lead to a file.
    Links(i64),
    Size(i64),
    /// The file of a description.
    Open(u32),
}

/// What is known of a cell.
type Value = Option<i64>;

/// A name that is not there.
const MISSING: i64 = 0;

/// What is known, and what it was before.
#[derive(Debug)]
pub(super) struct State<'a> {
    paths: &'a Paths,
    cells: FxHashMap<Cell, Value>,
    /// Names that calls change.
    changed: FxHashSet<PathId>,
    /// The names below each of these, and those in each directory.
    below: FxHashMap<PathId, Vec<PathId>>,
    entries: FxHashMap<PathId, Vec<PathId>>,
    /// What was overwritten, in order.
    undo: Vec<(Cell, Value)>,
    hash: u64,
}

/// The file that a name led to after so many others.
fn file(path: PathId, births: i64) -> i64 {
    (i64::from(path.raw()) + 1) << 24 | births
}

impl<'a> State<'a> {
    /// The state before all of these calls.
    pub(super) fn before(
        touches: &[&Touch],
        known: &FxHashMap<PathId, Known>,
        paths: &'a Paths,
    ) -> Self {
        let mut state = Self {
            paths,
            cells: FxHashMap::default(),
            changed: touches.iter().flat_map(|touch| touch.changed()).collect(),
            below: FxHashMap::default(),
            entries: FxHashMap::default(),
            undo: Vec::new(),
            hash: 0,
        };
        let mut all: Vec<PathId> = touches.iter().flat_map(|touch| touch.paths()).collect();
        all.sort_unstable();
        all.dedup();
        for path in all {
            let parent = paths.parent(path);
            for name in [path, parent] {
                let known = known.get(&name).copied().unwrap_or_default();
                let there = known
                    .there
                    .map(|there| if there { file(name, 0) } else { MISSING });
                if state.get(Cell::Name(name)).is_none() {
                    state.put_name(name, there);
                }
                state.put(Cell::Entries(name), known.entries);
            }
            state.entries.entry(parent).or_default().push(path);
            for above in paths
                .above(path)
                .skip(1)
                .filter(|above| state.changed.contains(above))
            {
                state.below.entry(above).or_default().push(path);
            }
        }
        state.undo.clear();
        state
    }

    /// A number that stands for the state.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// How far what is done now can be undone later.
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    pub(super) fn undo(&mut self, mark: usize) {
        while self.undo.len() > mark
            && let Some((cell, value)) = self.undo.pop()
        {
            self.set(cell, value);
        }
    }

    /// What is so now cannot be undone.
    pub(super) fn commit(&mut self) {
        self.undo.clear();
    }

    /// Take a call. None where its result cannot be so; else whether it is known to be so. What is not known is so from then on.
    pub(super) fn take(&mut self, touch: &Touch) -> Option<bool> {
        let mut is_certain = true;
        for need in touch.proofs() {
            is_certain &= self.prove(need)?;
        }
        if let Some((subject, Use::Sees { at, got, asked })) = touch.file {
            is_certain &= self.sees(subject, at, got, asked)?;
        }
        self.apply(touch);
        Some(is_certain)
    }

    /// What the result of a call shows is so, whatever was known.
    pub(super) fn believe(&mut self, touch: &Touch) {
        for need in touch.proofs() {
            match need {
                Proof::There(path) => {
                    for name in self.paths.above(path) {
                        if self.look(name).is_none_or(|file| file == MISSING) {
                            let file = self.another(name);
                            self.put_name(name, Some(file));
                        }
                    }
                }
                Proof::Missing(path) | Proof::EitherMissing(path, _) => {
                    self.put_name(path, Some(MISSING));
                }
                Proof::Empty(path) => self.put(Cell::Entries(path), Some(0)),
                Proof::Count(path, count) => self.put(Cell::Entries(path), Some(count)),
                Proof::Filled(path) => self.put(Cell::Entries(path), None),
                Proof::Long(..) => {}
            }
        }
        if let Some((subject, Use::Sees { at, got, .. })) = touch.file
            && let Some(file) = self.file_of(subject)
        {
            self.put(Cell::Size(file), Some(at.saturating_add(got)));
        }
    }

    /// What a call does, if it did anything.
    fn apply(&mut self, touch: &Touch) {
        let mut moved = None;
        for effect in touch.effects() {
            if let Effect::Removes(path) | Effect::Keeps(path) = effect {
                let file = self.get(Cell::Name(path));
                moved = Some(file);
                self.link(file, 1);
            }
            if let Effect::Removes(path) = effect {
                self.put_name(path, Some(MISSING));
            }
        }
        for effect in touch.effects() {
            if let Effect::Makes(path) = effect {
                match moved {
                    Some(file) => self.arrive(path, file.filter(|&file| file != MISSING)),
                    None => self.make(path, matches!(touch.file, Some((_, Use::Opens { .. })))),
                }
            }
        }
        self.link(moved.flatten(), -1);
        if let Some((subject, uses)) = touch.file {
            self.apply_use(touch, subject, uses);
        }
    }

    fn apply_use(&mut self, touch: &Touch, subject: Subject, uses: Use) {
        if let (Use::Opens { empties }, Subject::Description(slot)) = (uses, subject) {
            let opened = touch.opened().and_then(|path| self.get(Cell::Name(path)));
            self.link(self.get(Cell::Open(slot)), -1);
            self.put(Cell::Open(slot), opened);
            self.link(opened, 1);
            if let (true, Some(file)) = (empties, opened) {
                self.put(Cell::Size(file), Some(0));
            }
            return;
        }
        let Some(file) = self.file_of(subject) else {
            return;
        };
        let size = self.get(Cell::Size(file));
        let now = match uses {
            Use::Reaches(end) => size.map(|size| size.max(end)),
            Use::Grows(count) => size.map(|size| size.saturating_add(count)),
            Use::Cuts(size) => Some(size),
            Use::Alters => None,
            Use::Opens { .. } | Use::Sees { .. } => return,
        };
        self.put(Cell::Size(file), now);
    }

    /// A description is not used any more.
    pub(super) fn close(&mut self, slot: u32) {
        let file = self.get(Cell::Open(slot));
        self.put(Cell::Open(slot), None);
        self.link(file, -1);
    }

    /// The file that is meant, if it is known.
    pub(super) fn file_of(&self, subject: Subject) -> Option<i64> {
        match subject {
            Subject::Description(slot) => self.get(Cell::Open(slot)),
            Subject::Name(path) => self.look(path).filter(|&file| file != MISSING),
        }
    }

    /// A name is given to a file that had another one, and brings along what lies below it.
    fn arrive(&mut self, path: PathId, moved: Option<i64>) {
        if self.look(path).is_none() {
            self.put(Cell::Entries(self.paths.parent(path)), None);
        }
        let file = moved.unwrap_or_else(|| self.another(path));
        self.put_name(path, Some(file));
        self.renew_below(path, None, None);
    }

    /// A file is made where there is none yet.
    fn make(&mut self, path: PathId, is_file: bool) {
        match self.look(path) {
            Some(MISSING) => {
                let file = self.another(path);
                self.put_name(path, Some(file));
                self.put(Cell::Size(file), is_file.then_some(0));
                self.renew_below(path, Some(MISSING), Some(0));
            }
            None => {
                self.put(Cell::Entries(self.paths.parent(path)), None);
                self.put_name(path, Some(self.unknown(path)));
            }
            Some(_) => {}
        }
    }

    fn renew_below(&mut self, path: PathId, name: Value, entries: Value) {
        self.put(Cell::Entries(path), entries);
        for below in self.below.get(&path).cloned().unwrap_or_default() {
            self.put(Cell::Entries(below), entries);
            let had = self.get(Cell::Name(below));
            self.put(Cell::Name(below), name);
            self.link(had, -1);
            self.another(below);
        }
    }

    /// The file that a name leads to of which nothing is known.
    fn unknown(&self, path: PathId) -> i64 {
        file(path, self.get(Cell::Births(path)).unwrap_or(0))
    }

    /// A file that no name has led to yet: from now on this one may.
    fn another(&mut self, path: PathId) -> i64 {
        let births = self.get(Cell::Births(path)).unwrap_or(0) + 1;
        self.put(Cell::Births(path), Some(births));
        file(path, births)
    }

    /// Whether a proof is known to hold; None where it cannot.
    fn prove(&mut self, need: Proof) -> Option<bool> {
        match need {
            Proof::There(path) => {
                if let Some(file) = self.look(path) {
                    return (file != MISSING).then_some(true);
                }
                for name in self.paths.above(path) {
                    if self.get(Cell::Name(name)).is_none() {
                        self.put_name(name, Some(self.unknown(name)));
                    }
                }
                Some(false)
            }
            Proof::Missing(path) => self.prove_missing(path),
            Proof::EitherMissing(one, other) => {
                if [one, other]
                    .iter()
                    .any(|&path| self.look(path) == Some(MISSING))
                {
                    return Some(true);
                }
                self.prove_missing(one)
                    .or_else(|| self.prove_missing(other))
            }
            Proof::Empty(path) => self.prove_count(path, 0),
            Proof::Count(path, count) => self.prove_count(path, count),
            Proof::Filled(path) => (self.get(Cell::Entries(path)) != Some(0)).then_some(true),
            Proof::Long(..) => Some(true),
        }
    }

    fn prove_missing(&mut self, path: PathId) -> Option<bool> {
        if let Some(file) = self.look(path) {
            return (file == MISSING).then_some(true);
        }
        self.put_name(path, Some(MISSING));
        Some(false)
    }

    fn prove_count(&mut self, directory: PathId, count: i64) -> Option<bool> {
        if let Some(entries) = self.get(Cell::Entries(directory)) {
            return (entries == count).then_some(true);
        }
        let names = self.entries.get(&directory).cloned().unwrap_or_default();
        let is_there = |name: &&PathId| {
            self.get(Cell::Name(**name))
                .is_some_and(|file| file != MISSING)
        };
        let there = i64::try_from(names.iter().filter(is_there).count()).unwrap_or(i64::MAX);
        if there > count {
            return None;
        }
        self.put(Cell::Entries(directory), Some(count));
        for name in names {
            if there == count && self.get(Cell::Name(name)).is_none() {
                self.put(Cell::Name(name), Some(MISSING));
            }
        }
        Some(false)
    }

    /// Whether a file can be as long as a read shows.
    fn sees(&mut self, subject: Subject, at: i64, got: i64, asked: i64) -> Option<bool> {
        let Some(file) = self.file_of(subject) else {
            return Some(true);
        };
        let end = at.saturating_add(got);
        let is_exact = got > 0 && got < asked;
        match self.get(Cell::Size(file)) {
            Some(size) if is_exact => (size == end).then_some(true),
            Some(size) if got > 0 => (size >= end).then_some(true),
            Some(size) => (size <= at || asked == 0).then_some(true),
            None if is_exact => {
                self.put(Cell::Size(file), Some(end));
                Some(false)
            }
            None => Some(true),
        }
    }

    /// What a name means: it is not there below one that is not.
    fn look(&self, path: PathId) -> Value {
        let mut above = self
            .paths
            .above(path)
            .filter(|above| self.changed.contains(above));
        if above.any(|above| self.get(Cell::Name(above)) == Some(MISSING)) {
            return Some(MISSING);
        }
        self.get(Cell::Name(path))
    }

    /// A name means something else, or is known now; entries that are known count those that are not.
    fn put_name(&mut self, path: PathId, now: Value) {
        let had = self.get(Cell::Name(path));
        let is_there = |value: Value| value.map(|file| i64::from(file != MISSING));
        if let (Some(then), Some(now)) = (is_there(had), is_there(now)) {
            let directory = Cell::Entries(self.paths.parent(path));
            let entries = self.get(directory);
            self.put(directory, entries.map(|entries| entries + now - then));
        }
        self.link(now, 1);
        self.put(Cell::Name(path), now);
        self.link(had, -1);
    }

    /// A file has more names or descriptions, or fewer; without any, nothing depends on it.
    fn link(&mut self, file: Value, more: i64) {
        if let Some(file) = file.filter(|&file| file != MISSING) {
            let links = self.get(Cell::Links(file)).unwrap_or(0) + more;
            self.put(Cell::Links(file), Some(links));
            if links == 0 {
                self.put(Cell::Links(file), None);
                self.put(Cell::Size(file), None);
            }
        }
    }

    fn get(&self, cell: Cell) -> Value {
        self.cells.get(&cell).copied().flatten()
    }

    fn put(&mut self, cell: Cell, value: Value) {
        let had = self.get(cell);
        if had != value {
            self.undo.push((cell, had));
            self.set(cell, value);
        }
    }

    fn set(&mut self, cell: Cell, value: Value) {
        let had = self.cells.insert(cell, value).flatten();
        self.hash ^= number(cell, had) ^ number(cell, value);
    }
}

/// A number that stands for the value of a cell: 0 where it is not known.
fn number(cell: Cell, value: Value) -> u64 {
    value.map_or(0, |value| {
        let (kind, of) = match cell {
            Cell::Name(path) => (1, i64::from(path.raw())),
            Cell::Births(path) => (2, i64::from(path.raw())),
            Cell::Entries(path) => (3, i64::from(path.raw())),
            Cell::Links(file) => (4, file),
            Cell::Size(file) => (5, file),
            Cell::Open(slot) => (6, i64::from(slot)),
        };
        mix(mix(kind ^ of.cast_unsigned() << 3).wrapping_add(value.cast_unsigned()))
    })
}

/// Spread a number over all bits (splitmix64: Steele, Lea and Flood 2014).
pub(super) fn mix(number: u64) -> u64 {
    let mut number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
