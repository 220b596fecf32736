//! Calls that move data or list directories, and what others than the recorded program did meanwhile.

use super::check::{Allowance, Got, Verdict};
use super::lane_replay::{Act, Ended, LaneReplay, Replayed};
use super::slots::Held;
use crate::interpreter::Halt;
use crate::ops::Op;
use crate::program::LockKind;
use crate::replay::program::{
    DataCall, FAVOURS, LetGo, PathId, Recorded, ReplayCall, ScheduledCall, Slot,
};
use crate::sys::controls::{LockRange, lock};
use crate::sys::data::{self, Listing, Wish, clone_file, copy_range, map, readv, sendfile, writev};
use crate::sys::files::lseek;
use crate::sys::{Answer, Kernel};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, RawFd};

/// A file, if it is one of the trace, and a position in it.
type Side = (Option<Slot>, Option<u64>);

impl<'a, K: Kernel> LaneReplay<'a, K> {
    #[inline(never)]
    pub(super) fn enact_data(&mut self, scheduled: &ScheduledCall) -> Replayed {
        match &scheduled.call {
            ReplayCall::Read(extent) => {
                let ops = [Op::Read, Op::Pread, Op::Readv, Op::Preadv];
                self.read(scheduled, extent.op(ops), *extent)
            }
            ReplayCall::ReadMapped(extent) => {
                let range = (extent.offset.unwrap_or(0), extent.size);
                self.moves(scheduled, Op::MmapRead, extent.slot, |file| {
                    data::mmap_read_range(file, range)
                })
            }
            ReplayCall::Write(extent) => {
                let ops = [Op::Write, Op::Pwrite, Op::Writev, Op::Pwritev];
                self.write(scheduled, extent.op(ops), *extent)
            }
            ReplayCall::List { slot, size } => self.list(scheduled, *slot, *size),
            _ => Ok(()),
        }
    }

    fn read(&mut self, scheduled: &ScheduledCall, op: Op, extent: DataCall) -> Replayed {
        let (slot, size, offset, vector) = (extent.slot, extent.size, extent.offset, extent.vector);
        let buffer = self.scratch.first(size);
        let is_whole = buffer.holds(size);
        self.moves(scheduled, op, slot, |file| match offset {
            None if is_whole && vector.is_none() => data::read(file, buffer),
            Some(offset) if is_whole && vector.is_none() => data::pread(file, buffer, offset),
            _ => with_favours(scheduled.recorded, vector, |flags| {
                readv(file, buffer, (offset, size), flags)
            }),
        })
    }

    /// Make a call on the file of a slot that returns how many bytes it moved.
    fn moves(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        slot: Slot,
        call: impl FnOnce(RawFd) -> Answer,
    ) -> Replayed {
        match self.called(op, slot, call) {
            Some((act, ended, _)) => self.settle(scheduled, act, ended.moving()),
            None => self.no_file(scheduled, op, slot),
        }
    }

    /// What the next write call writes to the file of a slot.
    fn bytes(&mut self, slot: Slot, size: u64) -> &'a [u8] {
        let (setting, turn) = (self.setting, self.writes);
        self.writes += 1;
        if self.performance.slots.is_direct(slot) {
            return setting.written.aligned(size);
        }
        setting.written.slice(self.thread_state.user, turn, size)
    }

    fn write(&mut self, scheduled: &ScheduledCall, op: Op, extent: DataCall) -> Replayed {
        let (slot, size, offset, vector) = (extent.slot, extent.size, extent.offset, extent.vector);
        let bytes = self.bytes(slot, size);
        let is_whole = bytes.len() as u64 == size;
        self.moves(scheduled, op, slot, |file| match offset {
            None if is_whole && vector.is_none() => data::write(file, bytes),
            Some(offset) if is_whole && vector.is_none() => data::pwrite(file, bytes, offset),
            _ => with_favours(scheduled.recorded, vector, |flags| {
                writev(file, bytes, (offset, size), flags)
            }),
        })
    }

    fn list(&mut self, scheduled: &ScheduledCall, slot: Slot, size: u64) -> Replayed {
        let mut listing = std::mem::take(&mut self.tools.listing);
        listing.prepare(size);
        let called = self.called(Op::Getdents, slot, |file| listing.fill(file, size));
        let played = match called {
            Some((act, ended, held)) => {
                let answer = ended.answer.map(|filled| listing.entries(filled));
                let ended = Ended { answer, ..ended };
                self.settle_listing(scheduled, (act, ended), &held, &mut listing)
            }
            None => self.no_file(scheduled, Op::Getdents, slot),
        };
        self.tools.listing = listing;
        played
    }

    /// File systems return entries in batches of their own: what must agree is the sum at the recorded end.
    fn settle_listing(
        &mut self,
        scheduled: &ScheduledCall,
        (act, ended): (Act, Ended),
        held: &Held<'_>,
        listing: &mut Listing,
    ) -> Replayed {
        let (Recorded::Exactly(recorded), Ok(got), true) =
            (scheduled.recorded, ended.answer, K::REAL)
        else {
            return self.settle(scheduled, act, ended);
        };
        let mut sums = held.list(recorded, got);
        if recorded > 0 {
            let verdict = if recorded == got {
                Verdict::Matched
            } else {
                Verdict::Allowed(Allowance::ListingBatches)
            };
            return self.book_other(scheduled, act, ended, verdict);
        }
        if got > 0 {
            let op = Op::Getdents;
            let path = held.path();
            let next = || {
                let filled = listing.fill(held.file, u64::MAX)?;
                Ok(listing.entries(filled))
            };
            let (rest, ended_by) = self.untimed(Act::new(op, path), |_| rest_of(next));
            if self.is_broken_off(&ended_by) {
                return self.break_off(scheduled, act, ended);
            }
            sums.1 += rest;
        }
        held.rewind();
        let verdict = match sums.0.cmp(&sums.1) {
            std::cmp::Ordering::Equal if got == 0 => Verdict::Matched,
            std::cmp::Ordering::Equal => Verdict::Allowed(Allowance::ListingBatches),
            std::cmp::Ordering::Greater => Verdict::Diverged(Got::Less),
            std::cmp::Ordering::Less => Verdict::Diverged(Got::More),
        };
        if !matches!(verdict, Verdict::Diverged(_)) {
            return self.book_other(scheduled, act, ended, verdict);
        }
        // What is told of a divergence are the sums.
        let summed = ScheduledCall {
            recorded: Recorded::Exactly(sums.0),
            ..scheduled.clone()
        };
        let answer = Ok(sums.1);
        self.book_other(&summed, act, Ended { answer, ..ended }, verdict)
    }

    #[inline(never)]
    pub(super) fn enact_transfer(&mut self, scheduled: &ScheduledCall) -> Replayed {
        match &scheduled.call {
            ReplayCall::Transfer {
                op,
                from,
                to,
                size,
                from_offset,
                to_offset,
            } => {
                let sides = ((*from, *from_offset), (*to, *to_offset));
                self.transfer(scheduled, *op, sides, u64::from(*size))
            }
            ReplayCall::Clone { from, to } => self.clone_file(scheduled, *from, *to),
            ReplayCall::Map {
                slot,
                offset,
                size,
                protection,
                flags,
            } => {
                let wish = Wish {
                    protection: *protection,
                    flags: *flags,
                };
                self.map(scheduled, *slot, (*offset, *size), wish)
            }
            _ => Ok(()),
        }
    }

    /// One side of a splice is a pipe, which is outside of every trace: what goes there is sent to nowhere, what comes is written.
    fn transfer(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        sides: (Side, Side),
        size: u64,
    ) -> Replayed {
        let ((from, offset), (to, _)) = sides;
        match (op, from, to) {
            (Op::Sendfile, Some(from), _) | (Op::Splice, Some(from), None) => {
                self.sendfile(scheduled, op, (from, offset), (to, size))
            }
            _ => self.copy_range(scheduled, op, sides, size),
        }
    }

    fn copy_range(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        sides: (Side, Side),
        size: u64,
    ) -> Replayed {
        let ((from, from_offset), (to, to_offset)) = sides;
        let extent = |slot, offset| DataCall {
            slot,
            size,
            offset,
            vector: None,
        };
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (from, to),
            (Some(from), None) => return self.read(scheduled, op, extent(from, from_offset)),
            (None, Some(to)) => return self.write(scheduled, op, extent(to, to_offset)),
            (None, None) => return self.omit(scheduled, "copy outside of the trace"),
        };
        let Some(target) = self.performance.slots.hold(to) else {
            return self.no_file(scheduled, op, to);
        };
        let into = (target.file, to_offset);
        self.moves(scheduled, op, from, |file| {
            copy_range((file, from_offset), into, size)
        })
    }

    fn clone_file(&mut self, scheduled: &ScheduledCall, from: Option<Slot>, to: Slot) -> Replayed {
        let op = Op::Clone;
        let Some(from) = from else {
            return self.omit(scheduled, "clone from outside of the trace");
        };
        let Some(source) = self.performance.slots.hold(from) else {
            return self.no_file(scheduled, op, from);
        };
        let file = source.file;
        self.on(scheduled, op, to, |to| clone_file(file, to))
    }

    fn sendfile(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        (from, offset): (Slot, Option<u64>),
        (to, size): (Option<Slot>, u64),
    ) -> Replayed {
        let target = to.map(|to| (to, self.performance.slots.hold(to)));
        let target = match target {
            Some((to, None)) => return self.no_file(scheduled, op, to),
            Some((_, held)) => held,
            None => None,
        };
        let sink = self.setting.sink.as_raw_fd();
        let into = target.as_ref().map_or(sink, |held| held.file);
        self.moves(scheduled, op, from, |file| {
            sendfile((file, offset), into, size)
        })
    }

    fn map(
        &mut self,
        scheduled: &ScheduledCall,
        slot: Slot,
        range: (u64, u64),
        wish: Wish,
    ) -> Replayed {
        let mut mapping = None;
        let called = self.called(Op::Mmap, slot, |file| {
            mapping = Some(map(file, range, wish)?);
            Ok(0)
        });
        // Unmapped outside of the time of the call.
        drop(mapping);
        match called {
            Some((act, ended, _)) => self.settle(scheduled, act, ended),
            None => self.no_file(scheduled, Op::Mmap, slot),
        }
    }
}

impl DataCall {
    /// One of an op at the position of the file, one at a position of its own, and the same two of vectored calls.
    fn op(&self, [plain, placed, vectored, both]: [Op; 4]) -> Op {
        match (self.offset, self.vector) {
            (None, None) => plain,
            (Some(_), None) => placed,
            (None, Some(_)) => vectored,
            (Some(_), Some(_)) => both,
        }
    }
}

/// Make a vectored call with its flags. Where this file system has one of those not that the recorded one had, the bytes move without:
/// what comes later is to find them.
fn with_favours(recorded: Recorded, vector: Option<u32>, call: impl Fn(u32) -> Answer) -> Answer {
    let flags = vector.unwrap_or(0);
    match (call(flags), recorded) {
        (Err(Errno::OPNOTSUPP), Recorded::Exactly(_)) if flags & FAVOURS != 0 => {
            call(flags & !FAVOURS)
        }
        (answer, _) => answer,
    }
}

/// Entries of a listing after the recorded end of it, and what ended them: an answer without any, or an error.
fn rest_of(mut next: impl FnMut() -> Answer) -> (u64, Answer) {
    let mut sum = 0;
    loop {
        match next() {
            Ok(entries @ 1..) => sum += entries,
            last => return (sum, last),
        }
    }
}

impl<K: Kernel> LaneReplay<'_, K> {
    /// End locks that other descriptors of the process have: calls that nobody times, but on some file systems one to the server each.
    pub(super) fn let_go(&self, locks: &LetGo) -> Replayed {
        let range = LockRange {
            kind: LockKind::Unlock,
            whence: 0,
            offset: locks.offset,
            size: locks.size,
        };
        for slot in locks.slots.iter().filter(|_| K::REAL) {
            if let Some(held) = self.performance.slots.hold(*slot) {
                let act = Act::new(Op::Lock, held.path());
                let let_go = self.untimed(act, |_| lock(held.file, range, false));
                // No call of the program, and where nothing is locked nothing is let go.
                if self.is_broken_off(&let_go) {
                    return Err(Halt::Cut);
                }
            }
        }
        Ok(())
    }

    pub(super) fn grow(&mut self, scheduled: &ScheduledCall, path: PathId, size: u64) -> Replayed {
        let act = Act::new(Op::Truncate, path);
        let whole = self.performance.names.path(path);
        let grown = self.untimed(act, |kernel| kernel.truncate(whole, size));
        self.kernel.tidy();
        self.done(
            scheduled,
            &grown,
            "file that others made longer is not there",
        )
    }

    pub(super) fn stand(&mut self, scheduled: &ScheduledCall, slot: Slot, offset: u64) -> Replayed {
        let Some(held) = self.performance.slots.hold(slot) else {
            return self.omit(scheduled, "file that was never open is to be positioned");
        };
        let act = Act::new(Op::Lseek, held.path());
        let (file, offset) = (held.file, i64::try_from(offset).unwrap_or(i64::MAX));
        let stands = self.untimed(act, |_| lseek(file, offset, 0));
        drop(held);
        self.done(scheduled, &stands, "open file cannot be positioned")
    }

    fn done<V>(
        &mut self,
        scheduled: &ScheduledCall,
        answer: &Answer<V>,
        reason: &'static str,
    ) -> Replayed {
        if self.is_broken_off(answer) {
            return Err(Halt::Cut);
        }
        if answer.is_ok() {
            self.pass(scheduled)
        } else {
            self.omit(scheduled, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rest_of;
    use rustix::io::Errno;

    #[test]
    fn the_rest_of_a_listing_says_whether_it_is_all() {
        let whole = [Ok(3), Ok(4), Ok(0), Ok(5)];
        let broken_off = [Ok(3), Err(Errno::INTR)];
        let mut answers = whole.into_iter().chain(broken_off);
        let mut next = || answers.next().unwrap();
        assert_eq!(rest_of(&mut next), (7, Ok(0)));
        assert_eq!(next(), Ok(5));
        assert_eq!(rest_of(next), (3, Err(Errno::INTR)));
    }
}
