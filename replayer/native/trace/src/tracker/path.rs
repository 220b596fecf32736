//! Calls that name files by path: what they teach about the tree, and the events they become.

use crate::call::{Args, Call, FileKind, Outcome, PathArg};
use crate::constants::{O_CREAT, O_DIRECTORY, O_NOFOLLOW, X_OK, follows_to_open};
use crate::error::TraceError;
use crate::formats::strace::value::NOW;
use crate::order::Access;
use crate::paths::PathId;
use crate::scope::{Location, Resolved};
use crate::tracker::open::kind_made;
use crate::tracker::resolve::{FOR_ITS_ENDING, fails_for_ending};
use crate::tracker::{Disposition, Operands, Tracker};
use crate::tree::{Found, NodeId, Placed};
use replayer_ops::numbers::ENOTEMPTY;
use replayer_ops::{Class, Op};
use std::borrow::Cow;

impl Tracker {
    pub(crate) fn on_path(
        &mut self,
        call: &Call<'_>,
        op: Op,
        path: &PathArg<'_>,
        args: &Args<'_>,
    ) -> Result<Disposition, TraceError> {
        if self.is_marker(call, op, path) {
            return Ok(Disposition::Other);
        }
        if op == Op::Symlink && args.text.as_deref().is_some_and(<[u8]>::is_empty) {
            return Ok(self.count_dropped(call, Resolved::Empty));
        }
        let (resolved, slot) = self.resolve(call, path);
        if op == Op::Chdir && call.outcome.is_ok() {
            self.change_directory(call, path, resolved);
        }
        let Resolved::Inside(place) = resolved else {
            if matches!(op, Op::Mkdir | Op::Rmdir) && call.outcome.is_ok() {
                self.note_outside(call, path, op == Op::Mkdir);
            }
            return Ok(self.count_dropped(call, resolved));
        };
        if fails_for_ending(op, path, call.outcome, false) {
            return Ok(self.leave_out(call, FOR_ITS_ENDING));
        }
        if call.outcome.is_ok() {
            self.record_foreign_growth(call, op, place, args)?;
        }
        let operands = Operands {
            path: Some(place),
            to_file: slot,
            ..Operands::default()
        };
        let written = self.written_args(call.task, op, place, args);
        self.emit(call, op, operands, &written)?;
        if let Outcome::Error(number) = call.outcome {
            if !self.begins_in_removed(call, path) {
                self.learn_failure(op, place, number, 0);
            }
            let ends = self.ends(place, op.follows());
            self.order_ends(ends, Access::Read);
            self.order_entries(place, number);
            return Ok(Disposition::Event);
        }
        let placed = self.learn_success(op, place, args);
        let access = Access::of_call(op.class() == Class::Alter);
        self.order_known_ends((place, op.follows()), access);
        self.order_nodes(op, placed);
        if op.class() == Class::Attribute {
            self.usage.changed(place);
        }
        Ok(Disposition::Event)
    }

    /// What the table holds of a call's arguments.
    fn written_args<'a, 'b>(
        &mut self,
        task: u64,
        op: Op,
        place: PathId,
        args: &'b Args<'a>,
    ) -> Cow<'b, Args<'a>> {
        if op.class() == Class::Look && op != Op::Readlink {
            return Cow::Borrowed(args);
        }
        let mut written = args.clone();
        match op {
            Op::Mkdir | Op::Mknod => self.mask_mode(task, &mut written),
            // What was returned says nothing where the trace has it too.
            Op::Readlink => {
                let returned = args.text.as_deref().unwrap_or_default();
                let (_, text) = self.link_target(place, returned);
                let differs = !returned.is_empty() && text != returned;
                written.text = differs.then(|| text.into());
            }
            Op::Symlink => {
                let target = args.text.clone().unwrap_or_default();
                let (_, text) = self.link_target(place, &target);
                written.text = Some(text.into());
            }
            _ => mark_now(&mut written),
        }
        Cow::Owned(written)
    }

    pub(crate) fn learn_success(
        &mut self,
        op: Op,
        path: PathId,
        args: &Args<'_>,
    ) -> Option<Placed> {
        match op {
            Op::Mkdir | Op::Mknod => {
                self.usage.renewed(&self.tree.paths, path, true);
                let kind = match op {
                    Op::Mkdir => FileKind::Directory,
                    _ => kind_made(args),
                };
                self.tree.made(path, kind)
            }
            Op::Rmdir | Op::Unlink => {
                self.usage.renewed(&self.tree.paths, path, false);
                let kind = match op {
                    Op::Rmdir => FileKind::Directory,
                    _ => FileKind::Unknown,
                };
                self.tree.removed(path, kind)
            }
            Op::Symlink => {
                self.usage.renewed(&self.tree.paths, path, true);
                let placed = self.tree.made(path, FileKind::Symlink)?;
                self.set_link(placed.0, path, args.text.as_deref().unwrap_or_default());
                self.order.add_barrier();
                Some(placed)
            }
            Op::Readlink => self.learn_link(path, args),
            Op::Chdir => self.tree.saw(path, true, FileKind::Directory),
            Op::Truncate => {
                let placed = self.tree.saw(path, true, FileKind::Regular)?;
                let size = args.size.unwrap_or(0);
                self.order.data(placed.0, (size, i64::MAX), Access::Write);
                self.tree.resized(placed.0, size);
                Some(placed)
            }
            _ => {
                let kind = args.seen.map_or(FileKind::Unknown, |seen| seen.kind);
                let placed = self.tree.saw(path, op.follows(), kind)?;
                self.learn_seen(placed.0, args);
                if let (Op::Access, Some(node)) = (op, self.tree.node_mut(placed.0)) {
                    node.executable |= args.flags.unwrap_or(0) & X_OK != 0;
                }
                Some(placed)
            }
        }
    }

    fn learn_link(&mut self, path: PathId, args: &Args<'_>) -> Option<Placed> {
        let placed = self.tree.saw(path, false, FileKind::Symlink)?;
        let node = self.tree.node(placed.0);
        let unknown = node.is_some_and(|node| node.link.is_none());
        if let Some(text) = args.text.as_deref().filter(|_| unknown) {
            self.set_link(placed.0, path, text);
        }
        Some(placed)
    }

    pub(crate) fn learn_seen(&mut self, id: NodeId, args: &Args<'_>) {
        let Some(seen) = args.seen else {
            return;
        };
        if let (FileKind::Regular, Some(size)) = (seen.kind, seen.size) {
            self.tree.saw_size(id, size);
        }
        if let Some(node) = self.tree.node_mut(id) {
            node.mode = node.mode.or(seen.mode);
        }
    }

    pub(crate) fn learn_failure(&mut self, op: Op, path: PathId, number: u16, flags: i64) {
        use replayer_ops::numbers::{EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR};
        let makes = matches!(op, Op::Mkdir | Op::Symlink | Op::Mknod) || flags & O_CREAT != 0;
        let follow = match op {
            Op::Open => follows_to_open(flags),
            _ => op.follows(),
        };
        match number {
            ENOENT if makes => {
                // A symlink on the way says why, and has to be there.
                self.tree.looked_at(path, follow);
                let target = follow.then(|| self.tree.link_target(path)).flatten();
                let directory = self.tree.paths.parent(target.unwrap_or(path));
                self.tree.missed(directory, true);
            }
            ENOENT => self.tree.missed(path, follow),
            ENOTDIR if op == Op::Rmdir || flags & O_DIRECTORY != 0 => {
                self.tree.saw(path, follow, FileKind::Unknown);
            }
            ENOTDIR => self.tree.went_through_file(path),
            EEXIST if makes => {
                self.tree.saw(path, false, FileKind::Unknown);
            }
            EISDIR | ENOTEMPTY => {
                self.tree.saw(path, follow, FileKind::Directory);
            }
            ELOOP if flags & O_NOFOLLOW != 0 => {
                self.tree.saw(path, false, FileKind::Symlink);
            }
            EINVAL if op == Op::Readlink => {
                self.tree.saw(path, false, FileKind::Unknown);
            }
            _ => self.tree.looked_at(path, follow),
        }
    }

    /// Tell the order of events that this one failed for what was in a directory.
    pub(crate) fn order_entries(&mut self, path: PathId, number: u16) {
        if number == ENOTEMPTY
            && let Some(node) = self.tree.find(path, false).node()
        {
            self.order.list(node);
        }
    }

    /// Tell the order of events which names this one looked up or changed.
    pub(crate) fn order_names(&mut self, path: PathId, access: Access) {
        match self.tree.find(path, false) {
            Found::Node(_, Some((directory, name)))
            | Found::Absent(directory, name)
            | Found::Unknown(directory, name) => self.order.name(directory, name, access),
            Found::NoDirectory { at, name, .. } => self.order.name(at, name, Access::Read),
            Found::Node(_, None) | Found::NotDirectory | Found::Loop => {}
        }
    }

    /// A path, and where a symlink in its last place leads, if that is followed.
    pub(crate) fn ends(&mut self, path: PathId, follow: bool) -> (PathId, Option<PathId>) {
        let target = follow.then(|| self.tree.link_target(path));
        (path, target.flatten())
    }

    /// Tell the order of events the same of both: what is changed is what the symlink leads to.
    pub(crate) fn order_ends(&mut self, (path, target): (PathId, Option<PathId>), access: Access) {
        if let Some(target) = target {
            self.order_names(path, Access::Read);
            self.order_names(target, access);
        } else {
            self.order_names(path, access);
        }
    }

    /// The same of a path that has been walked when its result was learned: nothing else is left to learn.
    pub(crate) fn order_known_ends(&mut self, (path, follow): (PathId, bool), access: Access) {
        if !self.order.is_solo() {
            let ends = self.ends(path, follow);
            self.order_ends(ends, access);
        }
    }

    pub(crate) fn order_nodes(&mut self, op: Op, placed: Option<Placed>) {
        let Some((node, _)) = placed else {
            return;
        };
        match op {
            Op::Mkdir => self.order.directory(node),
            Op::Rmdir => {
                self.order.list(node);
                self.order.directory(node);
            }
            Op::Unlink if self.tree.kind(node) == FileKind::Symlink => self.order.add_barrier(),
            _ => {}
        }
    }

    fn change_directory(&mut self, call: &Call<'_>, path: &PathArg<'_>, resolved: Resolved) {
        let location = match resolved {
            Resolved::Inside(place) => Location::Inside(place),
            Resolved::Outside => self.outside_of(call, path),
            Resolved::Unknown | Resolved::TooLong | Resolved::Nameless | Resolved::Empty => {
                Location::Unknown
            }
        };
        if let Some(mut cwd) = self.tasks.cwd_mut(call.task) {
            cwd.location = location;
            cwd.shown.clear();
        }
    }

    fn is_marker(&mut self, call: &Call<'_>, op: Op, path: &PathArg<'_>) -> bool {
        if op.class() != Class::Look || self.marker.is_empty() {
            return false;
        }
        let Some(label) = path.text.strip_prefix(self.marker.as_slice()) else {
            return false;
        };
        let label = String::from_utf8_lossy(label).into_owned();
        self.requests
            .marked(call.task, &label, call.start_ns.unwrap_or(0));
        true
    }
}

/// Times that are 'now' are flags in the table: 1 for the access time, 2 for the modification time.
pub(crate) fn mark_now(args: &mut Args<'_>) {
    let is_now = |time: Option<i64>| time == Some(NOW);
    let bits = i64::from(is_now(args.atime_ns)) | i64::from(is_now(args.mtime_ns)) << 1;
    if bits != 0 {
        args.flags = Some(bits);
        args.atime_ns = args.atime_ns.filter(|&time| time != NOW);
        args.mtime_ns = args.mtime_ns.filter(|&time| time != NOW);
    }
}
