//! The tree as it is believed to be at each event: names, files, and what was there before the trace began.
//!
//! What is not known is inferred from results: see `inference.rs`. Nothing here knows about calls.

pub(crate) mod inference;
pub(crate) mod listings;
pub(crate) mod sizes;

use crate::call::FileKind;
use crate::paths::{NameId, PathId, Paths};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A file by number: what names lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub(crate) const TOP: Self = Self(0);

    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// What is known of a file.
#[derive(Debug, Clone, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states"
)]
pub(crate) struct Node {
    pub(crate) kind: FileKind,
    /// Where it was before the trace began; None if it was not there.
    pub(crate) origin: Option<(NodeId, NameId)>,
    /// Where it may have been: its creation could as well have been an opening.
    pub(crate) doubtful_origin: Option<(NodeId, NameId)>,
    pub(crate) mode: Option<u32>,
    /// It was asked whether it may be executed, and it may.
    pub(crate) executable: bool,
    /// Size before the trace, and whether that is proven or only the least that reads need.
    pub(crate) first_size: i64,
    pub(crate) first_size_is_exact: bool,
    /// Size now, as far as it is known.
    pub(crate) size: i64,
    /// That was the size when an event showed it last, and events have told of all changes since.
    pub(crate) size_is_seen: bool,
    /// Its content was changed by the trace.
    pub(crate) changed: bool,
    /// It was given a size: what is there now says nothing of what was there before.
    pub(crate) resized: bool,
    /// An event has shown that it was there.
    pub(crate) confirmed: bool,
    /// A walk has passed through it, or has ended at it.
    pub(crate) walked: bool,
    /// A directory whose entries an event has read.
    pub(crate) listed: bool,
    /// A directory of which every entry is known.
    pub(crate) complete: bool,
    /// It was taken from a manifest.
    pub(crate) declared: bool,
    pub(crate) names: Names,
    /// Where a symlink leads: a place of the trace, and its text.
    pub(crate) link: Option<(PathId, Box<[u8]>)>,
}

/// How many names there are in a directory.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Names {
    /// More than before the trace, by what its events did.
    added: i64,
    /// Before the trace, as the first whole listing of it proves, or its removal.
    before: Option<i64>,
    /// Now, of those that are known.
    known: i64,
}

/// A file, and the name it was found by.
pub(crate) type Placed = (NodeId, Option<(NodeId, NameId)>);

/// How often results taught something, or contradicted what was believed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Repairs {
    /// Taken to be there before, because the first touch succeeded.
    pub(crate) inferred: u64,
    /// Of these: a manifest should have had them.
    pub(crate) missing_in_manifest: u64,
    /// In the manifest, but the first touch said ENOENT.
    pub(crate) not_there: u64,
    /// Size or type differed from the manifest's.
    pub(crate) corrected: u64,
    /// A file was there, or was not, without an event that explains it.
    pub(crate) unexplained: u64,
    /// Made up, for a listing of their directory proves that there were so many more.
    pub(crate) unnamed: u64,
}

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Present(NodeId),
    Absent,
}

/// Where a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its name and what it means; the top has none.
    Node(NodeId, Option<(NodeId, NameId)>),
    /// Nothing has this name.
    Absent(NodeId, NameId),
    /// Nothing is known about this name.
    Unknown(NodeId, NameId),
    /// A directory on the way is missing; known to be so, or not.
    NoDirectory {
        at: NodeId,
        name: NameId,
        known: bool,
    },
    /// Something on the way is no directory.
    NotDirectory,
    /// Too many symlinks.
    Loop,
}

impl Found {
    pub(crate) fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(node, _) => Some(node),
            _ => None,
        }
    }
}

/// The most symlinks in a walk (`path_resolution(7)`).
const MOST_LINKS: u32 = 40;
/// The deepest place that a symlink is followed to: bounds the stack of a walk (chosen).
const DEEPEST_TARGET: u32 = 256;

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) paths: Paths,
    pub(crate) nodes: Vec<Node>,
    pub(crate) repairs: Repairs,
    entries: FxHashMap<(NodeId, NameId), Entry>,
    /// Directories found before, good as long as no directory or symlink has moved.
    walked: Vec<(u32, NodeId)>,
    generation: u32,
    /// Symlinks followed in the walk that is under way, all together.
    links: u32,
    /// There is, or was, a fifo, socket or device.
    pub(crate) holds_special: bool,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let top = Node {
            kind: FileKind::Directory,
            confirmed: true,
            ..Node::default()
        };
        Self {
            paths: Paths::new(),
            nodes: vec![top],
            repairs: Repairs::default(),
            entries: FxHashMap::default(),
            walked: Vec::new(),
            generation: 1,
            links: 0,
            holds_special: false,
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index())
    }

    pub(crate) fn kind(&self, id: NodeId) -> FileKind {
        self.node(id).map_or(FileKind::Unknown, |node| node.kind)
    }

    /// A new file without a name.
    pub(crate) fn add(&mut self, kind: FileKind) -> NodeId {
        let id = NodeId::from_index(self.nodes.len());
        self.nodes.push(Node {
            kind,
            ..Node::default()
        });
        self.holds_special |= kind == FileKind::Special;
        id
    }

    pub(crate) fn entry(&self, directory: NodeId, name: NameId) -> Option<Entry> {
        self.entries.get(&(directory, name)).copied()
    }

    /// Let a name mean something from now on.
    pub(crate) fn bind(&mut self, directory: NodeId, name: NameId, entry: Entry) {
        let before = self.entries.insert((directory, name), entry);
        self.count_names(directory, before, Some(entry));
        self.count_known(directory, before, entry);
        let moves = |entry: Option<Entry>| match entry {
            Some(Entry::Present(node)) => self.kind(node) != FileKind::Regular,
            Some(Entry::Absent) | None => false,
        };
        if moves(before) && before != Some(entry) {
            self.forget_walks();
        }
    }

    /// Whether a file was made by the trace: it was certainly not there before.
    pub(crate) fn was_made(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|node| {
            id != NodeId::TOP && node.origin.is_none() && node.doubtful_origin.is_none()
        })
    }

    /// Forget walks: a file turned out to be something else.
    pub(crate) fn forget_walks(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Find what a path means; `follow` a symlink in the last place.
    pub(crate) fn find(&mut self, path: PathId, follow: bool) -> Found {
        self.links = 0;
        self.find_from(path, follow)
    }

    fn find_from(&mut self, path: PathId, follow: bool) -> Found {
        if path == PathId::TOP {
            return Found::Node(NodeId::TOP, None);
        }
        let directory = match self.directory_from(self.paths.parent(path)) {
            Ok(directory) => directory,
            Err(found) => return found,
        };
        let name = self.paths.name(path);
        match self.entry(directory, name) {
            Some(Entry::Present(node)) => {
                let target = self.node(node).and_then(|node| node.link.as_ref());
                match target {
                    Some(&(target, _)) if follow => {
                        self.links += 1;
                        self.mark_walked(node);
                        if self.links > MOST_LINKS || self.paths.depth(target) > DEEPEST_TARGET {
                            return Found::Loop;
                        }
                        self.find_from(target, true)
                    }
                    _ => Found::Node(node, Some((directory, name))),
                }
            }
            Some(Entry::Absent) => Found::Absent(directory, name),
            None if self.is_complete(directory) => Found::Absent(directory, name),
            None => Found::Unknown(directory, name),
        }
    }

    fn directory(&mut self, path: PathId) -> Result<NodeId, Found> {
        self.links = 0;
        self.directory_from(path)
    }

    fn directory_from(&mut self, path: PathId) -> Result<NodeId, Found> {
        if let Some(&(generation, node)) = self.walked.get(path.index())
            && generation == self.generation
        {
            return Ok(node);
        }
        let node = match self.find_from(path, true) {
            Found::Node(node, _) => match self.kind(node) {
                FileKind::Directory | FileKind::Unknown => node,
                FileKind::Regular | FileKind::Special | FileKind::Symlink => {
                    // That it is no directory is what the walk found.
                    self.mark_walked(node);
                    return Err(Found::NotDirectory);
                }
            },
            found @ (Found::Absent(at, name) | Found::Unknown(at, name)) => {
                let known = matches!(found, Found::Absent(..));
                return Err(Found::NoDirectory { at, name, known });
            }
            other => return Err(other),
        };
        self.mark_walked(node);
        if self.walked.len() <= path.index() {
            self.walked.resize(path.index() + 1, (0, NodeId::TOP));
        }
        if let Some(slot) = self.walked.get_mut(path.index()) {
            *slot = (self.generation, node);
        }
        Ok(node)
    }

    pub(crate) fn mark_walked(&mut self, id: NodeId) {
        if let Some(node) = self.node_mut(id) {
            node.walked = true;
        }
    }

    fn is_complete(&self, directory: NodeId) -> bool {
        self.node(directory).is_some_and(|node| node.complete)
    }

    /// Where the symlink at a path leads, if there is one.
    pub(crate) fn link_target(&mut self, path: PathId) -> Option<PathId> {
        let mut at = path;
        for _ in 0..MOST_LINKS {
            let node = self.find(at, false).node();
            let link = node.and_then(|node| self.node(node)?.link.as_ref());
            match link {
                Some(&(target, _)) => at = target,
                None => break,
            }
        }
        (at != path).then_some(at)
    }

    /// The directory at a path, made up as one that was there before where it is not known.
    pub(crate) fn ensure_directory(&mut self, path: PathId) -> Option<NodeId> {
        // Bounded by the depth of a path and the number of links in it.
        for _ in 0..=crate::paths::DEEPEST {
            match self.directory(path) {
                Ok(node) => {
                    if self.kind(node) == FileKind::Unknown {
                        self.set_kind(node, FileKind::Directory);
                    }
                    return Some(node);
                }
                Err(Found::NoDirectory { at, name, .. }) => {
                    self.add_before(at, name, FileKind::Directory);
                }
                Err(_) => return None,
            }
        }
        None
    }

    /// Say that a name was there before the trace began.
    pub(crate) fn add_before(&mut self, directory: NodeId, name: NameId, kind: FileKind) -> NodeId {
        if self.kind(directory) == FileKind::Unknown {
            self.set_kind(directory, FileKind::Directory);
        }
        let id = self.add(kind);
        let known = self
            .node(directory)
            .is_some_and(|node| node.origin.is_some() || directory == NodeId::TOP);
        if let Some(node) = self.node_mut(id) {
            node.origin = known.then_some((directory, name));
        }
        self.bind(directory, name, Entry::Present(id));
        self.count_names(directory, Some(Entry::Present(id)), None);
        id
    }

    pub(crate) fn set_kind(&mut self, id: NodeId, kind: FileKind) {
        if let Some(node) = self.node_mut(id)
            && node.kind != kind
        {
            node.kind = kind;
            self.holds_special |= kind == FileKind::Special;
            self.forget_walks();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_loops_end() {
        let mut tree = Tree::new();
        let a = tree.paths.child(PathId::TOP, b"a").unwrap();
        let b = tree.paths.child(PathId::TOP, b"b").unwrap();
        let file = tree.paths.child(b, b"f").unwrap();
        let through = tree.paths.child(a, b"f").unwrap();
        tree.ensure_directory(b).unwrap();
        let node = tree.add_before(NodeId::TOP, tree.paths.name(a), FileKind::Symlink);
        tree.node_mut(node).unwrap().link = Some((b, Box::from(&b"b"[..])));
        let directory = tree.ensure_directory(b).unwrap();
        let target = tree.add_before(directory, tree.paths.name(file), FileKind::Regular);
        assert!(matches!(tree.find(through, true), Found::Node(node, _) if node == target));
        assert_eq!(tree.link_target(a), Some(b));

        tree.node_mut(node).unwrap().link = Some((a, Box::from(&b"a"[..])));
        tree.forget_walks();
        assert_eq!(tree.find(through, true), Found::Loop);
    }

    #[test]
    fn what_is_not_known_is_told_from_what_is_absent() {
        let mut tree = Tree::new();
        let a = tree.paths.child(PathId::TOP, b"a").unwrap();
        let b = tree.paths.child(a, b"b").unwrap();
        assert!(matches!(
            tree.find(b, true),
            Found::NoDirectory { known: false, .. }
        ));
        let directory = tree.ensure_directory(a).unwrap();
        assert!(matches!(tree.find(b, true), Found::Unknown(..)));
        tree.bind(directory, tree.paths.name(b), Entry::Absent);
        assert!(matches!(tree.find(b, true), Found::Absent(..)));
    }
}
