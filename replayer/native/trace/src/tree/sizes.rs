//! Sizes of files: what stats, reads and writes prove about them.

use crate::call::FileKind;
use crate::tree::{Node, NodeId, Tree};

impl Node {
    /// A file that the trace changed reaches further than it was written: it was there before, and that long.
    fn reaches(&mut self, end: i64) {
        if end <= self.size {
            return;
        }
        if self.origin.is_none() {
            self.origin = self.doubtful_origin.take();
            self.first_size = end;
        } else if !self.resized && !self.first_size_is_exact {
            self.first_size = self.first_size.max(end);
        }
    }
}

impl Tree {
    /// A stat showed the size of a file.
    pub(crate) fn saw_size(&mut self, id: NodeId, size: i64) {
        let Some(node) = self.nodes.get_mut(id.index()) else {
            return;
        };
        node.size_is_seen = true;
        if node.changed {
            node.reaches(size);
            node.size = size;
            return;
        }
        if node.first_size_is_exact && node.first_size != size {
            self.repairs.corrected += u64::from(node.declared);
        }
        node.first_size = size;
        node.size = size;
        node.first_size_is_exact = true;
    }

    /// A seek found the end of a file. Of what the trace changed the end is followed: another call may have gone on since the seek.
    pub(crate) fn saw_end(&mut self, id: NodeId, size: i64) {
        let node = self.node(id);
        let tells = node.is_some_and(|node| {
            let has_size = matches!(node.kind, FileKind::Regular | FileKind::Unknown);
            has_size && (!node.changed || size > node.size)
        });
        if tells {
            self.saw_size(id, size);
        }
    }

    /// A read of `asked` bytes at an offset returned `got`.
    pub(crate) fn saw_read(&mut self, id: NodeId, offset: i64, got: i64, asked: i64) {
        let end = offset.saturating_add(got);
        let Some(node) = self.nodes.get_mut(id.index()) else {
            return;
        };
        if node.changed {
            if got > 0 && end > node.size {
                node.reaches(end);
                node.size = end;
            }
            return;
        }
        let stops_here = got < asked && (got > 0 || offset == node.first_size);
        let wrong = end > node.first_size && got > 0 || stops_here && end != node.first_size;
        if wrong && node.first_size_is_exact {
            self.repairs.corrected += u64::from(node.declared);
        }
        if wrong {
            node.first_size = end;
            node.size = end;
        }
        node.first_size_is_exact |= stops_here;
        node.size_is_seen |= stops_here;
    }

    /// Bytes were written at an offset.
    pub(crate) fn wrote(&mut self, id: NodeId, offset: i64, count: i64) {
        if let Some(node) = self.node_mut(id) {
            node.changed = true;
            node.size = node.size.max(offset.saturating_add(count));
        }
    }

    pub(crate) fn resized(&mut self, id: NodeId, size: i64) {
        if let Some(node) = self.node_mut(id) {
            node.changed = true;
            node.resized = true;
            node.size = size;
        }
    }

    /// The size of a file, if an event has shown it.
    pub(crate) fn seen_size(&self, id: NodeId) -> Option<i64> {
        let node = self.node(id).filter(|node| node.size_is_seen);
        node.map(|node| node.size)
    }

    /// Whether a file is as long as the trace says: an event has shown its size, or set it.
    pub(crate) fn size_is_certain(&self, id: NodeId) -> bool {
        self.node(id)
            .is_some_and(|node| node.size_is_seen || node.resized)
    }

    /// Others made a file longer.
    pub(crate) fn grew(&mut self, id: NodeId, size: i64) {
        if let Some(node) = self.node_mut(id) {
            node.changed = true;
            node.size = size;
        }
    }

    pub(crate) fn size(&self, id: NodeId) -> i64 {
        self.node(id).map_or(0, |node| node.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::paths::PathId;

    fn file(declared: Option<i64>) -> (Tree, NodeId) {
        let mut tree = Tree::new();
        let path = tree.paths.child(PathId::TOP, b"f").unwrap();
        let id = tree.add_before(NodeId::TOP, tree.paths.name(path), FileKind::Regular);
        if let Some(size) = declared {
            let node = tree.node_mut(id).unwrap();
            (node.declared, node.first_size, node.size) = (true, size, size);
            node.first_size_is_exact = true;
        }
        (tree, id)
    }

    #[test]
    fn the_least_size_is_what_reads_prove() {
        let (mut tree, id) = file(None);
        tree.saw_read(id, 0, 4096, 4096);
        tree.saw_read(id, 8192, 100, 4096);
        tree.saw_read(id, 8292, 0, 4096);
        let node = tree.node(id).unwrap();
        assert_eq!((node.first_size, node.first_size_is_exact), (8292, true));
        assert_eq!(tree.repairs.corrected, 0);
    }

    #[test]
    fn a_manifest_that_is_wrong_is_corrected() {
        let (mut tree, id) = file(Some(10));
        tree.saw_read(id, 0, 10, 4096);
        assert_eq!(tree.repairs.corrected, 0);
        tree.saw_size(id, 12);
        assert_eq!(
            (tree.node(id).unwrap().first_size, tree.repairs.corrected),
            (12, 1)
        );
    }

    #[test]
    fn what_is_read_behind_what_was_written_was_there_before() {
        let (mut tree, id) = file(None);
        tree.saw_read(id, 0, 4096, 4096);
        tree.wrote(id, 0, 4096);
        tree.saw_read(id, 4096, 4096, 4096);
        assert_eq!(tree.node(id).unwrap().first_size, 8192);
        tree.wrote(id, 8192, 4096);
        tree.saw_read(id, 8192, 4096, 4096);
        assert_eq!(tree.node(id).unwrap().first_size, 8192);
        tree.resized(id, 0);
        tree.saw_read(id, 16384, 1, 1);
        assert_eq!(tree.node(id).unwrap().first_size, 8192);
    }

    #[test]
    fn what_is_written_does_not_change_what_was_there() {
        let (mut tree, id) = file(Some(10));
        tree.wrote(id, 100, 50);
        tree.saw_read(id, 0, 150, 4096);
        assert_eq!(
            (tree.node(id).unwrap().first_size, tree.size(id)),
            (10, 150)
        );
    }
}
