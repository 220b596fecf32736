//! Ops that move no data: draws first, then the slot's state, then the call.
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

use super::{Act, Done, Halt, Interpreter};
use crate::call::{Call, Executor, execute};
use crate::ops::Op;
use crate::path;
use crate::program::{
    Draw, Expect, LinkTarget, LockKind, Mode, Mtime, Owner, OwnerId, Pieces, Planned, SlotId,
    StepCall, Timed,
};
use crate::sys::controls::{LockRange, flock, lock};
use crate::sys::{
    ACCESS_LIST, Answer, At, How, Kernel, Links, Scratch, Times, access_list, c_path, files,
};
use rustix::io::Errno;
use std::os::fd::RawFd;

/// The buffer of getxattr and listxattr.
const ATTRIBUTE_BYTES: u64 = 64 << 10;

/// Makes the plain call of a step.
struct StepExecutor<'i, 'a, 't, K> {
    interpreter: &'i mut Interpreter<'a, K>,
    timed: &'t Timed,
}

impl<'t, K: Kernel> StepExecutor<'_, '_, 't, K> {
    #[inline]
    fn act(&self, slot: SlotId) -> Act<'t> {
        let Timed { op, expect, .. } = self.timed;
        self.interpreter.act(*op, slot.0, expect)
    }
}

impl<K: Kernel> Executor for StepExecutor<'_, '_, '_, K> {
    type Operands = Planned;
    type Kernel = K;
    type Done = Done;

    #[inline]
    fn number(&mut self, number: &Draw) -> u64 {
        self.interpreter.draw(*number)
    }
    fn mode_of(&mut self, file: &SlotId, mode: &Mode) -> u32 {
        self.interpreter.mode(*mode, file.0)
    }
    fn mode_at(&mut self, path: &SlotId, mode: &Mode) -> u32 {
        self.interpreter.mode(*mode, path.0)
    }
    fn owner(&self, uid: &OwnerId, gid: &OwnerId) -> Owner {
        Owner::of(*uid, *gid)
    }
    fn times(&mut self, times: &Mtime) -> Times {
        Times::both(times.0.map(|time| self.interpreter.draw(time)))
    }
    fn buffer(&self, size: u64) -> Scratch {
        self.interpreter.scratch.first(size)
    }
    #[inline]
    fn on(self, _: Op, file: &SlotId, call: impl FnOnce(RawFd) -> Answer) -> Done {
        let act = self.act(*file);
        self.interpreter.on(act, file.0, call)
    }
    #[inline]
    fn at(self, _: Op, path: &SlotId, call: impl FnOnce(&K, At<'_>) -> Answer) -> Done {
        let act = self.act(*path);
        self.interpreter.at(act, path.0, call)
    }
    fn pair(
        self,
        _: Op,
        (from, to): (&SlotId, &SlotId),
        call: impl FnOnce(&K, At<'_>, At<'_>) -> Answer,
    ) -> Done {
        let (act, interpreter) = (self.act(*from), self.interpreter);
        match (interpreter.path(from.0), interpreter.path(to.0)) {
            (Some(from), Some(to)) => {
                interpreter.timed(act, |kernel| call(kernel, At::whole(from), At::whole(to)))
            }
            _ => interpreter.refuse(act, Errno::INVAL),
        }
    }
}

/// What flock(2) is told.
fn flock_operation(kind: LockKind, wait: bool) -> u32 {
    let operation = match kind {
        LockKind::Shared => libc::LOCK_SH,
        LockKind::Exclusive => libc::LOCK_EX,
        LockKind::Unlock => libc::LOCK_UN,
    };
    let operation = operation | if wait { 0 } else { libc::LOCK_NB };
    operation.cast_unsigned()
}

impl<K: Kernel> Interpreter<'_, K> {
    /// Run one timed step.
    #[inline(always)]
    pub(super) fn call(&mut self, timed: &Timed) -> Result<(), Halt> {
        // Apart from the others' table of jumps: it would be mispredicted after every call.
        if let StepCall::Plain(Call::Stat { at }) = &timed.call {
            let act = self.act(timed.op, at.0, &timed.expect);
            return self.at(act, at.0, K::stat).map(|_| ());
        }
        if self.verifier.is_some() {
            return self.run_watched(timed).map(|_| ());
        }
        self.run(timed).map(|_| ())
    }

    /// Run one timed step of an interactive user; the value that it returned, 0 if none.
    ///
    /// # Errors
    /// It was not made, or not to its end.
    pub(crate) fn call_once(&mut self, timed: &Timed) -> Result<u64, Halt> {
        self.looked_ns = None; // it has waited for this order
        let done = self.run(timed)?;
        // Here the slot of a file is not that of its path, which means another one with the next order.
        let opened = (&timed.call, done);
        if let (
            StepCall::Open {
                path,
                slot: Some(file),
                ..
            },
            Some(_),
        ) = opened
        {
            self.name_after(file.0, path.0);
        }
        Ok(done.unwrap_or(0))
    }

    #[inline(never)]
    pub(super) fn run(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let act = |slot: &SlotId| self.act(*op, slot.0, expect);
        match call {
            StepCall::Plain(call) => {
                let interpreter = self;
                execute(call, StepExecutor { interpreter, timed })
            }
            StepCall::Open {
                path,
                slot,
                flags,
                mode,
            } => self.open((path.0, slot.unwrap_or(*path).0), *flags, *mode, expect),
            StepCall::Close { file } => self.close(file.0, expect),
            StepCall::Lseek {
                file,
                offset,
                whence,
            } => {
                let (act, offset) = (act(file), self.draw(*offset).cast_signed());
                self.on(act, file.0, |file| files::lseek(file, offset, *whence))
            }
            StepCall::Symlink { path, target } => self.symlink(path.0, target, expect),
            StepCall::Getxattr { path, .. }
            | StepCall::Setxattr { path, .. }
            | StepCall::Removexattr { path, .. }
            | StepCall::Listxattr { path } => self.attribute(act(path), path.0, call),
            StepCall::Flock { file, .. }
            | StepCall::FlockUnlock { file }
            | StepCall::FcntlLock { file, .. }
            | StepCall::FcntlUnlock { file, .. } => self.lock(act(file), file.0, call),
            StepCall::Read { file, .. }
            | StepCall::Pread { file, .. }
            | StepCall::PreadRandom { file, .. }
            | StepCall::Write(Pieces { file, .. })
            | StepCall::Append(Pieces { file, .. })
            | StepCall::Pwrite { file, .. }
            | StepCall::PwriteRandom { file, .. }
            | StepCall::Getdents { file }
            | StepCall::CopyFileRange { file, .. }
            | StepCall::Sendfile { file, .. }
            | StepCall::MmapRead { file } => self.data_call(act(file), file.0, call),
        }
    }

    /// Calls on extended attributes.
    fn attribute(&mut self, act: Act<'_>, slot: u8, call: &StepCall) -> Done {
        let buffer = self.scratch.first(ATTRIBUTE_BYTES);
        match call {
            StepCall::Getxattr { name, .. } => self.at(act, slot, |k, at| {
                k.getxattr((at.whole, Links::Follow), name, buffer)
            }),
            StepCall::Setxattr { name, size, .. } => {
                let size = self.draw(*size);
                let list = access_list(self.mode_of(slot));
                let value = if name.as_c_str() == ACCESS_LIST {
                    &list
                } else {
                    self.setting.written.first(size)
                };
                self.at(act, slot, |k, at| {
                    k.setxattr((at.whole, Links::Follow), name, (value, 0))
                })
            }
            StepCall::Removexattr { name, .. } => self.at(act, slot, |k, at| {
                k.removexattr((at.whole, Links::Follow), name)
            }),
            _ => self.at(act, slot, |k, at| {
                k.listxattr((at.whole, Links::Follow), buffer)
            }),
        }
    }

    fn lock(&mut self, act: Act<'_>, file: u8, call: &StepCall) -> Done {
        let unlock = LockKind::Unlock;
        match call {
            StepCall::Flock { kind, wait, .. } => {
                self.on(act, file, |file| flock(file, flock_operation(*kind, *wait)))
            }
            StepCall::FcntlLock {
                kind,
                wait,
                offset,
                size,
                ..
            } => self.range_lock((act, file), (*kind, *wait), (*offset, *size)),
            StepCall::FcntlUnlock { offset, size, .. } => {
                self.range_lock((act, file), (unlock, false), (*offset, *size))
            }
            _ => self.on(act, file, |file| flock(file, flock_operation(unlock, true))),
        }
    }

    fn range_lock(
        &mut self,
        (act, file): (Act<'_>, u8),
        (kind, wait): (LockKind, bool),
        (offset, size): (Draw, Draw),
    ) -> Done {
        let kind = match kind {
            LockKind::Shared => libc::F_RDLCK,
            LockKind::Exclusive => libc::F_WRLCK,
            LockKind::Unlock => libc::F_UNLCK,
        };
        let range = LockRange {
            kind: kind.cast_unsigned(),
            whence: 0,
            offset: self.draw(offset).cast_signed(),
            size: self.draw(size).cast_signed(),
        };
        self.on(act, file, |file| lock(file, range, wait))
    }

    #[inline]
    fn act<'e>(&self, op: Op, slot: u8, expect: &'e Expect) -> Act<'e> {
        let place = self.place(slot);
        Act { op, place, expect }
    }

    fn mode(&self, mode: Mode, slot: u8) -> u32 {
        match mode {
            Mode::Fixed(mode) => mode,
            Mode::Bound => self.mode_of(slot),
        }
    }

    /// Call at the path of a slot.
    #[inline(always)]
    fn at(&mut self, act: Act<'_>, slot: u8, call: impl FnOnce(&K, At<'_>) -> Answer) -> Done {
        match self.path(slot) {
            Some(path) => self.timed(act, |kernel| call(kernel, At::whole(path))),
            None => self.refuse(act, Errno::INVAL),
        }
    }

    /// Call on the descriptor of a slot.
    #[inline]
    fn on(&mut self, act: Act<'_>, slot: u8, call: impl FnOnce(RawFd) -> Answer) -> Done {
        match self.file(slot) {
            Some(file) => self.timed(act, |_| call(file)),
            None => self.refuse(act, Errno::BADF),
        }
    }

    fn open(
        &mut self,
        (path_slot, file_slot): (u8, u8),
        flags: u32,
        mode: Mode,
        expect: &Expect,
    ) -> Done {
        if self.file(file_slot).is_some() {
            self.close(file_slot, &Expect::OK)?;
        }
        let mode = self.mode(mode, path_slot);
        let act = self.act(Op::Open, path_slot, expect);
        let Some(path) = self.path(path_slot) else {
            return self.refuse(act, Errno::INVAL);
        };
        let opening = self.watch_open(path_slot, path, flags);
        let how = How {
            flags,
            mode,
            resolve: 0,
        };
        let measured = self.measure(act, |kernel| {
            let file = kernel.open(At::whole(path), how)?;
            Ok(u64::from(file.cast_unsigned()))
        });
        self.watch_opened(file_slot, opening, &measured);
        let measured = measured?;
        if let (Ok(file), Some(slot)) = (measured.answer, self.slot_mut(file_slot)) {
            slot.file = RawFd::try_from(file).ok();
        }
        let opened = self.settle(act, measured.outcome(), 0, measured)?;
        Ok(opened.map(|_| 0))
    }

    pub(super) fn close(&mut self, slot: u8, expect: &Expect) -> Done {
        let act = self.act(Op::Close, slot, expect);
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let measured = self.measure(act, |_| files::close(file))?;
        self.watch_close(slot, &measured);
        if let Some(slot) = self.slot_mut(slot) {
            slot.file = None;
        }
        self.settle(act, measured.outcome(), 0, measured)
    }

    fn symlink(&mut self, slot: u8, target: &LinkTarget, expect: &Expect) -> Done {
        let act = self.act(Op::Symlink, slot, expect);
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        match target {
            LinkTarget::Bound => text.extend_from_slice(self.link_of(slot).to_bytes()),
            LinkTarget::Parts(parts) => self.compose(parts, &mut text),
        }
        let done = self.symlink_to(act, slot, &mut text);
        self.text = text;
        done
    }

    fn symlink_to(&mut self, act: Act<'_>, slot: u8, target: &mut Vec<u8>) -> Done {
        let path = self.path(slot);
        let Some(path) = path.filter(|path| path::link_stays_inside(path.to_bytes(), target))
        else {
            return self.refuse(act, Errno::INVAL);
        };
        target.push(0);
        self.timed(act, |kernel| {
            kernel.symlink(c_path(target), At::whole(path))
        })
    }
}
