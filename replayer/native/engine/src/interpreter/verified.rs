//! What is done around calls where reads are verified: all of it between calls, none of it in their time.

use super::{Act, Done, Halt, Interpreter, Measured};
use crate::call::Call;
use crate::clock::now_ns;
use crate::program::{StepCall, Timed};
use crate::sys::{Answer, Kernel, data};
use crate::verify::{Change, Opening, Verifier, Violation};
use rustix::io::Errno;
use std::ffi::CStr;

/// `FALLOC_FL_KEEP_SIZE` (`linux/falloc.h`): with this flag or none, contents stay as they are.
const KEEP_SIZE: u32 = 1;
/// `RENAME_EXCHANGE` (`linux/fs.h`).
const EXCHANGE: u32 = 2;

/// What a call does with names or contents, noted before it is made.
#[derive(Clone, Copy)]
enum Effect<'a> {
    /// With the new name.
    Rename(Change, Change, &'a [u8]),
    Remove(Change),
    Cut(Change),
    Link(Change),
    /// What is known of contents is void.
    Blur(Change, Option<Change>),
    Seek(u8),
    /// Data are read that nobody looks at: where from and, with its position, where to.
    Pass(u8, Option<(u8, Option<Change>)>),
    /// Nothing of interest.
    None,
}

impl<'a, K: Kernel> Interpreter<'a, K> {
    /// Verify from now on, if the plan wants that.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn verify(&mut self, target: u16) -> Result<(), Errno> {
        let Some(shared) = self.setting.verification.as_ref().filter(|_| K::REAL) else {
            return Ok(());
        };
        let (program, who) = (self.program, (target, self.thread_state.user, self.round));
        let verifier = Verifier::new(shared, who, program.written, self.setting.scratch.bytes())?;
        self.scratch = verifier.scratch.scratch();
        self.verifier = Some(Box::new(verifier));
        Ok(())
    }

    /// Do something beside the transaction: the time that it takes is no part of it.
    fn aside<R>(&mut self, work: impl FnOnce(&mut Verifier<'a>) -> R) -> Option<R> {
        let verifier = self.verifier.as_deref_mut()?;
        let begin_ns = now_ns();
        let done = work(verifier);
        let ns = now_ns().saturating_sub(begin_ns);
        verifier.untold_ns += ns;
        self.journal.aside(ns);
        Some(done)
    }

    pub(super) fn verified_end(&mut self) {
        if let Some(verifier) = self.verifier.as_deref_mut() {
            verifier.tell();
            self.journal.busy_until(now_ns());
        }
    }

    /// Judge what a read returned; the outcome of the op.
    #[inline]
    pub(super) fn verified(
        &mut self,
        slot: u8,
        (offset, size): (Option<u64>, u64),
        measured: &Measured,
        outcome: u8,
    ) -> u8 {
        match measured.answer {
            Ok(read) if self.verifier.is_some() => {
                let found = self.judge(slot, offset, (size, read));
                found.map_or(outcome, Violation::outcome)
            }
            _ => outcome,
        }
    }

    #[cold]
    fn judge(
        &mut self,
        slot: u8,
        offset: Option<u64>,
        (size, read): (u64, u64),
    ) -> Option<Violation> {
        // A read that was broken off ends where it ends.
        let whole = self.scratch.first(size).bytes();
        let want = if self.thread_state.is_cut() {
            read
        } else {
            whole
        };
        self.aside(|verifier| verifier.judge(slot, offset, (want, read)))
            .flatten()
    }

    pub(super) fn write_stamped(
        &mut self,
        act: Act<'_>,
        slot: u8,
        total: u64,
        (mut piece, block): (u64, u64),
    ) -> Done {
        let mut rest = total;
        while rest > 0 {
            let size = rest.min(piece);
            piece = block;
            match self.write_one(act, slot, (size, None))? {
                Some(written) => rest = rest.saturating_sub(written),
                None => return Ok(None),
            }
        }
        Ok(Some(total))
    }

    /// Write data that say whose they are; without an offset where the file's position is.
    pub(super) fn write_one(
        &mut self,
        act: Act<'_>,
        slot: u8,
        (size, offset): (u64, Option<u64>),
    ) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        self.writes += 1;
        let prepared = self.aside(|verifier| {
            let written = verifier.stamp(slot, size, offset);
            (written, std::mem::take(&mut verifier.buffer))
        });
        let Some((written, buffer)) = prepared else {
            return Ok(None);
        };
        let mut answer = Err(Errno::CANCELED);
        let bytes = buffer.first(size);
        let done = self.write_once(act, bytes.len(), |_: &K| -> Answer {
            answer = match offset {
                Some(offset) => data::pwrite(file, bytes, offset),
                None => data::write(file, bytes),
            };
            answer
        });
        self.aside(|verifier| {
            verifier.buffer = buffer;
            verifier.wrote(slot, written, answer);
            if offset.is_none() {
                let moved = written.offset.zip(answer.ok());
                verifier.moved(slot, moved.map(|(from, len)| from + len));
            }
        });
        done
    }

    #[inline]
    pub(super) fn watch_open(&mut self, slot: u8, path: &CStr, flags: u32) -> Option<Opening> {
        self.verifier.as_ref()?;
        let laid = self.laid(slot);
        self.aside(|verifier| verifier.opening(path.to_bytes(), flags, laid))
    }

    #[inline]
    pub(super) fn watch_opened(
        &mut self,
        slot: u8,
        opening: Option<Opening>,
        opened: &Result<Measured, Halt>,
    ) {
        if let Some(opening) = opening {
            let fine = opened
                .as_ref()
                .is_ok_and(|measured| measured.answer.is_ok());
            self.aside(|verifier| verifier.opened(slot, opening, fine));
        }
    }

    #[inline]
    pub(super) fn watch_close(&mut self, slot: u8, closed: &Measured) {
        if self.verifier.is_some() {
            let fine = closed.answer.is_ok();
            self.aside(|verifier| verifier.closed(slot, fine));
        }
    }

    /// Run a step whose call may change what names or contents mean.
    #[cold]
    pub(super) fn run_watched(&mut self, timed: &Timed) -> Done {
        let effect = self.effect(&timed.call);
        let done = self.run(timed);
        self.aside(|verifier| finish(verifier, &effect, done));
        done
    }

    fn effect(&mut self, call: &StepCall) -> Effect<'a> {
        let effect = match call {
            StepCall::Plain(Call::Rename { at, to, flags }) => {
                self.pair_effect((at.0, to.0), flags & EXCHANGE == 0)
            }
            StepCall::Plain(Call::Link { at, to, .. }) => self.pair_effect((at.0, to.0), false),
            StepCall::Plain(Call::Unlink { at }) => self.change(at.0).map(Effect::Remove),
            StepCall::Plain(Call::Truncate { at, .. }) => self.change(at.0).map(Effect::Cut),
            StepCall::Plain(Call::Symlink { at, .. }) => self.change(at.0).map(Effect::Link),
            StepCall::Plain(Call::Lseek { slot, .. }) => Some(Effect::Seek(slot.0)),
            StepCall::Plain(Call::Ftruncate { slot, .. }) => {
                self.change_open(slot.0).map(Effect::Cut)
            }
            StepCall::Plain(Call::Fallocate { slot, mode, .. }) if mode & !KEEP_SIZE != 0 => {
                let change = self.change_open(slot.0);
                change.map(|change| Effect::Blur(change, None))
            }
            StepCall::CopyFileRange { file, to, .. } => {
                let change = self.change_open(to.0);
                Some(Effect::Pass(file.0, Some((to.0, change))))
            }
            StepCall::Sendfile { file, .. } | StepCall::MmapRead { file } => {
                Some(Effect::Pass(file.0, None))
            }
            _ => None,
        };
        effect.unwrap_or(Effect::None)
    }

    fn pair_effect(&mut self, (from, to): (u8, u8), is_move: bool) -> Option<Effect<'a>> {
        if self.is_directory(from) {
            self.aside(|verifier| verifier.directory_moved());
        }
        let name = self.path(to)?.to_bytes();
        let (from, to) = (self.change(from)?, self.change(to)?);
        Some(if is_move {
            Effect::Rename(from, to, name)
        } else {
            Effect::Blur(from, Some(to))
        })
    }

    fn change(&mut self, slot: u8) -> Option<Change> {
        let path = self.path(slot)?.to_bytes();
        self.aside(|verifier| verifier.change(path))
    }

    fn change_open(&mut self, slot: u8) -> Option<Change> {
        self.aside(|verifier| verifier.change_open(slot)).flatten()
    }
}

/// A call has returned: note what it did.
fn finish(verifier: &mut Verifier<'_>, effect: &Effect<'_>, done: Done) {
    let fine = matches!(done, Ok(Some(_)));
    match *effect {
        Effect::Rename(from, to, name) if fine => verifier.renamed(from, to, name),
        // An expected error: nothing has changed. Of another one that is not certain.
        Effect::Rename(from, to, _) if done.is_ok() => {
            verifier.cut(from);
            verifier.cut(to);
        }
        Effect::Rename(from, to, _) | Effect::Blur(from, Some(to)) => {
            verifier.haunted(from);
            verifier.haunted(to);
        }
        Effect::Remove(change) => verifier.removed(change, fine),
        Effect::Cut(change) => verifier.cut(change),
        Effect::Link(change) => verifier.linked(change),
        Effect::Blur(change, None) => verifier.blurred(change),
        Effect::Seek(slot) => verifier.moved(slot, done.ok().flatten()),
        Effect::Pass(slot, to) => {
            verifier.passed(slot, done.ok().flatten().unwrap_or(0));
            if let Some((to, change)) = to {
                verifier.moved(to, None);
                if let Some(change) = change {
                    verifier.blurred(change);
                }
            }
        }
        Effect::None => {}
    }
}
