//! Names for what is open: links that are made through a descriptor, of files that may have no name (`O_TMPFILE`).

use crate::access::Access;
use crate::call::{Args, At, Call, FileKind, Outcome, PathArg};
use crate::constants::{AT_EMPTY_PATH, AT_SYMLINK_FOLLOW};
use crate::error::TraceError;
use crate::op::Op;
use crate::paths::PathId;
use crate::scope::Hit;
use crate::tasks::Held;
use crate::tracker::resolve::{
    FAILED_OUTSIDE, FOR_ITS_ENDING, SPECIAL, fails_elsewhere, fails_for_ending,
};
use crate::tracker::{Fate, On, Tracker};
use replayer_ops::numbers::{EEXIST, ENOENT};

/// What a path that names a descriptor of a file below the roots is the source of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
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
    ) -> Option<Source> {
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
            Held::Outside(_) | Held::Pipe(_) => None,
            _ if op != Op::Link || !is_meant => Some(Source::Proc),
            Held::Inside(id) => Some(Source::Open(id)),
            Held::Lost(why) => Some(Source::Gone(why)),
        }
    }

    /// Take a link of what a description is open on.
    pub(crate) fn link_open(
        &mut self,
        call: &Call<'_>,
        id: u32,
        to: &PathArg<'_>,
    ) -> Result<Fate, TraceError> {
        let (hit, directory) = self.resolve(call, to);
        let target = match hit {
            Hit::Inside(target) => target,
            Hit::Outside if fails_elsewhere(call.outcome) => {
                return Ok(self.leave_out(call, FAILED_OUTSIDE));
            }
            Hit::Outside => match self.outside_place(call, to) {
                Some(target) => target,
                None => return Ok(self.drop_call(call, Hit::TooLong)),
            },
            hit => return Ok(self.drop_call(call, hit)),
        };
        let Some(slot) = self.files.get(id).map(|open| (open.slot, open.untold)) else {
            return Ok(Fate::Other);
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
    ) -> Result<Fate, TraceError> {
        let on = On {
            to_path: Some(target),
            file: directory,
            to_file: Some(slot),
            ..On::default()
        };
        // By which of the two ways the descriptor was named changes nothing.
        let seat = self.emit(call, Op::Link, on, &Args::default())?;
        self.order.file(slot, Access::Read);
        match call.outcome {
            Outcome::Value(_) => {
                self.order_names(seat, target, Access::Write);
                self.named(id, target);
            }
            Outcome::Error(number) => {
                let (paths, repairs) = (&self.scope.paths, &mut self.counts.repairs);
                if number == EEXIST {
                    let kind = FileKind::Unknown;
                    self.tree.saw(paths, target, false, kind, repairs);
                } else {
                    self.tree.looked_at(paths, target, false);
                }
                self.order_names(seat, target, Access::Read);
            }
            Outcome::Unknown => {}
        }
        Ok(Fate::Event)
    }

    /// From now on a name means what a description is open on.
    fn named(&mut self, id: u32, target: PathId) {
        let is_gone = self.hit_of(id) == Hit::Nameless;
        let (paths, repairs) = (&self.scope.paths, &mut self.counts.repairs);
        let Some(open) = self.files.get_mut(id) else {
            return;
        };
        if let Some(node) = open.node {
            self.tree.named(paths, node, target, repairs);
        } else {
            let made = self.tree.made(paths, target, FileKind::Regular, repairs);
            open.node = made.map(|(node, _)| node);
        }
        if is_gone {
            open.place = target;
            open.nameless = false;
        }
        self.usage.renewed(paths, target, true);
    }

    /// A file that cannot be opened again gets a name: no event says so, but from now on there is a file.
    pub(crate) fn link_gone(&mut self, call: &Call<'_>, why: &str, to: &PathArg<'_>) -> Fate {
        if let (Hit::Inside(target), true) = (self.resolve(call, to).0, call.outcome.is_ok()) {
            let (paths, repairs) = (&self.scope.paths, &mut self.counts.repairs);
            self.tree.made(paths, target, FileKind::Regular, repairs);
            self.usage.renewed(paths, target, true);
            self.counts
                .blind
                .add("files that got a name by a descriptor that is not followed");
        }
        self.leave_out(call, why)
    }
}
