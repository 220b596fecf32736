//! Calls on two paths: renames and links.

use crate::access::Access;
use crate::call::{Args, Call, FileKind, Outcome, PathArg};
use crate::constants::{AT_SYMLINK_FOLLOW, RENAME_EXCHANGE};
use crate::error::TraceError;
use crate::op::Op;
use crate::paths::PathId;
use crate::scope::{Hit, Spot};
use crate::tracker::naming::Source;
use crate::tracker::resolve::{FAILED_OUTSIDE, FOR_ITS_ENDING, fails_elsewhere, fails_for_ending};
use crate::tracker::{Fate, On, Tracker};
use crate::tree::{Found, NodeId};

impl Tracker {
    /// Take a call on two paths.
    pub(crate) fn on_two_paths(
        &mut self,
        call: &Call<'_>,
        op: Op,
        both: [&PathArg<'_>; 2],
        args: &Args<'_>,
    ) -> Result<Fate, TraceError> {
        let [from, to] = both;
        let flags = args.flags.unwrap_or(0);
        match self.named_by_descriptor(call.task, from, (op, flags)) {
            Some(Source::Open(id)) => return self.link_open(call, id, to),
            Some(Source::Gone(why)) => return Ok(self.link_gone(call, why, to)),
            Some(Source::Proc) => return Ok(self.drop_call(call, Hit::Outside)),
            None => {}
        }
        let (source, slot) = self.resolve(call, from);
        let (target, to_slot) = self.resolve(call, to);
        let crosses = [source, target].contains(&Hit::Outside);
        let (source, target) = match (source, target) {
            (Hit::Inside(source), Hit::Inside(target)) => (Some(source), Some(target)),
            (Hit::Inside(source), Hit::Outside) => (Some(source), self.outside_place(call, to)),
            (Hit::Outside, Hit::Inside(target)) => (self.outside_place(call, from), Some(target)),
            (Hit::Outside, Hit::Outside) => return Ok(self.drop_call(call, source)),
            (hit @ (Hit::Unknown | Hit::TooLong | Hit::Nameless | Hit::Empty), _) | (_, hit) => {
                return Ok(self.drop_call(call, hit));
            }
        };
        let (Some(source), Some(target)) = (source, target) else {
            return Ok(self.drop_call(call, Hit::TooLong));
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
        let on = On {
            path: Some(source),
            to_path: Some(target),
            file: to_slot,
            to_file: slot,
        };
        let seat = self.emit(call, op, on, args)?;
        if let Outcome::Error(number) = call.outcome {
            self.learn_pair_failure(source, target, number);
            self.order_names(seat, source, Access::Read);
            self.order_names(seat, target, Access::Read);
            self.order_entries(target, number);
            return Ok(Fate::Event);
        }
        // The places before and after are the same: a rename changes what they mean, not where they are.
        let renames = op == Op::Rename;
        let access = if renames { Access::Write } else { Access::Read };
        self.order_names(seat, source, access);
        self.order_names(seat, target, Access::Write);
        let moved = self.learn_pair(op, source, target, flags);
        if let (true, Some(node)) = (renames && crosses, moved) {
            self.arrived(call, from, node);
        }
        Ok(Fate::Event)
    }

    /// Returns what has the target's name now, if that is known.
    fn learn_pair(&mut self, op: Op, source: PathId, target: PathId, flags: i64) -> Option<NodeId> {
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        let placed = match op {
            Op::Rename if flags & RENAME_EXCHANGE != 0 => {
                self.tree.exchanged(paths, source, target, repairs)
            }
            Op::Rename => self.tree.renamed(paths, source, target, repairs),
            _ if flags & AT_SYMLINK_FOLLOW != 0 => {
                let real = self.tree.link_target(paths, source).unwrap_or(source);
                self.tree.linked(paths, real, target, repairs)
            }
            _ => self.tree.linked(paths, source, target, repairs),
        };
        if op == Op::Rename {
            self.usage.renewed(paths, source, false);
            let moved = placed.map(|[(node, _), _]| self.tree.kind(node));
            if !matches!(moved, Some(FileKind::Regular | FileKind::Unknown)) {
                self.order.turn();
            }
        }
        self.usage.renewed(paths, target, true);
        if let (Op::Rename, Some([(here, _), (there, _)])) = (op, placed) {
            let moves = [(source, target, there), (target, source, here)];
            // Where two names were exchanged, the second move is the other one's.
            let count = if here == there { 1 } else { 2 };
            self.take_along(moves.get(..count).unwrap_or_default());
        }
        placed.map(|[(node, _), _]| node)
    }

    /// Directories were renamed, each from a place to a place: what is open in them, and who works in them, is elsewhere now.
    fn take_along(&mut self, moves: &[(PathId, PathId, NodeId)]) {
        let is_file = |&(_, _, node): &_| self.tree.kind(node) == FileKind::Regular;
        if moves.iter().all(is_file) {
            return;
        }
        let paths = &mut self.scope.paths;
        for description in self.files.iter_mut() {
            let place = description.place;
            let now = moves.iter().find_map(|&(from, to, node)| {
                let is_other = place == from && description.node != Some(node);
                paths.moved(place, from, to).filter(|_| !is_other)
            });
            description.place = now.unwrap_or(place);
        }
        for cwd in self.tasks.cwds_mut() {
            if let Spot::Inside(place) = cwd.spot {
                let mut each = moves.iter();
                let now = each.find_map(|&(from, to, _)| paths.moved(place, from, to));
                cwd.spot = Spot::Inside(now.unwrap_or(place));
            }
        }
    }

    fn learn_pair_failure(&mut self, source: PathId, target: PathId, number: u16) {
        use replayer_ops::numbers::{EEXIST, ENOENT, ENOTEMPTY, EXDEV};
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        match number {
            // Either the source is missing or the directory of the target: the source, unless it is known to be there.
            ENOENT if !matches!(self.tree.find(paths, source, false), Found::Node(..)) => {
                self.tree.missed(paths, source, false, repairs);
            }
            EEXIST | ENOTEMPTY => {
                for path in [source, target] {
                    self.tree
                        .saw(paths, path, false, FileKind::Unknown, repairs);
                }
            }
            _ => {
                if number == EXDEV {
                    self.counts.blind.add("EXDEV between file systems");
                }
                for path in [source, target] {
                    self.tree.looked_at(paths, path, false);
                }
            }
        }
    }
}
