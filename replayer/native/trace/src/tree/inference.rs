//! What results prove about the tree: what must have been there before, what must not, and how large it was.

use crate::call::FileKind;
use crate::paths::{DEEPEST, NameId, PathId};
use crate::tree::{Entry, Found, NodeId, Placed, Tree};

impl Tree {
    /// Learn from a lookup that succeeded.
    pub(crate) fn saw(&mut self, path: PathId, follow: bool, kind: FileKind) -> Option<Placed> {
        let placed = match self.find_behind(path, follow) {
            Found::Node(node, place) => (node, place),
            Found::Unknown(directory, name) => {
                self.repairs.inferred += 1;
                (
                    self.add_before(directory, name, kind),
                    Some((directory, name)),
                )
            }
            Found::Absent(directory, name) => {
                (self.appear(directory, name, kind), Some((directory, name)))
            }
            Found::NoDirectory { .. } | Found::NotDirectory | Found::Loop => {
                self.repairs.unexplained += 1;
                return None;
            }
        };
        self.confirm(placed.0, kind);
        Some(placed)
    }

    /// Find what a path means: directories that are missing on its way, or on that of a symlink it goes through, were there before.
    fn find_behind(&mut self, path: PathId, follow: bool) -> Found {
        let mut found = self.find(path, follow);
        // Bounded by the depth of a path and the number of links in it.
        for _ in 0..=DEEPEST {
            let Found::NoDirectory { at, name, known } = found else {
                break;
            };
            self.repairs.unexplained += u64::from(known);
            self.add_before(at, name, FileKind::Directory);
            found = self.find(path, follow);
        }
        found
    }

    /// A name that was believed to be free is there.
    fn appear(&mut self, directory: NodeId, name: NameId, kind: FileKind) -> NodeId {
        let forgotten = self.entry(directory, name).is_none()
            && self.node(directory).is_some_and(|node| node.declared);
        if forgotten {
            self.repairs.inferred += 1;
            self.repairs.missing_in_manifest += 1;
            return self.add_before(directory, name, kind);
        }
        self.repairs.unexplained += 1;
        let node = self.add(kind);
        self.bind(directory, name, Entry::Present(node));
        node
    }

    fn confirm(&mut self, id: NodeId, kind: FileKind) {
        let Some(node) = self.nodes.get_mut(id.index()) else {
            return;
        };
        let corrected =
            node.declared && !node.confirmed && kind != FileKind::Unknown && node.kind != kind;
        let learned = node.kind == FileKind::Unknown && kind != FileKind::Unknown;
        node.confirmed = true;
        self.repairs.corrected += u64::from(corrected);
        if corrected {
            node.link = None;
        }
        if corrected || learned {
            self.set_kind(id, kind);
        }
    }

    /// Learn from a name that was looked up in a file, or from a listing of it: it is a directory.
    pub(crate) fn was_entered(&mut self, id: NodeId) {
        match self.nodes.get(id.index()) {
            Some(node) if node.kind != FileKind::Directory => {
                let known = node.kind != FileKind::Unknown;
                self.repairs.corrected += u64::from(known && node.declared);
                self.repairs.unexplained += u64::from(known && !node.declared);
                self.set_kind(id, FileKind::Directory);
            }
            _ => {}
        }
    }

    /// Learn from a lookup that said ENOENT.
    pub(crate) fn missed(&mut self, path: PathId, follow: bool) {
        match self.find(path, follow) {
            Found::Unknown(directory, name) => self.bind(directory, name, Entry::Absent),
            Found::Node(node, Some((directory, name))) => {
                let was_declared = self
                    .node(node)
                    .is_some_and(|node| node.declared && !node.confirmed);
                if was_declared {
                    self.repairs.not_there += 1;
                    self.count_names(directory, None, Some(Entry::Present(node)));
                    if let Some(node) = self.node_mut(node) {
                        node.origin = None;
                    }
                } else {
                    self.repairs.unexplained += 1;
                }
                self.bind(directory, name, Entry::Absent);
            }
            _ => {}
        }
    }

    /// A call that failed looked at what a path means: it may have failed for what is there.
    pub(crate) fn looked_at(&mut self, path: PathId, follow: bool) {
        if let Found::Node(node, _) = self.find(path, follow) {
            self.mark_walked(node);
        }
    }

    /// Learn from ENOTDIR: what the path goes through is a file.
    pub(crate) fn went_through_file(&mut self, path: PathId) {
        let parent = self.paths.parent(path);
        if let Found::Unknown(directory, name) = self.find(parent, true) {
            self.repairs.inferred += 1;
            let node = self.add_before(directory, name, FileKind::Regular);
            if let Some(node) = self.node_mut(node) {
                node.confirmed = true;
            }
        }
    }

    /// A file was made, and its name was free.
    pub(crate) fn made(&mut self, path: PathId, kind: FileKind) -> Option<Placed> {
        let place = self.free_place(path, false)?;
        Some(self.make_at(place, kind))
    }

    /// A file was opened that was not there; `follow` a symlink in the last place to where it leads, or would.
    pub(crate) fn made_by_open(&mut self, path: PathId, follow: bool) -> Option<Placed> {
        let place = self.free_place(path, follow)?;
        Some(self.make_at(place, FileKind::Regular))
    }

    fn make_at(&mut self, place: (NodeId, NameId), kind: FileKind) -> Placed {
        let id = self.add(kind);
        if let Some(node) = self.node_mut(id) {
            node.confirmed = true;
            node.changed = true;
            node.complete = kind == FileKind::Directory;
        }
        self.bind(place.0, place.1, Entry::Present(id));
        if kind == FileKind::Symlink {
            self.forget_walks();
        }
        (id, Some(place))
    }

    /// The directory and name of a path that must be free now.
    fn free_place(&mut self, path: PathId, follow: bool) -> Option<(NodeId, NameId)> {
        match self.find_behind(path, follow) {
            Found::Absent(directory, name) | Found::Unknown(directory, name) => {
                Some((directory, name))
            }
            Found::Node(_, place) => {
                self.missed(path, follow);
                place
            }
            Found::NoDirectory { .. } | Found::NotDirectory | Found::Loop => {
                self.repairs.unexplained += 1;
                None
            }
        }
    }

    pub(crate) fn removed(&mut self, path: PathId, kind: FileKind) -> Option<Placed> {
        let placed = self.saw(path, false, kind)?;
        if let Some((directory, name)) = placed.1 {
            self.bind(directory, name, Entry::Absent);
        }
        if kind == FileKind::Directory {
            self.was_empty(placed.0);
        }
        Some(placed)
    }

    /// A name was given to what another name meant.
    pub(crate) fn renamed(&mut self, from: PathId, to: PathId) -> Option<[Placed; 2]> {
        let source = self.saw(from, false, FileKind::Unknown)?;
        let target = self.target_place(to)?;
        if self.entry(target.0, target.1) == Some(Entry::Present(source.0)) {
            // Both names lead to one file: it keeps them (rename(2)).
            return Some([source, (source.0, Some(target))]);
        }
        if let Some((directory, name)) = source.1 {
            self.bind(directory, name, Entry::Absent);
        }
        self.bind(target.0, target.1, Entry::Present(source.0));
        if self.kind(source.0) != FileKind::Regular {
            self.forget_walks();
        }
        Some([source, (source.0, Some(target))])
    }

    /// Two names changed their meanings.
    pub(crate) fn exchanged(&mut self, from: PathId, to: PathId) -> Option<[Placed; 2]> {
        let first = self.saw(from, false, FileKind::Unknown)?;
        let second = self.saw(to, false, FileKind::Unknown)?;
        let (Some(one), Some(other)) = (first.1, second.1) else {
            return None;
        };
        self.bind(one.0, one.1, Entry::Present(second.0));
        self.bind(other.0, other.1, Entry::Present(first.0));
        self.forget_walks();
        Some([(second.0, Some(one)), (first.0, Some(other))])
    }

    /// A second name was given to a file.
    pub(crate) fn linked(&mut self, from: PathId, to: PathId) -> Option<[Placed; 2]> {
        let source = self.saw(from, false, FileKind::Unknown)?;
        let target = self.free_place(to, false)?;
        self.bind(target.0, target.1, Entry::Present(source.0));
        Some([source, (source.0, Some(target))])
    }

    /// What is open was given a name, its first or another one.
    pub(crate) fn named(&mut self, node: NodeId, to: PathId) {
        if let Some((directory, name)) = self.free_place(to, false) {
            self.bind(directory, name, Entry::Present(node));
        }
    }

    /// The directory and name that a rename may overwrite.
    fn target_place(&mut self, path: PathId) -> Option<(NodeId, NameId)> {
        match self.find(path, false) {
            Found::Node(_, place) => place,
            _ => self.free_place(path, false),
        }
    }
}
