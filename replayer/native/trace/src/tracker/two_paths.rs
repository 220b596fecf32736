//! Calls on two paths: renames and links, also of what a descriptor names.

use crate::call::{Args, At, Call, FileKind, Outcome, PathArg};
use crate::constants::{AT_EMPTY_PATH, AT_SYMLINK_FOLLOW, RENAME_EXCHANGE};
use crate::error::TraceError;
use crate::order::Access;
use crate::paths::PathId;
use crate::scope::{Location, Resolved};
use crate::tasks::FdTarget;
use crate::tracker::resolve::{
    FAILED_OUTSIDE, FOR_ITS_ENDING, SPECIAL, fails_elsewhere, fails_for_ending,
};
use crate::tracker::{Disposition, Operands, Tracker};
use crate::tree::{Found, NodeId};
use replayer_ops::Op;
use replayer_ops::numbers::{EEXIST, ENOENT};

impl Tracker {
    pub(crate) fn on_two_paths(
        &mut self,
        call: &Call<'_>,
        op: Op,
        both: [&PathArg<'_>; 2],
        args: &Args<'_>,
    ) -> Result<Disposition, TraceError> {
        let [from, to] = both;
        let flags = args.flags.unwrap_or(0);
        match self.named_by_descriptor(call.task, from, (op, flags)) {
            Some(LinkSource::Open(id)) => return self.link_open(call, id, to),
            Some(LinkSource::Gone(why)) => return Ok(self.link_gone(call, why, to)),
            Some(LinkSource::Proc) => return Ok(self.count_dropped(call, Resolved::Outside)),
            None => {}
        }
        let (source, slot) = self.resolve(call, from);
        let (target, to_slot) = self.resolve(call, to);
        let crosses = [source, target].contains(&Resolved::Outside);
        if [source, target] == [Resolved::Outside; 2] {
            return Ok(self.count_dropped(call, source));
        }
        let mut ends = [source, target].into_iter();
        if let Some(lost) = ends.find(|end| end.is_lost()) {
            return Ok(self.count_dropped(call, lost));
        }
        let source = self.place_of(call, from, source);
        let target = self.place_of(call, to, target);
        let (Ok(source), Ok(target)) = (source, target) else {
            return Ok(self.count_dropped(call, Resolved::TooLong));
        };
        if crosses && fails_elsewhere(call.outcome) {
            return Ok(self.leave_out(call, FAILED_OUTSIDE));
        }
        if both
            .iter()
            .any(|path| fails_for_ending(op, path, call.outcome, false))
        {
            return Ok(self.leave_out(call, FOR_ITS_ENDING));
        }
        let operands = Operands {
            path: Some(source),
            to_path: Some(target),
            file: to_slot,
            to_file: slot,
        };
        self.emit(call, op, operands, args)?;
        if let Outcome::Error(number) = call.outcome {
            self.learn_pair_failure(source, target, number);
            self.order_names(source, Access::Read);
            self.order_names(target, Access::Read);
            self.order_entries(target, number);
            return Ok(Disposition::Event);
        }
        // The places before and after are the same: a rename changes what they mean, not where they are.
        let renames = op == Op::Rename;
        let access = if renames { Access::Write } else { Access::Read };
        self.order_names(source, access);
        self.order_names(target, Access::Write);
        let moved = self.learn_pair(op, source, target, flags);
        if let (true, Some(node)) = (renames && crosses, moved) {
            self.arrived(call, from, node);
        }
        Ok(Disposition::Event)
    }

    /// The place of a path in the trace, which it has outside of the roots as well.
    fn place_of(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
        resolved: Resolved,
    ) -> Result<PathId, Resolved> {
        match resolved {
            Resolved::Inside(place) => Ok(place),
            Resolved::Outside => self.outside_place(call, path).ok_or(Resolved::TooLong),
            lost => Err(lost),
        }
    }

    /// Returns what has the target's name now, if that is known.
    fn learn_pair(&mut self, op: Op, source: PathId, target: PathId, flags: i64) -> Option<NodeId> {
        let placed = match op {
            Op::Rename if flags & RENAME_EXCHANGE != 0 => self.tree.exchanged(source, target),
            Op::Rename => self.tree.renamed(source, target),
            _ if flags & AT_SYMLINK_FOLLOW != 0 => {
                let real = self.tree.link_target(source).unwrap_or(source);
                self.tree.linked(real, target)
            }
            _ => self.tree.linked(source, target),
        };
        if op == Op::Rename {
            self.usage.renewed(&self.tree.paths, source, false);
            let moved = placed.map(|[(node, _), _]| self.tree.kind(node));
            if !matches!(moved, Some(FileKind::Regular | FileKind::Unknown)) {
                self.order.add_barrier();
            }
        }
        self.usage.renewed(&self.tree.paths, target, true);
        if let (Op::Rename, Some([(here, _), (there, _)])) = (op, placed) {
            let moves = [(source, target, there), (target, source, here)];
            // Where two names were exchanged, the second move is the other one's.
            let count = if here == there { 1 } else { 2 };
            self.move_open_files(moves.get(..count).unwrap_or_default());
        }
        placed.map(|[(node, _), _]| node)
    }

    /// Directories were renamed, each from a place to a place: what is open in them, and who works in them, is elsewhere now.
    fn move_open_files(&mut self, moves: &[(PathId, PathId, NodeId)]) {
        let is_file = |&(_, _, node): &_| self.tree.kind(node) == FileKind::Regular;
        if moves.iter().all(is_file) {
            return;
        }
        let paths = &mut self.tree.paths;
        for description in self.files.iter_mut() {
            let place = description.place;
            let now = moves.iter().find_map(|&(from, to, node)| {
                let is_other = place == from && description.node != Some(node);
                paths.moved(place, from, to).filter(|_| !is_other)
            });
            description.place = now.unwrap_or(place);
        }
        for mut cwd in self.tasks.cwds_mut() {
            if let Location::Inside(place) = cwd.location {
                let mut each = moves.iter();
                let now = each.find_map(|&(from, to, _)| paths.moved(place, from, to));
                cwd.location = Location::Inside(now.unwrap_or(place));
            }
        }
    }

    fn learn_pair_failure(&mut self, source: PathId, target: PathId, number: u16) {
        use replayer_ops::numbers::{EEXIST, ENOENT, ENOTEMPTY, EXDEV};
        match number {
            // Either the source is missing or the directory of the target: the source, unless it is known to be there.
            ENOENT if !matches!(self.tree.find(source, false), Found::Node(..)) => {
                self.tree.missed(source, false);
            }
            EEXIST | ENOTEMPTY => {
                for path in [source, target] {
                    self.tree.saw(path, false, FileKind::Unknown);
                }
            }
            _ => {
                if number == EXDEV {
                    self.counts.blind.add("EXDEV between file systems");
                }
                for path in [source, target] {
                    self.tree.looked_at(path, false);
                }
            }
        }
    }
}

/// What a path that names a descriptor of a file below the roots is the source of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkSource {
    /// Of a link of what this description is open on.
    Open(u32),
    /// The same of a file that cannot be opened again, and why.
    Gone(&'static str),
    /// Of a call on the link in /proc itself, which lies on another file system: it fails.
    Proc,
}

impl Tracker {
    /// What a call on two paths names by a descriptor: `linkat(7, "", …, AT_EMPTY_PATH)`, or a path through /proc.
    pub(crate) fn named_by_descriptor(
        &mut self,
        task: u64,
        from: &PathArg<'_>,
        (op, flags): (Op, i64),
    ) -> Option<LinkSource> {
        let (held, is_meant) = match from.at {
            At::File(file) if from.text.is_empty() && flags & AT_EMPTY_PATH != 0 => {
                (self.held(task, file)?, true)
            }
            _ => {
                let held = self.held_through_proc(task, &from.text)?;
                (held, flags & AT_SYMLINK_FOLLOW != 0)
            }
        };
        match held {
            FdTarget::Outside(_) | FdTarget::Pipe(_) => None,
            _ if op != Op::Link || !is_meant => Some(LinkSource::Proc),
            FdTarget::Inside(id) => Some(LinkSource::Open(id)),
            FdTarget::Lost(why) => Some(LinkSource::Gone(why)),
        }
    }

    /// Take a link of what a description is open on.
    pub(crate) fn link_open(
        &mut self,
        call: &Call<'_>,
        id: u32,
        to: &PathArg<'_>,
    ) -> Result<Disposition, TraceError> {
        let (resolved, directory) = self.resolve(call, to);
        if resolved == Resolved::Outside && fails_elsewhere(call.outcome) {
            return Ok(self.leave_out(call, FAILED_OUTSIDE));
        }
        let target = match self.place_of(call, to, resolved) {
            Ok(target) => target,
            Err(lost) => return Ok(self.count_dropped(call, lost)),
        };
        let Some(slot) = self.files.get(id).map(|open| (open.slot, open.untold)) else {
            return Ok(Disposition::Other);
        };
        match slot {
            (_, true) => Ok(self.leave_out(call, SPECIAL)),
            // Without a privilege `AT_EMPTY_PATH` says ENOENT whatever there is: nothing is known, and who has it is not refused.
            _ if call.outcome == Outcome::Error(ENOENT) => {
                Ok(self.leave_out(call, "descriptor that was not linked"))
            }
            _ if fails_for_ending(Op::Link, to, call.outcome, false) => {
                Ok(self.leave_out(call, FOR_ITS_ENDING))
            }
            (slot, _) => self.take_link(call, (id, slot), (target, directory)),
        }
    }

    fn take_link(
        &mut self,
        call: &Call<'_>,
        (id, slot): (u32, u32),
        (target, directory): (PathId, Option<u32>),
    ) -> Result<Disposition, TraceError> {
        let operands = Operands {
            to_path: Some(target),
            file: directory,
            to_file: Some(slot),
            ..Operands::default()
        };
        // By which of the two ways the descriptor was named changes nothing.
        self.emit(call, Op::Link, operands, &Args::default())?;
        self.order.file(slot, Access::Read);
        match call.outcome {
            Outcome::Value(_) => {
                self.order_names(target, Access::Write);
                self.named(id, target);
            }
            Outcome::Error(number) => {
                if number == EEXIST {
                    let kind = FileKind::Unknown;
                    self.tree.saw(target, false, kind);
                } else {
                    self.tree.looked_at(target, false);
                }
                self.order_names(target, Access::Read);
            }
            Outcome::Unknown => {}
        }
        Ok(Disposition::Event)
    }

    /// From now on a name means what a description is open on.
    fn named(&mut self, id: u32, target: PathId) {
        let is_gone = self.resolved_description(id) == Resolved::Nameless;
        let Some(open) = self.files.get_mut(id) else {
            return;
        };
        if let Some(node) = open.node {
            self.tree.named(node, target);
        } else {
            let made = self.tree.made(target, FileKind::Regular);
            open.node = made.map(|(node, _)| node);
        }
        if is_gone {
            open.place = target;
            open.nameless = false;
        }
        self.usage.renewed(&self.tree.paths, target, true);
    }

    /// A file that cannot be opened again gets a name: no event says so, but from now on there is a file.
    pub(crate) fn link_gone(
        &mut self,
        call: &Call<'_>,
        why: &str,
        to: &PathArg<'_>,
    ) -> Disposition {
        if let (Resolved::Inside(target), true) = (self.resolve(call, to).0, call.outcome.is_ok()) {
            self.tree.made(target, FileKind::Regular);
            self.usage.renewed(&self.tree.paths, target, true);
            self.counts
                .blind
                .add("files that got a name by a descriptor that is not followed");
        }
        self.leave_out(call, why)
    }
}
