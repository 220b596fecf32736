//! The tree that a plan wants below a run's folder: every directory, and which entries lie in which.

use crate::content::FileData;
use crate::path::{split, within};
use crate::program::{Dataset, Entry, EntryKind, Program, Scope};
use crate::replay::names::{own_text, write_own, write_suffix};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Directories that no dataset lists (plan format 1).
const UNLISTED_MODE: u32 = 0o755;

/// A directory below the run's folder ("" is that folder itself).
pub(crate) struct Directory {
    pub(crate) path: Box<[u8]>,
    pub(crate) mode: u32,
    /// Whose files and links lie in it: a dataset's, or those of all users of a trace.
    copies: Vec<Copy>,
    /// The directories in it.
    pub(crate) inner: Range<usize>,
}

/// A directory of one copy of a dataset.
#[derive(Clone, Copy, Debug)]
struct Copy {
    dataset: u32,
    user: u32,
    /// Number of the directory within the dataset.
    place: u32,
}

impl Directory {
    /// The path of the directory that it lies in, and its own name.
    pub(crate) fn split(&self) -> (&[u8], &[u8]) {
        split(&self.path)
    }

    pub(crate) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        within(&self.path, name)
    }
}

/// A file or link to be in a directory.
pub(crate) struct Leaf<'a> {
    pub(crate) name: Cow<'a, [u8]>,
    pub(crate) entry: &'a Entry,
    pub(crate) link: Cow<'a, [u8]>,
    pub(crate) data: FileData,
}

/// Entries of a dataset by directory: the same for every copy.
struct Shape {
    /// Path within the dataset ("" is its own directory) to mode and files and links.
    places: BTreeMap<Vec<u8>, Place>,
    /// The leaves of each place, by its number.
    leaves: Vec<Vec<u32>>,
}

#[derive(Default)]
struct Place {
    mode: Option<u32>,
    /// Where the own component of its path ends (scope `own`).
    own_end: usize,
    leaves: Vec<u32>,
    number: u32,
}

impl Shape {
    fn of(dataset: &Dataset) -> Self {
        let mut places: BTreeMap<Vec<u8>, Place> = BTreeMap::new();
        places.entry(Vec::new()).or_default();
        let entries = if dataset.laid_out {
            dataset.entries.as_slice()
        } else {
            &[]
        };
        for (number, entry) in (0_u32..).zip(entries) {
            let path = dataset.path(entry);
            let is_directory = entry.kind == EntryKind::Directory;
            let home = if is_directory { path } else { split(path).0 };
            ensure(&mut places, home);
            if let Some(place) = places.get_mut(home) {
                if is_directory {
                    place.mode = Some(entry.mode);
                    let own = dataset.own(number).unwrap_or_default();
                    place.own_end = own.path as usize;
                } else {
                    place.leaves.push(number);
                }
            }
        }
        let mut leaves = Vec::with_capacity(places.len());
        for (number, place) in (0_u32..).zip(places.values_mut()) {
            place.number = number;
            leaves.push(std::mem::take(&mut place.leaves));
        }
        Self { places, leaves }
    }

    fn has_leaves(&self, place: &Place) -> bool {
        let leaves = self.leaves.get(place.number as usize);
        leaves.is_some_and(|leaves| !leaves.is_empty())
    }
}

/// Have a directory and those above it.
fn ensure(places: &mut BTreeMap<Vec<u8>, Place>, path: &[u8]) {
    let mut path = path;
    while !places.contains_key(path) {
        places.insert(path.to_vec(), Place::default());
        path = split(path).0;
    }
}

pub(crate) struct Tree<'a> {
    datasets: Vec<&'a Dataset>,
    users: u32,
    shapes: Vec<Shape>,
    /// By depth, then by path: parents before children, children of one parent side by side.
    pub(crate) directories: Vec<Directory>,
    /// Where each depth's directories are; the first is the run's folder alone.
    pub(crate) levels: Vec<Range<usize>>,
}

impl<'a> Tree<'a> {
    pub(crate) fn of(program: &'a Program) -> Self {
        let of_traces = program.replays.datasets.iter();
        let datasets: Vec<&Dataset> = program.datasets.iter().chain(of_traces).collect();
        let shapes: Vec<Shape> = datasets.iter().map(|dataset| Shape::of(dataset)).collect();
        let mut directories = BTreeMap::new();
        directories.insert((0, Box::default()), (UNLISTED_MODE, Vec::new()));
        for (number, (dataset, shape)) in (0_u32..).zip(datasets.iter().zip(&shapes)) {
            let users = copies(dataset, program.users);
            above(dataset.directory.as_bytes(), &mut directories);
            for user in 0..users {
                add_copy(dataset, shape, (number, user), &mut directories);
            }
        }
        let mut tree = Self {
            datasets,
            users: program.users,
            shapes,
            directories: Vec::new(),
            levels: Vec::new(),
        };
        tree.fill(directories);
        tree
    }

    fn fill(&mut self, directories: Directories) {
        let mut depths: Vec<usize> = Vec::with_capacity(directories.len());
        for ((depth, path), (mode, copies)) in directories {
            depths.push(depth);
            self.directories.push(Directory {
                path,
                mode,
                copies,
                inner: 0..0,
            });
        }
        let mut from = 0;
        for level in depths.chunk_by(|one, two| one == two) {
            self.levels.push(from..from + level.len());
            from += level.len();
        }
        for pair in 0..self.levels.len().saturating_sub(1) {
            self.link(pair);
        }
    }

    /// Tell the directories of a level which ones of the next are theirs: both are in the same order.
    fn link(&mut self, level: usize) {
        let (Some(outer), Some(inner)) = (self.levels.get(level), self.levels.get(level + 1))
        else {
            return;
        };
        let (before, rest) = self.directories.split_at_mut(inner.start);
        let children = rest.get(..inner.len()).unwrap_or_default();
        for directory in before.get_mut(outer.clone()).unwrap_or_default() {
            let from = children.partition_point(|child| *child.split().0 < *directory.path);
            let to = children.partition_point(|child| *child.split().0 <= *directory.path);
            directory.inner = inner.start + from..inner.start + to;
        }
    }

    /// How many files and links lie in a directory.
    pub(crate) fn leaf_count(&self, directory: &Directory) -> usize {
        let copies = directory.copies.iter();
        copies.map(|copy| self.numbers(*copy).len()).sum()
    }

    /// The entries of a copy that lie in its directory.
    fn numbers(&self, copy: Copy) -> &[u32] {
        let shape = self.shapes.get(copy.dataset as usize);
        let leaves = shape.and_then(|shape| shape.leaves.get(copy.place as usize));
        leaves.map_or(&[], Vec::as_slice)
    }

    /// Files and links of a directory, in the plan's order.
    pub(crate) fn leaves(&self, directory: &Directory) -> impl Iterator<Item = Leaf<'_>> {
        self.leaves_in(directory, 0..usize::MAX)
    }

    pub(crate) fn leaves_in(
        &self,
        directory: &Directory,
        range: Range<usize>,
    ) -> impl Iterator<Item = Leaf<'_>> {
        let mut skip = range.start;
        let leaves = directory.copies.iter().flat_map(move |copy| {
            let numbers = self.numbers(*copy);
            let from = skip.min(numbers.len());
            skip -= from;
            let naming = self.naming(*copy);
            let numbers = numbers.get(from..).unwrap_or_default().iter();
            numbers.filter_map(move |number| naming.as_ref()?.leaf(*number))
        });
        leaves.take(range.len())
    }

    fn naming(&self, copy: Copy) -> Option<Naming<'_>> {
        let dataset = *self.datasets.get(copy.dataset as usize)?;
        Some(Naming {
            dataset,
            copy,
            suffix: suffix(dataset, copy.user),
        })
    }

    /// How many entries there are, the run's folder not counted, and how many bytes.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let mut entries = self.directories.len() as u64 - 1;
        let mut bytes = 0_u64;
        for dataset in self.datasets.iter().filter(|dataset| dataset.laid_out) {
            let copies = u64::from(copies(dataset, self.users));
            let leaves = dataset
                .entries
                .iter()
                .filter(|entry| entry.kind != EntryKind::Directory);
            let (count, size) = leaves.fold((0_u64, 0_u64), |(count, size), entry| {
                (count + 1, size.saturating_add(entry.size))
            });
            entries += copies * count;
            bytes = bytes.saturating_add(copies.saturating_mul(size));
        }
        (entries, bytes)
    }
}

/// Directories by (depth, path).
type Directories = BTreeMap<(usize, Box<[u8]>), (u32, Vec<Copy>)>;

fn depth(path: &[u8]) -> usize {
    if path.is_empty() {
        0
    } else {
        path.split(|byte| *byte == b'/').count()
    }
}

/// Add a dataset's directory and those above it.
fn above(path: &[u8], directories: &mut Directories) {
    let mut path = path;
    while !path.is_empty() {
        directories
            .entry((depth(path), path.into()))
            .or_insert((UNLISTED_MODE, Vec::new()));
        path = split(path).0;
    }
}

fn add_copy(
    dataset: &Dataset,
    shape: &Shape,
    (number, user): (u32, u32),
    directories: &mut Directories,
) {
    let root = dataset.root_of(user);
    let suffix = suffix(dataset, user);
    for (path, place) in &shape.places {
        let mut whole = root.clone();
        if !path.is_empty() {
            whole.push(b'/');
            write_own(path, place.own_end, &suffix, &mut whole);
        }
        let copy = Copy {
            dataset: number,
            user,
            place: place.number,
        };
        let key = (depth(&whole), whole.into());
        let (mode, copies) = directories
            .entry(key)
            .or_insert((UNLISTED_MODE, Vec::new()));
        if let Some(listed) = place.mode {
            *mode = listed;
        }
        if shape.has_leaves(place) {
            copies.push(copy);
        }
    }
}

fn copies(dataset: &Dataset, users: u32) -> u32 {
    match dataset.scope {
        Scope::Shared => 1,
        // A trace that leaves nothing to its users has no copies of it.
        Scope::Own if dataset.entries.is_empty() => 0,
        Scope::User | Scope::Own => users,
    }
}

/// What stands behind a user's own names.
fn suffix(dataset: &Dataset, user: u32) -> Vec<u8> {
    let mut suffix = Vec::new();
    if dataset.scope == Scope::Own {
        write_suffix(user, 0, &mut suffix);
    }
    suffix
}

/// How the entries of a copy are named.
struct Naming<'a> {
    dataset: &'a Dataset,
    copy: Copy,
    suffix: Vec<u8>,
}

impl<'a> Naming<'a> {
    fn leaf(&self, number: u32) -> Option<Leaf<'a>> {
        let Self { dataset, copy, .. } = self;
        let entry = dataset.entries.get(number as usize)?;
        let path = dataset.path(entry);
        let name = split(path).1;
        let link = dataset.link(entry).strip_suffix(b"\0").unwrap_or_default();
        let own = dataset.own(number).unwrap_or_default();
        // What lies below an own directory keeps its name.
        let is_top = own.path as usize == path.len();
        let name_end = if is_top { name.len() } else { 0 };
        let place = (copy.dataset, number, copy.user);
        Some(Leaf {
            name: own_text(name, name_end, &self.suffix),
            entry,
            link: own_text(link, own.link as usize, &self.suffix),
            data: FileData::new(place, entry.size, dataset.content),
        })
    }
}
