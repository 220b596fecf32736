//! What a performance finds that is its own: entries, topmost paths, and the paths that name them.

use super::path_map::{PathMap, parent};
use super::survey::Wanted;
use super::table::Table;
use super::tree_state::{DIRECTORY_MODE, FILE_MODE, Kind, TreeState};
use crate::program::EntryKind;
use crate::replay::program::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Permission bits of entries: none gets another's identity.
const MODE_BITS: u32 = 0o1777;
/// A directory of its own is one that a performance can work in, and remove.
const ALL_OF_OWNER: u32 = 0o700;

/// Something that is there when a performance begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The row of its path, if it has one.
    pub(crate) row: Option<u32>,
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) link: Box<[u8]>,
}

impl Found {
    fn new(kind: EntryKind, size: u64, mode: u32) -> Found {
        let mode = mode & MODE_BITS;
        Found {
            row: None,
            kind,
            size: if kind == EntryKind::File { size } else { 0 },
            mode: if kind == EntryKind::Directory {
                mode | ALL_OF_OWNER
            } else {
                mode
            },
            link: Box::default(),
        }
    }

    fn linked(mut self, link: &[u8]) -> Found {
        self.link = link.into();
        self
    }
}

/// Entries by path: parents come before children.
pub(crate) type Entries = BTreeMap<Box<[u8]>, Found>;

pub(crate) fn shared_of_tree(path_map: &PathMap) -> Entries {
    entries_of_tree(path_map, |path| path_map.own_end_of(path) == 0)
}

/// What of the tree each performance of the whole trace has for itself.
pub(crate) fn own_of_tree(path_map: &PathMap) -> Entries {
    let mut entries = entries_of_tree(path_map, |path| path_map.own_end_of(path) > 0);
    let directories: HashSet<Box<[u8]>> = entries
        .iter()
        .filter(|(_, found)| found.kind == EntryKind::Directory)
        .map(|(path, _)| path.clone())
        .collect();
    // What lies in no directory cannot be made; a proper trace has none.
    entries.retain(|path, _| {
        path_map.own_end_of(path) == path.len() || directories.contains(parent(path))
    });
    entries
}

fn entries_of_tree(path_map: &PathMap, wanted: impl Fn(&[u8]) -> bool) -> Entries {
    let entries = path_map.tree.iter().filter_map(|entry| {
        let path = path_map.path(entry.path).filter(|path| wanted(path))?;
        let found = match (entry.kind, &entry.link) {
            ('d', _) => Found::new(
                EntryKind::Directory,
                0,
                entry.mode.unwrap_or(DIRECTORY_MODE),
            ),
            ('l', Some(link)) => Found::new(EntryKind::Link, 0, 0).linked(link),
            _ => {
                let size = entry.size.min(super::operands::MOST_BYTES);
                Found::new(EntryKind::File, size, entry.mode.unwrap_or(FILE_MODE))
            }
        };
        let row = Some(entry.path);
        Some((path.into(), Found { row, ..found }))
    });
    entries.collect()
}

/// What a request finds of its own when it begins: of the paths that it uses, what was there.
pub(crate) fn own_of_past(
    tree_state: &TreeState<'_>,
    path_map: &PathMap,
    wanted: &Wanted,
) -> Entries {
    let inherited = wanted.used.iter();
    let inherited = inherited.filter_map(|(file, thread)| tree_state.inherited(*file, *thread));
    let rows = wanted.paths.iter().copied();
    let rows = rows.chain(inherited.map(|held| held.path));
    let mut gathering = Gathering {
        tree_state,
        path_map,
        entries: Entries::new(),
        waiting: Vec::new(),
    };
    for path in rows.filter_map(|row| path_map.path(row)) {
        gathering.waiting.push(path.into());
    }
    for path in wanted.listed.iter().filter_map(|row| path_map.path(*row)) {
        gathering.list(path);
    }
    while let Some(path) = gathering.waiting.pop() {
        gathering.take(&path);
    }
    let mut entries = gathering.entries;
    for row in &wanted.paths {
        let found = path_map.path(*row).and_then(|path| entries.get_mut(path));
        if let Some(found) = found {
            found.row = Some(*row);
        }
    }
    entries
}

struct Gathering<'a> {
    tree_state: &'a TreeState<'a>,
    path_map: &'a PathMap,
    entries: Entries,
    waiting: Vec<Box<[u8]>>,
}

impl Gathering<'_> {
    /// All that is in a directory of its own.
    fn list(&mut self, path: &[u8]) {
        if self.path_map.own_end_of(path) == 0 {
            return;
        }
        let Some(directory) = self.tree_state.find(path) else {
            return;
        };
        let names = self.tree_state.names(directory);
        let children = names.map(|name| [path, b"/", name].concat().into_boxed_slice());
        self.waiting.extend(children);
    }

    /// A path and what is above it, down from its topmost own component.
    fn take(&mut self, path: &[u8]) {
        let top = self.path_map.own_end_of(path);
        if top == 0 {
            return;
        }
        let slashes = path.iter().enumerate().skip(top);
        let slashes = slashes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let ends: Vec<usize> = slashes.chain([path.len()]).collect();
        for end in ends {
            let (Some(above), Some(rest)) = (path.get(..end), path.get(end..)) else {
                return;
            };
            if !self.enter(above, rest) {
                return;
            }
        }
    }

    /// Take what lies at a path. False where a longer path does not go on below it.
    fn enter(&mut self, path: &[u8], rest: &[u8]) -> bool {
        if let Some(known) = self.entries.get(path) {
            return known.kind == EntryKind::Directory;
        }
        let found = self.tree_state.find_itself(path);
        let Some(node) = found.and_then(|id| self.tree_state.node(id)) else {
            return false;
        };
        let found = match &node.kind {
            Kind::File => Found::new(EntryKind::File, node.size, node.mode),
            Kind::Directory(_) => Found::new(EntryKind::Directory, 0, node.mode),
            Kind::Link(text) => {
                if !crate::path::link_stays_inside(path, text) {
                    return false;
                }
                // Where it leads must be there too.
                let target = [&super::path_map::target(path, text), rest].concat();
                self.waiting.push(target.into());
                Found::new(EntryKind::Link, 0, 0).linked(text)
            }
        };
        let goes_on = found.kind == EntryKind::Directory;
        self.entries.insert(path.into(), found);
        goes_on
    }
}

/// The rows of the topmost own paths among some.
pub(crate) fn tops<'a>(path_map: &PathMap, paths: impl Iterator<Item = &'a [u8]>) -> BTreeSet<u32> {
    paths.filter_map(|path| path_map.top(path)).collect()
}

/// Entries as a replay program has them.
pub(crate) fn numbered(entries: &Entries, path_map: &PathMap, table: &Table) -> Box<[Entry]> {
    let entries = entries.iter().filter_map(|(path, found)| {
        let of_row = found.row.and_then(|row| table.number(row));
        Some(Entry {
            path: of_row.or_else(|| table.number_of(path))?,
            kind: found.kind,
            size: found.size,
            mode: found.mode,
            link: found.link.clone(),
            link_own_end: path_map.link_mark(path, &found.link).unwrap_or(0),
        })
    });
    entries.collect()
}
