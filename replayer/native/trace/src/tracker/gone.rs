//! Files that were open before the trace and had no name any more: another one, with a name of its own, stands in for each.

use crate::call::{FileArg, FileKind, Gone, OnExec};
use crate::paths::PathId;
use crate::scope::Spot;
use crate::tasks::Held;
use crate::tracker::Tracker;
use crate::tree::{Found, NodeId};

/// Where they lie; no root is called so.
const DIRECTORY: &[u8] = b".removed";
/// Bytes of a path that its stand-in's name keeps: a name has 255, and a number stands behind it.
const KEPT_BYTES: usize = 200;

impl Tracker {
    /// Let a descriptor hold the stand-in of a removed file, if that was below a root.
    pub(crate) fn stand_in(&mut self, task: u64, file: FileArg<'_>, gone: Gone) {
        let Some(shown) = file.shown.filter(|_| file.deleted) else {
            return;
        };
        let Some(Spot::Inside(former)) = self.locate_shown(shown) else {
            return;
        };
        let Some(place) = self.place_of_stand_in(former, gone.inode) else {
            return;
        };
        let Some(node) = self.file_that_stands_in(place, gone.size) else {
            return;
        };
        let id = self.files.add(place, Some(node), shown);
        if let Some(description) = self.files.get_mut(id) {
            description.offset = None;
        }
        self.open_before(id);
        self.hold_new(task, file.number, Held::Inside(id), OnExec::Keep);
    }

    /// One file has one stand-in, however many have it open.
    fn place_of_stand_in(&mut self, former: PathId, inode: i64) -> Option<PathId> {
        let top = self.scope.paths.child(PathId::TOP, DIRECTORY)?;
        let mut name = self.scope.paths.text(former);
        name.iter_mut()
            .filter(|byte| **byte == b'/')
            .for_each(|byte| *byte = b'|');
        let mut name = name.split_off(name.len().saturating_sub(KEPT_BYTES));
        name.extend_from_slice(format!("#{inode}").as_bytes());
        self.scope.paths.child(top, &name)
    }

    fn file_that_stands_in(&mut self, place: PathId, size: i64) -> Option<NodeId> {
        let paths = &self.scope.paths;
        if let Found::Node(node, _) = self.tree.find(paths, place, false) {
            return Some(node);
        }
        let directory = self.tree.ensure_directory(paths, paths.parent(place))?;
        let name = paths.name(place);
        let id = self.tree.add_before(directory, name, FileKind::Regular);
        let node = self.tree.node_mut(id)?;
        node.confirmed = true;
        self.tree.saw_size(id, size, &mut self.counts.repairs);
        Some(id)
    }
}
