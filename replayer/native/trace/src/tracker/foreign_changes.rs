//! What others than the traced program did to its files meanwhile, as far as results show it.
//!
//! A log that others append to is longer each time that it is looked at, and a description that was open before stands somewhere. No call
//! says so, and later results depend on it: an event tells.

use crate::call::{Args, Call, FileKind};
use crate::error::TraceError;
use crate::order::Access;
use crate::paths::PathId;
use crate::tracker::file::UsedFile;
use crate::tracker::{Operands, Tracker};
use crate::tree::NodeId;
use replayer_ops::Op;

impl Tracker {
    /// Tell what a call on a descriptor, if it went well, shows to have happened before it. Returns what is known of the description now.
    pub(crate) fn record_foreign_changes(
        &mut self,
        call: &Call<'_>,
        op: Op,
        (id, mut used): (u32, UsedFile),
        args: &Args<'_>,
    ) -> Result<UsedFile, TraceError> {
        let (Some(node), Some(got)) = (used.node, call.outcome.value()) else {
            return Ok(used);
        };
        let reached = match op {
            Op::Fstat => args.seen.and_then(|seen| seen.size),
            Op::Read | Op::Readv => {
                if used.offset.is_none() {
                    used.offset =
                        self.record_position(call, (id, used.slot), node, (args.size, got))?;
                }
                ended(used.offset, got)
            }
            Op::Pread | Op::Preadv | Op::MmapRead => ended(args.offset, got),
            _ => None,
        };
        if let (Some(size), Some(open)) = (reached, self.files.get(id)) {
            self.record_growth(call, open.place, node, size)?;
        }
        Ok(used)
    }

    /// Tell what a look-up that went well shows to have happened before it.
    pub(crate) fn record_foreign_growth(
        &mut self,
        call: &Call<'_>,
        op: Op,
        place: PathId,
        args: &Args<'_>,
    ) -> Result<(), TraceError> {
        let size = args.seen.and_then(|seen| seen.size);
        let (Op::Stat | Op::Lstat, Some(size)) = (op, size) else {
            return Ok(());
        };
        match self.tree.find(place, op.follows()).node() {
            Some(node) => self.record_growth(call, place, node, size),
            None => Ok(()),
        }
    }

    /// A read that stopped at the end of a file whose size is known tells where the description stood.
    fn record_position(
        &mut self,
        call: &Call<'_>,
        (id, slot): (u32, u32),
        node: NodeId,
        (asked, got): (Option<i64>, i64),
    ) -> Result<Option<i64>, TraceError> {
        let size = self.tree.seen_size(node).unwrap_or(-1);
        let offset = size.saturating_sub(got);
        if offset < 0 || asked.is_none_or(|asked| got >= asked) {
            return Ok(None);
        }
        let operands = Operands::of_file(slot);
        let args = Args {
            offset: Some(offset),
            ..Args::default()
        };
        self.record_meanwhile(call, operands, &args)?;
        self.order.file(slot, Access::Write);
        self.seek(id, offset);
        Ok(Some(offset))
    }

    /// A file is longer than it was when its end was last seen, and no event has made it so.
    fn record_growth(
        &mut self,
        call: &Call<'_>,
        place: PathId,
        node: NodeId,
        size: i64,
    ) -> Result<(), TraceError> {
        let known = self.tree.seen_size(node).filter(|&known| known < size);
        let is_regular = matches!(self.tree.kind(node), FileKind::Regular | FileKind::Unknown);
        let (Some(known), true) = (known, is_regular) else {
            return Ok(());
        };
        if self.tree.find(place, true).node() != Some(node) {
            return Ok(()); // It has no name any more, or another one.
        }
        let operands = Operands {
            path: Some(place),
            ..Operands::default()
        };
        let args = Args {
            size: Some(size),
            ..Args::default()
        };
        self.record_meanwhile(call, operands, &args)?;
        self.order.data(node, (known, i64::MAX), Access::Write);
        self.usage.changed(place);
        self.tree.grew(node, size);
        Ok(())
    }

    fn record_meanwhile(
        &mut self,
        call: &Call<'_>,
        operands: Operands,
        args: &Args<'_>,
    ) -> Result<(), TraceError> {
        let before = Call::implied(call.task, "meanwhile", call.start_ns);
        self.emit(&before, Op::Meanwhile, operands, args)?;
        Ok(())
    }
}

/// Where a read ended that returned something.
fn ended(offset: Option<i64>, got: i64) -> Option<i64> {
    offset
        .filter(|_| got > 0)
        .map(|offset| offset.saturating_add(got))
}
