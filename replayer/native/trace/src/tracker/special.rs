//! Fifos, sockets and devices: what is done to their names are events, what goes through them is none of a file system's.
//!
//! A replay makes a file in the place of each. So it is there to be listed, renamed and removed, and is never opened.

use crate::call::{Args, Call, FileKind};
use crate::constants::{S_IFMT, S_IFREG};
use crate::op::follows_to_open;
use crate::paths::PathId;
use crate::tasks::Held;
use crate::tracker::Tracker;
use crate::tracker::open::on_exec;
use crate::tree::{Found, NodeId, Tree};

/// What a mknod makes.
pub(crate) fn kind_made(args: &Args<'_>) -> FileKind {
    match args.mode.unwrap_or(0) & S_IFMT {
        0 | S_IFREG => FileKind::Regular,
        _ => FileKind::Special,
    }
}

impl Tree {
    pub(crate) fn is_special(&self, node: Option<NodeId>) -> bool {
        self.holds_special && node.is_some_and(|node| self.kind(node) == FileKind::Special)
    }
}

impl Tracker {
    /// Whether an open with these flags means a special file: which one.
    pub(crate) fn special_to_open(&mut self, place: PathId, flags: i64) -> Option<NodeId> {
        if !self.tree.holds_special {
            return None; // as most do: nothing has to be found
        }
        match self
            .tree
            .find(&self.scope.paths, place, follows_to_open(flags))
        {
            Found::Node(node, _) => Some(node).filter(|_| self.tree.is_special(Some(node))),
            _ => None,
        }
    }

    /// Take an open of a special file: its descriptor is followed, and is none of the trace's.
    pub(crate) fn open_special(
        &mut self,
        call: &Call<'_>,
        (place, node): (PathId, NodeId),
        flags: i64,
        shown: Option<&[u8]>,
    ) {
        let Some(fd) = call.outcome.value() else {
            return;
        };
        let shown = shown.unwrap_or_default();
        let id = self.files.add(place, Some(node), shown);
        if let Some(description) = self.files.get_mut(id) {
            description.untold = true;
        }
        self.hold_new(call.task, fd, Held::Inside(id), on_exec(flags));
    }
}
