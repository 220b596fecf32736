//! What was there when a request began: the tree of the trace, with what the events before did to it. No file system is touched.

use super::path_map::PathMap;
use std::collections::{BTreeMap, HashMap};

/// Symlinks in one walk (`path_resolution(7)`).
const MOST_LINKS: u32 = 40;
/// Files that a past has had, at most (chosen: 400 MiB); what is made beyond is not remembered.
const MOST_NODES: usize = 8 << 20;
/// Modes of what the trace says no mode of (chosen: the usual ones).
pub(crate) const FILE_MODE: u32 = 0o644;
pub(crate) const DIRECTORY_MODE: u32 = 0o755;

/// A file that a request uses and that was open before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inherited {
    pub(crate) file: u32,
    /// Row of the path that it was opened by.
    pub(crate) path: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    /// The thread of the request that uses it first.
    pub(crate) thread: u32,
}

pub(crate) type NodeId = usize;
const TOP: NodeId = 0;

/// What lies at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory(BTreeMap<Box<[u8]>, NodeId>),
    Link(Box<[u8]>),
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) node: NodeId,
    pub(super) path: u32,
    pub(super) flags: u32,
    pub(super) offset: u64,
}

/// Files, directories and links at a moment of the trace.
#[derive(Debug)]
pub(crate) struct TreeState<'a> {
    pub(super) path_map: &'a PathMap,
    pub(super) nodes: Vec<Node>,
    pub(super) held: HashMap<u32, Held>,
}

impl<'a> TreeState<'a> {
    /// The tree as it was before the trace.
    pub(crate) fn begin(path_map: &'a PathMap) -> Self {
        let top = Node {
            kind: Kind::Directory(BTreeMap::new()),
            size: 0,
            mode: DIRECTORY_MODE,
        };
        let mut tree_state = Self {
            path_map,
            nodes: vec![top],
            held: HashMap::new(),
        };
        for entry in &path_map.tree {
            let kind = match (entry.kind, &entry.link) {
                ('d', _) => Kind::Directory(BTreeMap::new()),
                ('l', Some(link)) => Kind::Link(link.as_slice().into()),
                _ => Kind::File,
            };
            if let Some(path) = path_map.path(entry.path) {
                tree_state.make(path, kind, entry.mode);
                tree_state.resize(entry.path, entry.size);
            }
        }
        tree_state
    }

    /// A file that is open: how it was opened, and where it stands.
    pub(crate) fn inherited(&self, file: u32, thread: u32) -> Option<Inherited> {
        let held = self.held.get(&file)?;
        Some(Inherited {
            file,
            path: held.path,
            flags: held.flags,
            offset: held.offset,
            thread,
        })
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// What lies at a path; directories above are made where they are missing.
    pub(super) fn make(&mut self, path: &[u8], kind: Kind, mode: Option<u32>) -> NodeId {
        let mut at = TOP;
        let mut rest = path;
        while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
            let (name, after) = rest.split_at(slash);
            at = self.directory(at, name);
            rest = after.get(1..).unwrap_or_default();
        }
        let usual = if matches!(kind, Kind::Directory(_)) {
            DIRECTORY_MODE
        } else {
            FILE_MODE
        };
        self.add(at, rest, kind, mode.unwrap_or(usual))
    }

    /// A directory in a directory: links are followed, and what is missing is made.
    fn directory(&mut self, at: NodeId, name: &[u8]) -> NodeId {
        if let Some(id) = self.child(at, name) {
            let mut links = MOST_LINKS;
            let place = self.node(id).map(|node| &node.kind);
            return match place {
                Some(Kind::Link(text)) => {
                    let text = text.clone();
                    self.walk(at, &text, &mut links).unwrap_or(id)
                }
                _ => id,
            };
        }
        self.add(at, name, Kind::Directory(BTreeMap::new()), DIRECTORY_MODE)
    }

    pub(super) fn add(&mut self, directory: NodeId, name: &[u8], kind: Kind, mode: u32) -> NodeId {
        let id = self.add_nameless(kind, mode);
        if id != TOP {
            self.enter(directory, name, id);
        }
        id
    }

    /// Something that is in no directory.
    pub(super) fn add_nameless(&mut self, kind: Kind, mode: u32) -> NodeId {
        let id = self.nodes.len();
        if id >= MOST_NODES {
            return TOP;
        }
        self.nodes.push(Node {
            kind,
            size: 0,
            mode,
        });
        id
    }

    pub(super) fn enter(&mut self, directory: NodeId, name: &[u8], id: NodeId) {
        // `..` is an entry here, so that walks can go up.
        if let Some(Kind::Directory(children)) = self.nodes.get_mut(id).map(|node| &mut node.kind) {
            children.insert(b"..".as_slice().into(), directory);
        }
        if let Some(Kind::Directory(children)) =
            self.nodes.get_mut(directory).map(|node| &mut node.kind)
        {
            children.insert(name.into(), id);
        }
    }

    pub(super) fn leave(&mut self, directory: NodeId, name: &[u8]) -> Option<NodeId> {
        match &mut self.nodes.get_mut(directory)?.kind {
            Kind::Directory(children) => children.remove(name),
            _ => None,
        }
    }

    pub(super) fn child(&self, directory: NodeId, name: &[u8]) -> Option<NodeId> {
        match &self.node(directory)?.kind {
            Kind::Directory(children) => children.get(name).copied(),
            _ => None,
        }
    }

    pub(crate) fn names(&self, directory: NodeId) -> impl Iterator<Item = &[u8]> {
        let children = match self.node(directory).map(|node| &node.kind) {
            Some(Kind::Directory(children)) => Some(children),
            _ => None,
        };
        let names = children.into_iter().flat_map(BTreeMap::keys);
        names.map(|name| &**name).filter(|name| *name != b"..")
    }

    /// Follow a text from a directory, symlinks too; at most so many.
    fn walk(&self, from: NodeId, text: &[u8], links: &mut u32) -> Option<NodeId> {
        let mut at = from;
        for name in text.split(|byte| *byte == b'/') {
            if name.is_empty() || name == b"." {
                continue;
            }
            let next = self.child(at, name)?;
            at = match &self.node(next)?.kind {
                Kind::Link(text) => {
                    *links = links.checked_sub(1)?;
                    self.walk(at, text, links)?
                }
                _ => next,
            };
        }
        Some(at)
    }

    /// What a path means; a symlink in the last place is followed.
    pub(crate) fn find(&self, path: &[u8]) -> Option<NodeId> {
        self.walk(TOP, path, &mut { MOST_LINKS })
    }

    /// The directory that holds the last name of a path, and the name.
    pub(super) fn home<'p>(&self, path: &'p [u8]) -> Option<(NodeId, &'p [u8])> {
        let (above, name) = crate::path::split(path);
        Some((self.find(above)?, name))
    }

    /// The directory and the name that a path leads to through symlinks in its last place; `None` where there are none.
    pub(super) fn behind_links(&self, path: &[u8]) -> Option<(NodeId, Box<[u8]>)> {
        let (mut directory, name) = self.home(path)?;
        let mut name: Box<[u8]> = name.into();
        let mut links = MOST_LINKS;
        while let Some(Kind::Link(text)) = self
            .child(directory, &name)
            .and_then(|id| self.node(id))
            .map(|node| &node.kind)
        {
            links = links.checked_sub(1)?;
            let (above, leaf) = crate::path::split(text);
            directory = self.walk(directory, above, &mut links)?;
            name = leaf.into();
        }
        (links < MOST_LINKS).then_some((directory, name))
    }

    pub(crate) fn find_itself(&self, path: &[u8]) -> Option<NodeId> {
        let (directory, name) = self.home(path)?;
        self.child(directory, name)
    }

    pub(super) fn resize(&mut self, row: u32, size: u64) {
        let found = self.path_map.path(row).and_then(|path| self.find(path));
        if let Some(node) = found.and_then(|id| self.nodes.get_mut(id)) {
            node.size = size;
        }
    }
}
