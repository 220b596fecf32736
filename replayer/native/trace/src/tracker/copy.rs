//! Calls that move bytes from one descriptor to another.

use crate::access::Access;
use crate::call::{Args, Call, FileArg, Outcome};
use crate::error::TraceError;
use crate::op::Op;
use crate::tasks::Held;
use crate::tracker::file::Used;
use crate::tracker::resolve::SPECIAL;
use crate::tracker::{Fate, On, Tracker};

impl Tracker {
    /// Take a call that moves bytes from one descriptor to another; one of them may lie outside of the roots.
    pub(crate) fn on_two_files(
        &mut self,
        call: &Call<'_>,
        op: Op,
        both: [FileArg<'_>; 2],
        args: &Args<'_>,
    ) -> Result<Fate, TraceError> {
        let held = both.map(|file| self.held(call.task, file));
        self.between_pipes(call, &held);
        let lost = held.iter().flatten().find_map(Held::lost);
        let is_inside = held.iter().flatten().any(|held| held.inside().is_some());
        let [source, target] = held.map(|held| self.with_bytes(held?.inside()?));
        if source.is_none() && target.is_none() {
            // Below the roots, and without bytes.
            let special = is_inside.then_some(SPECIAL);
            if let Some(why) = lost.or(special) {
                return Ok(self.leave_out(call, why));
            }
            self.counts.out_of_scope.add(call.name);
            return Ok(Fate::Other);
        }
        let [from, to] = [source, target].map(|id| {
            id.and_then(|id| {
                self.files
                    .get(id)
                    .map(|description| (id, Used::of(description)))
            })
        });
        let on = On {
            file: from.map(|(_, used)| used.slot),
            to_file: to.map(|(_, used)| used.slot),
            ..On::default()
        };
        self.emit(call, op, on, args)?;
        for (_, used) in [from, to].into_iter().flatten() {
            self.order.file(used.slot, Access::Write);
        }
        let Outcome::Value(value) = call.outcome else {
            return Ok(Fate::Event);
        };
        let count = if op == Op::Clone { i64::MAX } else { value };
        if let Some((id, used)) = from {
            let offset = args.offset.or(used.offset).filter(|_| op != Op::Clone);
            self.learn_read(used, offset, (count, count));
            if args.offset.is_none() {
                self.advance(id, count);
            }
            self.counts.bytes_read += u64::try_from(value).unwrap_or(0);
        }
        if let Some((id, used)) = to {
            let placed = args.text.as_deref().and_then(crate::bytes::number);
            self.learn_write(used, placed.or(used.offset), value);
            if placed.is_none() {
                self.advance(id, value);
            }
            self.counts.bytes_written += u64::try_from(value).unwrap_or(0);
        }
        Ok(Fate::Event)
    }

    /// The same description, unless it is one of a fifo, socket or device: these have no bytes of their own.
    fn with_bytes(&self, id: u32) -> Option<u32> {
        let node = self.files.get(id).and_then(|one| one.node);
        (!self.tree.is_special(node)).then_some(id)
    }
}
