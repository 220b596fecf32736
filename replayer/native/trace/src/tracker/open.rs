//! Opens: what the descriptor that they return means from then on.

use crate::call::{Args, Call, FileKind, OnExec, Outcome, PathArg};
use crate::constants::{
    O_ACCMODE, O_APPEND, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_TMPFILE, O_TRUNC, S_IFMT,
    S_IFREG, follows_to_open,
};
use crate::error::TraceError;
use crate::open_files::Description;
use crate::order::Access;
use crate::paths::PathId;
use crate::scope::{Location, Resolved};
use crate::tasks::FdTarget;
use crate::tracker::resolve::{FOR_ITS_ENDING, SPECIAL, fails_for_ending};
use crate::tracker::{Disposition, Operands, Tracker};
use crate::tree::{Found, NodeId, Placed, Tree};
use replayer_ops::Op;
use std::borrow::Cow;

impl Tracker {
    /// Take an open: the descriptor that it returned means something from now on.
    pub(crate) fn open(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
        args: &Args<'_>,
        shown: Option<&[u8]>,
    ) -> Result<Disposition, TraceError> {
        let (mut resolved, slot) = self.resolve(call, path);
        if !matches!(resolved, Resolved::Inside(_))
            && let Some(place) = self.shown_place(call, path, resolved, shown)
        {
            resolved = Resolved::Inside(place);
        }
        let Resolved::Inside(place) = resolved else {
            self.open_outside(call, path, resolved, args);
            return Ok(self.count_dropped(call, resolved));
        };
        let flags = args.flags.unwrap_or(0);
        if fails_for_ending(Op::Open, path, call.outcome, flags & O_CREAT != 0) {
            return Ok(self.leave_out(call, FOR_ITS_ENDING));
        }
        if let Some(node) = self.special_to_open(place, flags) {
            self.open_special(call, (place, node), flags, shown);
            return Ok(self.leave_out(call, SPECIAL));
        }
        let file = call.outcome.value().map(|_| self.files.count());
        let operands = Operands {
            path: Some(place),
            file,
            to_file: slot,
            ..Operands::default()
        };
        let mut written = Cow::Borrowed(args);
        if args.mode.is_some() {
            self.mask_mode(call.task, written.to_mut());
        }
        let event_ref = self.emit(call, Op::Open, operands, &written)?;
        if let Outcome::Error(number) = call.outcome {
            if !self.begins_in_removed(call, path) {
                self.learn_failure(Op::Open, place, number, flags);
            }
            let ends = self.ends(place, follows_to_open(flags));
            self.order_ends(ends, Access::Read);
            return Ok(Disposition::Event);
        }
        let known = self.tree.nodes.len();
        let placed = self.learn_open(place, flags);
        let created = flags & O_CREAT != 0 && self.tree.nodes.len() > known;
        let access = if created { Access::Write } else { Access::Read };
        self.order_known_ends((place, follows_to_open(flags)), access);
        let node = placed.map(|(node, _)| node);
        let id = self.files.add(Description {
            appends: flags & O_APPEND != 0,
            nameless: flags & O_TMPFILE == O_TMPFILE,
            ..Description::new(place, node, shown.unwrap_or_default())
        });
        self.order.file(file.unwrap_or(0), Access::Write);
        if flags & O_TRUNC != 0 && flags & O_ACCMODE != 0 {
            self.emptied(place, node);
        }
        self.usage.opened(place, event_ref.thread);
        let fd = call.outcome.value().unwrap_or(0);
        self.hold_new(call.task, fd, FdTarget::Inside(id), on_exec(flags));
        Ok(Disposition::Event)
    }

    /// The open cut off what was in the file.
    fn emptied(&mut self, place: PathId, node: Option<NodeId>) {
        if let Some(node) = node {
            self.tree.resized(node, 0);
            self.order.data(node, (0, i64::MAX), Access::Write);
        }
        self.usage.changed(place);
    }

    /// Where an open led that leads elsewhere by its path: a link outside of the roots may lead into them.
    fn shown_place(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
        resolved: Resolved,
        shown: Option<&[u8]>,
    ) -> Option<PathId> {
        let Location::Inside(place) = self.locate_shown(call.task, shown?)? else {
            return None;
        };
        if resolved != Resolved::Nameless {
            return Some(place);
        }
        // What has no name any more is shown by the name that it had.
        let FdTarget::Inside(id) = self.held_through_proc(call.task, &path.text)? else {
            return None;
        };
        let node = self.files.get(id)?.node;
        let found = self.tree.find(place, true).node();
        (found.is_some() && found == node).then_some(place)
    }

    fn open_outside(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
        resolved: Resolved,
        args: &Args<'_>,
    ) {
        let Some(fd) = call.outcome.value() else {
            return;
        };
        let on_exec = on_exec(args.flags.unwrap_or(0));
        let held = match self.outside_of(call, path) {
            _ if resolved == Resolved::Nameless => FdTarget::Lost("file without a name"),
            Location::Outside(absolute) => {
                if args.flags.unwrap_or(0) & O_DIRECTORY != 0 {
                    self.outside.add(&absolute);
                }
                FdTarget::Outside(Some(absolute))
            }
            Location::Inside(_) | Location::Unknown => FdTarget::Outside(None),
        };
        self.hold_new(call.task, fd, held, on_exec);
    }

    /// The mode that a creation leaves in effect.
    pub(crate) fn mask_mode(&mut self, task: u64, args: &mut Args<'_>) {
        let umask = self.tasks.cwd_mut(task).map_or(0, |cwd| cwd.umask);
        args.mode = args.mode.map(|mode| mode & !umask);
    }

    fn learn_open(&mut self, path: PathId, flags: i64) -> Option<Placed> {
        if flags & O_TMPFILE == O_TMPFILE {
            self.tree.saw(path, true, FileKind::Directory)?;
            let node = self.tree.add(FileKind::Regular);
            return Some((node, None));
        }
        let follow = follows_to_open(flags);
        if flags & O_CREAT != 0 {
            let found = self.tree.find(path, follow);
            if flags & O_EXCL != 0 || !matches!(found, Found::Node(..)) {
                return self.learn_making(path, flags, found);
            }
        }
        let kind = if flags & O_DIRECTORY != 0 {
            FileKind::Directory
        } else {
            FileKind::Unknown
        };
        self.tree.saw(path, follow, kind)
    }

    /// Learn from an open that made what it opened, or seems to have: the walk has found nothing there.
    fn learn_making(&mut self, path: PathId, flags: i64, found: Found) -> Option<Placed> {
        // A link that leads nowhere at all cannot have been there.
        let follow = follows_to_open(flags) && !matches!(found, Found::Loop | Found::NotDirectory);
        let target = follow.then(|| self.tree.link_target(path)).flatten();
        let placed = self.tree.made_by_open(path, follow);
        let doubtful = matches!(
            found,
            Found::Unknown(..) | Found::NoDirectory { known: false, .. }
        );
        if let (Some((node, place)), true) = (placed, doubtful) {
            // Without O_EXCL it may have been there: a later read can prove it.
            if let Some(node) = self.tree.node_mut(node).filter(|_| flags & O_EXCL == 0) {
                node.doubtful_origin = place;
            }
        }
        if let Some(target) = target {
            // No call may name it, and yet each user has one of its own.
            self.tree.paths.row(target);
        }
        self.usage
            .renewed(&self.tree.paths, target.unwrap_or(path), true);
        placed
    }
}

pub(super) fn on_exec(flags: i64) -> OnExec {
    if flags & O_CLOEXEC != 0 {
        OnExec::Close
    } else {
        OnExec::Keep
    }
}

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
        let found = self.tree.find(place, follows_to_open(flags)).node();
        found.filter(|_| self.tree.is_special(found))
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
        let id = self.files.add(Description {
            untold: true,
            ..Description::new(place, Some(node), shown)
        });
        self.hold_new(call.task, fd, FdTarget::Inside(id), on_exec(flags));
    }
}
