//! What is so between two calls: which names are there and which files they lead to, how many entries directories have, how long files are.

use crate::overlaps::{Effect, Known, Proof, Subject, Touch, Use};
use crate::paths::{NameId, PathId, Paths};
use rustc_hash::{FxHashMap, FxHashSet};

/// Something that calls change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cell {
    /// What a name in a directory leads to: `MISSING`, or a file.
    Name(i64, NameId),
    /// How many files this name may have led to.
    Births(i64, NameId),
    /// How many entries a directory has.
    Entries(i64),
    /// All entries of a directory are known: other names are not there.
    Whole(i64),
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
    /// Paths at or below names that calls change. All others are the same directories all the time.
    moving: FxHashSet<PathId>,
    /// The names of each directory that were known ever.
    names: FxHashMap<i64, Vec<NameId>>,
    /// Where the paths of the call that is taken begin: an open directory, and its path.
    base: Option<(u32, PathId)>,
    /// What was overwritten, in order.
    undo: Vec<(Cell, Value)>,
    hash: u64,
}

/// The file that a name led to after so many others.
fn file((directory, name): Entry, births: i64) -> i64 {
    let number = mix(mix(directory.cast_unsigned()) ^ u64::from(name.raw()));
    (mix(number.wrapping_add(births.cast_unsigned())) >> 1 | 1).cast_signed()
}

/// What a call means, by numbers: a file, the names and directories that it is about, and those that it changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Meant {
    file: Option<i64>,
    shown: Vec<i64>,
    changed: Vec<i64>,
}

impl Meant {
    /// Whether the order of two calls may matter, if one of them changes something.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let shows =
            |one: &Self, other: &Self| one.shown.iter().any(|it| other.changed.contains(it));
        let is_one_file = self.file.is_some() && self.file == other.file;
        is_one_file || shows(self, other) || shows(other, self)
    }
}

/// A name in a directory. Both are the same wherever the directory is moved to.
type Entry = (i64, NameId);

impl<'a> State<'a> {
    /// The state before all of these calls.
    pub(super) fn before(
        touches: &[&Touch],
        known: &FxHashMap<PathId, Known>,
        paths: &'a Paths,
    ) -> Self {
        let changed: FxHashSet<PathId> = touches.iter().flat_map(|touch| touch.changed()).collect();
        let mut all: Vec<PathId> = (touches.iter())
            .flat_map(|touch| touch.paths())
            .flat_map(|path| [path, paths.parent(path)])
            .collect();
        all.sort_unstable();
        all.dedup();
        let mut moving = FxHashSet::default();
        for &path in &all {
            let line: Vec<PathId> = paths.above(path).collect();
            let top = line.iter().rposition(|above| changed.contains(above));
            moving.extend(line.into_iter().take(top.map_or(0, |top| top + 1)));
        }
        let mut state = Self {
            paths,
            cells: FxHashMap::default(),
            moving,
            names: FxHashMap::default(),
            base: None,
            undo: Vec::new(),
            hash: 0,
        };
        for path in all {
            let known = known.get(&path).copied().unwrap_or_default();
            if let (Some(entry), Some(there)) = (state.entry(path), known.there) {
                let file = if there { state.unknown(entry) } else { MISSING };
                state.put_name(entry, Some(file));
            }
            if let Some(directory) = state.directory(path) {
                state.put(Cell::Entries(directory), known.entries);
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
        self.base = touch.base;
        let mut is_certain = self.may_replace(touch).then_some(true)?;
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
        self.base = touch.base;
        for need in touch.proofs() {
            match need {
                Proof::There(path) => self.believe_there(path),
                Proof::Missing(path) | Proof::EitherMissing(path, _) => {
                    if let Some(entry) = self.entry(path) {
                        self.put_name(entry, Some(MISSING));
                    }
                }
                Proof::Empty(path) => self.believe_entries(path, Some(0)),
                Proof::Count(path, count) => self.believe_entries(path, Some(count)),
                Proof::Filled(path) => self.believe_entries(path, None),
                Proof::Length(..) | Proof::Held(..) => {}
            }
        }
        if let Some((_, to)) = touch.renames()
            && let Some(replaced) = self.directory(to)
            && !self.may_replace(touch)
        {
            self.put(Cell::Entries(replaced), None);
        }
        if let Some((subject, Use::Sees { at, got, .. })) = touch.file
            && let Some(file) = self.file_of(subject)
        {
            self.put(Cell::Size(file), Some(at.saturating_add(got)));
        }
    }

    fn believe_there(&mut self, path: PathId) {
        if self.open_at(path).is_some() {
            return;
        }
        let parent = self.paths.parent(path);
        if self.directory(parent).is_none() {
            self.believe_there(parent);
        }
        if let Some(entry) = self.entry(path)
            && self.value(entry).is_none_or(|file| file == MISSING)
        {
            let file = self.another(entry);
            self.put_name(entry, Some(file));
        }
    }

    fn believe_entries(&mut self, path: PathId, entries: Value) {
        self.believe_there(path);
        if let Some(directory) = self.directory(path) {
            self.put(Cell::Entries(directory), entries);
        }
    }

    /// What a call does, if it did anything.
    fn apply(&mut self, touch: &Touch) {
        // Where both names lead to one file, a rename does nothing (rename(2)).
        if let Some((from, to)) = touch.renames()
            && self.look(from).is_some_and(|file| file != MISSING)
            && self.look(from) == self.look(to)
        {
            return;
        }
        let mut moved = None;
        for effect in touch.effects() {
            if let Effect::Removes(path) | Effect::Keeps(path) = effect {
                let entry = self.entry(path);
                let file = entry.and_then(|entry| self.value(entry));
                moved = Some(file);
                self.link(file, 1);
                if let (Effect::Removes(_), Some(entry)) = (effect, entry) {
                    self.put_name(entry, Some(MISSING));
                }
            }
        }
        for effect in touch.effects() {
            if let Effect::Makes(path) = effect
                && let Some(entry) = self.entry(path)
            {
                match moved {
                    Some(file) => self.arrive(entry, file.filter(|&file| file != MISSING)),
                    None => self.make(entry, matches!(touch.file, Some((_, Use::Opens { .. })))),
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
            let opened = touch.opened().and_then(|path| self.look(path));
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

    /// What a call means now.
    pub(super) fn meant(&mut self, touch: &Touch) -> Meant {
        self.base = touch.base;
        let key = |path| self.entry(path).map(|entry| file(entry, 0));
        let listed = touch.proofs().filter_map(Proof::directory);
        let listed = listed.filter_map(|path| self.directory(path));
        let holders = touch.changed().map(|path| self.paths.parent(path));
        let holders = holders.filter_map(|path| self.directory(path));
        Meant {
            file: touch.file.and_then(|(subject, _)| self.file_of(subject)),
            shown: touch.paths().filter_map(key).chain(listed).collect(),
            changed: touch.changed().filter_map(key).chain(holders).collect(),
        }
    }

    /// A name is given to a file that had another one.
    fn arrive(&mut self, entry: Entry, moved: Option<i64>) {
        if self.value(entry).is_none() {
            self.put(Cell::Entries(entry.0), None);
        }
        let file = moved.unwrap_or_else(|| self.another(entry));
        self.put_name(entry, Some(file));
    }

    /// A file is made where there is none yet.
    fn make(&mut self, entry: Entry, is_file: bool) {
        match self.value(entry) {
            Some(MISSING) => {
                let file = self.another(entry);
                self.put_name(entry, Some(file));
                if is_file {
                    self.put(Cell::Size(file), Some(0));
                } else {
                    self.put(Cell::Entries(file), Some(0));
                    self.put(Cell::Whole(file), Some(1));
                }
            }
            None => {
                self.put(Cell::Entries(entry.0), None);
                self.put_name(entry, Some(self.unknown(entry)));
            }
            Some(_) => {}
        }
    }

    /// Whether what a rename replaces can be replaced: a directory with entries cannot.
    fn may_replace(&self, touch: &Touch) -> bool {
        touch.renames().is_none_or(|(from, to)| {
            let replaced = self.look(to).filter(|&file| file != MISSING);
            let is_other = replaced.is_some() && replaced != self.look(from);
            let entries = replaced.and_then(|file| self.get(Cell::Entries(file)));
            !is_other || entries.is_none_or(|entries| entries <= 0)
        })
    }

    /// The file that a name leads to of which nothing is known.
    fn unknown(&self, (directory, name): Entry) -> i64 {
        let births = self.get(Cell::Births(directory, name)).unwrap_or(0);
        file((directory, name), births)
    }

    /// A file that no name has led to yet: from now on this one may.
    fn another(&mut self, (directory, name): Entry) -> i64 {
        let births = self.get(Cell::Births(directory, name)).unwrap_or(0) + 1;
        self.put(Cell::Births(directory, name), Some(births));
        file((directory, name), births)
    }

    /// Whether a proof is known to hold; None where it cannot.
    fn prove(&mut self, need: Proof) -> Option<bool> {
        match need {
            // It is open.
            Proof::There(path) if self.open_at(path).is_some() => Some(true),
            Proof::There(path) => {
                if let Some(file) = self.look(path) {
                    return (file != MISSING).then_some(true);
                }
                for entry in self.way(path) {
                    if self.value(entry).is_none() {
                        self.put_name(entry, Some(self.unknown(entry)));
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
            Proof::Filled(path) => {
                let entries = self.get(Cell::Entries(self.directory(path)?));
                (entries != Some(0)).then_some(true)
            }
            Proof::Length(..) | Proof::Held(..) => Some(true),
        }
    }

    fn prove_missing(&mut self, path: PathId) -> Option<bool> {
        let now = self.look(path);
        if let (Some(file), Some(open)) = (now, self.open_at(path)) {
            return (file != open).then_some(true);
        }
        if let Some(file) = now {
            return (file == MISSING).then_some(true);
        }
        if let Some(entry) = self.entry(path) {
            self.put_name(entry, Some(MISSING));
        }
        Some(false)
    }

    fn prove_count(&mut self, path: PathId, count: i64) -> Option<bool> {
        let directory = self.directory(path)?;
        if let Some(entries) = self.get(Cell::Entries(directory)) {
            return (entries == count).then_some(true);
        }
        let names = self.names.get(&directory).into_iter().flatten();
        let is_there = |name: &&NameId| {
            self.get(Cell::Name(directory, **name))
                .is_some_and(|file| file != MISSING)
        };
        let there = i64::try_from(names.filter(is_there).count()).unwrap_or(i64::MAX);
        if there > count {
            return None;
        }
        self.put(Cell::Entries(directory), Some(count));
        if there == count {
            self.put(Cell::Whole(directory), Some(1));
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

    /// The open directory where the paths of the call begin, if this is its path.
    fn open_at(&self, path: PathId) -> Option<i64> {
        let (slot, _) = self.base.filter(|&(_, at)| at == path)?;
        self.get(Cell::Open(slot))
    }

    /// The directory that a path leads to. None where it is known to be missing.
    fn directory(&self, path: PathId) -> Option<i64> {
        if !self.moving.contains(&path) {
            return Some(-1 - i64::from(path.raw()));
        }
        self.open_at(path).or_else(|| {
            let entry = self.entry(path)?;
            let file = self.value(entry).unwrap_or_else(|| self.unknown(entry));
            (file != MISSING).then_some(file)
        })
    }

    /// The directory that a path's last name is in. None where that is known to be missing.
    fn entry(&self, path: PathId) -> Option<Entry> {
        let directory = self.directory(self.paths.parent(path))?;
        Some((directory, self.paths.name(path)))
    }

    /// The names that lead to a path, from where it begins.
    fn way(&self, path: PathId) -> Vec<Entry> {
        let is_base = |path: &PathId| self.open_at(*path).is_some();
        let above = self.paths.above(path).take_while(|path| !is_base(path));
        above.filter_map(|path| self.entry(path)).collect()
    }

    /// What a path means: nothing is there below what is not.
    fn look(&self, path: PathId) -> Value {
        match self.entry(path) {
            Some(entry) => self.value(entry),
            None => Some(MISSING),
        }
    }

    fn value(&self, (directory, name): Entry) -> Value {
        let known = self.get(Cell::Name(directory, name));
        known.or_else(|| self.get(Cell::Whole(directory)).map(|_| MISSING))
    }

    /// A name means something else, or is known now; entries that are known count those that are not.
    fn put_name(&mut self, (directory, name): Entry, now: Value) {
        let had = self.value((directory, name));
        let is_there = |value: Value| value.map(|file| i64::from(file != MISSING));
        if let (Some(then), Some(now)) = (is_there(had), is_there(now)) {
            let entries = self.get(Cell::Entries(directory));
            let entries = entries.map(|entries| entries + now - then);
            self.put(Cell::Entries(directory), entries);
        }
        let names = self.names.entry(directory).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
        self.link(now, 1);
        self.put(Cell::Name(directory, name), now);
        self.link(had, -1);
    }

    /// A file has more names or descriptions, or fewer; without any, nothing depends on it.
    fn link(&mut self, file: Value, more: i64) {
        if let Some(file) = file.filter(|&file| file != MISSING) {
            let links = self.get(Cell::Links(file)).unwrap_or(0) + more;
            self.put(Cell::Links(file), Some(links));
            if links == 0 {
                for cell in [Cell::Links, Cell::Size, Cell::Entries, Cell::Whole] {
                    self.put(cell(file), None);
                }
                for name in self.names.get(&file).cloned().unwrap_or_default() {
                    self.put(Cell::Name(file, name), None);
                    self.put(Cell::Births(file, name), None);
                }
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
            Cell::Name(directory, name) => (1, file((directory, name), 0)),
            Cell::Births(directory, name) => (2, file((directory, name), 0)),
            Cell::Entries(file) => (3, file),
            Cell::Whole(file) => (4, file),
            Cell::Links(file) => (5, file),
            Cell::Size(file) => (6, file),
            Cell::Open(slot) => (7, i64::from(slot)),
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
