//! Calls that move bytes from one descriptor to another.

use crate::access::Access;
use crate::call::{Args, Call, FileArg, Outcome};
use crate::error::TraceError;
use crate::op::Op;
use crate::tracker::file::Used;
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
        let [source, target] = both.map(|file| self.inside(call.task, file));
        if source.is_none() && target.is_none() {
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

    /// The description of a file in the trace; a fifo, socket or device has no bytes of its own.
    pub(crate) fn inside(&mut self, task: u64, file: FileArg<'_>) -> Option<u32> {
        let id = self.held(task, file)?.inside()?;
        let node = self.files.get(id).and_then(|one| one.node);
        (!self.tree.is_special(node)).then_some(id)
    }
}
