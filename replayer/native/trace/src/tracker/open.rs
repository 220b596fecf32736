//! Opens: what the descriptor that they return means from then on.

use crate::access::Access;
use crate::call::{Args, Call, FileKind, OnExec, Outcome, PathArg};
use crate::constants::{
    O_ACCMODE, O_APPEND, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_TMPFILE, O_TRUNC,
};
use crate::error::TraceError;
use crate::infer::Placed;
use crate::op::{Op, follows_to_open};
use crate::paths::PathId;
use crate::scope::{Hit, Spot};
use crate::tasks::Held;
use crate::tracker::resolve::{FOR_ITS_ENDING, SPECIAL, fails_for_ending};
use crate::tracker::{Fate, On, Tracker};
use crate::tree::{Found, NodeId};

impl Tracker {
    /// Take an open: the descriptor that it returned means something from now on.
    pub(crate) fn open(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
        args: &Args<'_>,
        shown: Option<&[u8]>,
    ) -> Result<Fate, TraceError> {
        let (mut hit, slot) = self.resolve(call, path);
        if !matches!(hit, Hit::Inside(_))
            && let Some(place) = self.shown_place(call, path, hit, shown)
        {
            hit = Hit::Inside(place);
        }
        let Hit::Inside(place) = hit else {
            self.open_outside(call, path, hit, args);
            return Ok(self.drop_call(call, hit));
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
        let on = On {
            path: Some(place),
            file,
            to_file: slot,
            ..On::default()
        };
        let seat = if args.mode.is_some() {
            let mut masked = args.clone();
            self.mask_mode(call.task, &mut masked);
            self.emit(call, Op::Open, on, &masked)?
        } else {
            self.emit(call, Op::Open, on, args)?
        };
        if let Outcome::Error(number) = call.outcome {
            self.learn_failure(Op::Open, place, number, flags);
            let ends = self.ends(place, follows_to_open(flags));
            self.order_ends(seat, ends, Access::Read);
            return Ok(Fate::Event);
        }
        let known = self.tree.nodes.len();
        let placed = self.learn_open(place, flags);
        let created = flags & O_CREAT != 0 && self.tree.nodes.len() > known;
        let access = if created { Access::Write } else { Access::Read };
        self.order_known_ends(seat, (place, follows_to_open(flags)), access);
        let node = placed.map(|(node, _)| node);
        let id = self.files.add(place, node, shown.unwrap_or_default());
        if let Some(description) = self.files.get_mut(id) {
            description.appends = flags & O_APPEND != 0;
            description.nameless = flags & O_TMPFILE == O_TMPFILE;
        }
        self.order.file(file.unwrap_or(0), Access::Write);
        if flags & O_TRUNC != 0 && flags & O_ACCMODE != 0 {
            self.emptied(place, node);
        }
        self.usage.opened(place, seat.thread);
        let fd = call.outcome.value().unwrap_or(0);
        self.hold_new(call.task, fd, Held::Inside(id), on_exec(flags));
        Ok(Fate::Event)
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
        hit: Hit,
        shown: Option<&[u8]>,
    ) -> Option<PathId> {
        let Spot::Inside(place) = self.locate_shown(shown?)? else {
            return None;
        };
        if hit != Hit::Nameless {
            return Some(place);
        }
        // What has no name any more is shown by the name that it had.
        let Held::Inside(id) = self.held_through_proc(call.task, &path.text)? else {
            return None;
        };
        let node = self.files.get(id)?.node;
        let found = self.tree.find(&self.scope.paths, place, true);
        matches!(found, Found::Node(found, _) if Some(found) == node).then_some(place)
    }

    fn open_outside(&mut self, call: &Call<'_>, path: &PathArg<'_>, hit: Hit, args: &Args<'_>) {
        let Some(fd) = call.outcome.value() else {
            return;
        };
        let on_exec = on_exec(args.flags.unwrap_or(0));
        let held = match self.outside_of(call, path) {
            _ if hit == Hit::Nameless => Held::Lost("file without a name"),
            Spot::Outside(absolute) => {
                if args.flags.unwrap_or(0) & O_DIRECTORY != 0 {
                    self.outside.add(&absolute);
                }
                Held::Outside(Some(absolute))
            }
            Spot::Inside(_) | Spot::Unknown => Held::Outside(None),
        };
        self.hold_new(call.task, fd, held, on_exec);
    }

    /// The mode that a creation leaves in effect.
    pub(crate) fn mask_mode(&mut self, task: u64, args: &mut Args<'_>) {
        let umask = self.tasks.cwd_mut(task).map_or(0, |cwd| cwd.umask);
        args.mode = args.mode.map(|mode| mode & !umask);
    }

    /// Learn from an open that succeeded.
    fn learn_open(&mut self, path: PathId, flags: i64) -> Option<Placed> {
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        if flags & O_TMPFILE == O_TMPFILE {
            self.tree
                .saw(paths, path, true, FileKind::Directory, repairs)?;
            let node = self.tree.add(FileKind::Regular);
            return Some((node, None));
        }
        let follow = follows_to_open(flags);
        if flags & O_CREAT != 0 {
            let found = self.tree.find(paths, path, follow);
            if flags & O_EXCL != 0 || !matches!(found, Found::Node(..)) {
                return self.learn_making(path, flags, found);
            }
        }
        let kind = if flags & O_DIRECTORY != 0 {
            FileKind::Directory
        } else {
            FileKind::Unknown
        };
        self.tree.saw(paths, path, follow, kind, repairs)
    }

    /// Learn from an open that made what it opened, or seems to have: the walk has found nothing there.
    fn learn_making(&mut self, path: PathId, flags: i64, found: Found) -> Option<Placed> {
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        // A link that leads nowhere at all cannot have been there.
        let follow = follows_to_open(flags) && !matches!(found, Found::Loop | Found::NotDirectory);
        let target = follow.then(|| self.tree.link_target(paths, path)).flatten();
        let placed = self.tree.made_by_open(paths, path, follow, repairs);
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
            self.scope.paths.row(target);
        }
        self.usage
            .renewed(&self.scope.paths, target.unwrap_or(path), true);
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
