//! Ops that move data of an open file; some are series of calls, each an op.

use super::{Act, Done, Interpreter};
use crate::ops::{self, Op};
use crate::program::{Draw, StepCall};
use crate::sys::{Answer, Kernel, data, files};
use rustix::io::Errno;

/// The buffer of getdents64.
const DIRECTORY_BYTES: u64 = 32 << 10;

impl<'a, K: Kernel> Interpreter<'a, K> {
    #[inline(never)]
    pub(super) fn data_call(&mut self, act: Act<'_>, slot: u8, call: &StepCall) -> Done {
        match call {
            StepCall::Read {
                size,
                until_end,
                check_size,
                ..
            } => {
                let size = self.draw(*size);
                self.read(act, slot, size, (*until_end, *check_size))
            }
            StepCall::Pread { size, offset, .. } => {
                let (size, offset) = (self.draw(*size), self.draw(*offset));
                self.pread(act, slot, size, offset)
            }
            StepCall::PreadRandom { size, align, .. } => {
                let size = self.draw(*size);
                let offset = self.position(slot, size, *align);
                self.pread(act, slot, size, offset)
            }
            StepCall::Write(pieces) | StepCall::Append(pieces) => {
                let total = self.draw(pieces.total);
                let first = pieces.first.map(|first| self.draw(first).max(1));
                let block = self.draw(pieces.block).max(1);
                self.write(act, slot, total, (first.unwrap_or(block), block))
            }
            StepCall::Pwrite { size, offset, .. } => {
                let (size, offset) = (self.draw(*size), self.draw(*offset));
                self.pwrite(act, slot, size, offset)
            }
            StepCall::PwriteRandom { size, align, .. } => {
                let size = self.draw(*size);
                let offset = self.position(slot, size, *align);
                self.pwrite(act, slot, size, offset)
            }
            StepCall::Getdents { .. } => self.getdents(act, slot),
            StepCall::CopyFileRange { to, size, once, .. } => {
                self.copy(act, (slot, to.0), *size, *once)
            }
            StepCall::Sendfile { size, once, .. } => self.sendfile(act, slot, *size, *once),
            _ => match self.file(slot) {
                Some(file) => {
                    let measured = self.measure(act, |_| data::mmap_read(file))?;
                    self.settle(act, measured.outcome(), measured.value(), measured)
                }
                None => self.refuse(act, Errno::BADF),
            },
        }
    }

    fn read(
        &mut self,
        act: Act<'_>,
        slot: u8,
        size: u64,
        (until_end, check_size): (bool, bool),
    ) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let buffer = self.scratch.first(size);
        let want = self.size_of(slot);
        let mut total = 0;
        loop {
            let measured = self.measure(act, |_| data::read(file, buffer))?;
            let read = measured.value();
            total += read;
            let last = !until_end || read == 0;
            let is_short =
                check_size && last && total != want && measured.answer.is_ok() && K::REAL;
            let outcome = if is_short {
                ops::SHORT
            } else {
                measured.outcome_of_data::<K>()
            };
            let outcome = self.verified(slot, (None, size), &measured, outcome);
            let done = self.settle(act, outcome, read, measured)?;
            if last || done.is_none() {
                return Ok(done.map(|_| total));
            }
        }
    }

    fn pread(&mut self, act: Act<'_>, slot: u8, size: u64, offset: u64) -> Done {
        let buffer = self.scratch.first(size);
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let measured = self.measure(act, |_| data::pread(file, buffer, offset))?;
        let outcome = measured.outcome_of_data::<K>();
        let outcome = self.verified(slot, (Some(offset), size), &measured, outcome);
        self.settle(act, outcome, measured.value(), measured)
    }

    /// A random multiple of `align` at which `size` bytes fit into the bound entry.
    fn position(&mut self, slot: u8, size: u64, align: u64) -> u64 {
        let whole = self.size_of(slot);
        let starts = whole.checked_sub(size).map_or(1, |room| room / align + 1);
        align * self.stream.below(starts)
    }

    /// Write so many bytes in pieces: the first one as long as is said, the others as long as a block.
    fn write(&mut self, act: Act<'_>, slot: u8, total: u64, pieces: (u64, u64)) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        if self.verifier.is_some() {
            return self.write_stamped(act, slot, total, pieces);
        }
        let (mut piece, block) = pieces;
        let mut rest = total;
        while rest > 0 {
            let bytes = self.slice(rest.min(piece));
            piece = block;
            let done = self.write_once(act, bytes.len(), |_| data::write(file, bytes))?;
            match done {
                Some(written) => rest = rest.saturating_sub(written),
                None => return Ok(None),
            }
        }
        Ok(Some(total))
    }

    fn pwrite(&mut self, act: Act<'_>, slot: u8, size: u64, offset: u64) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        if self.verifier.is_some() {
            return self.write_one(act, slot, (size, Some(offset)));
        }
        let bytes = self.slice(size);
        self.write_once(act, bytes.len(), |_| data::pwrite(file, bytes, offset))
    }

    /// What the next write op writes.
    #[inline]
    fn slice(&mut self, size: u64) -> &'a [u8] {
        let turn = self.writes;
        self.writes += 1;
        self.setting
            .written
            .slice(self.thread_state.user, turn, size)
    }

    #[inline]
    pub(super) fn write_once(
        &mut self,
        act: Act<'_>,
        len: usize,
        call: impl FnOnce(&K) -> Answer,
    ) -> Done {
        let mut measured = self.measure(act, call)?;
        if !K::REAL {
            measured.answer = Ok(len as u64);
        }
        let is_short = len > 0 && measured.answer == Ok(0);
        let outcome = if is_short {
            ops::SHORT
        } else {
            measured.outcome()
        };
        let done = self.settle(act, outcome, measured.value(), measured)?;
        // An allowed SHORT ends the step as every outcome but ok does.
        Ok(done.filter(|_| !is_short))
    }

    fn getdents(&mut self, act: Act<'_>, slot: u8) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let buffer = self.scratch.first(DIRECTORY_BYTES);
        let mut total = 0;
        loop {
            let measured = self.measure(act, |_| data::getdents(file, buffer))?;
            match self.settle(act, measured.outcome_of_data::<K>(), 0, measured)? {
                Some(0) => return Ok(Some(total)),
                Some(read) => total += read,
                None => return Ok(None),
            }
        }
    }

    fn copy(&mut self, act: Act<'_>, (from, to): (u8, u8), size: Draw, once: bool) -> Done {
        let size = self.draw(size);
        let (Some(from), Some(to)) = (self.file(from), self.file(to)) else {
            return self.refuse(act, Errno::BADF);
        };
        if once {
            return self.moving(act, |_| data::copy_range((from, None), (to, None), size));
        }
        if !K::REAL {
            return self.moving(act, |_| Ok(0));
        }
        // Not a timed call. A copy onto the end of its own file would go on until the device is full.
        let ask = || files::fstat(from);
        let held = self
            .thread_state
            .show(Op::Fstat, act.place, ask)
            .unwrap_or(u64::MAX);
        self.until_nothing(act, held, |_| {
            data::copy_range((from, None), (to, None), size)
        })
    }

    fn sendfile(&mut self, act: Act<'_>, slot: u8, size: Draw, once: bool) -> Done {
        let size = self.draw(size);
        let sink = self.sink();
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let call = |_: &K| data::sendfile((file, None), sink, size);
        if once {
            return self.moving(act, call);
        }
        self.until_nothing(act, u64::MAX, call)
    }

    /// Repeat a call that moves bytes until it moves none, or more than `most` were moved in all.
    fn until_nothing(&mut self, act: Act<'_>, most: u64, call: impl Fn(&K) -> Answer) -> Done {
        let mut total = 0;
        loop {
            match self.moving(act, &call)? {
                Some(0) => return Ok(Some(total)),
                Some(moved) => total += moved,
                None => return Ok(None),
            }
            if total > most {
                return Ok(Some(total));
            }
        }
    }
}
