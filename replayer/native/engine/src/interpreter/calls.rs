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
    AttributeName, Draw, Expect, LinkTarget, Mode, Mtime, Owner, OwnerId, Pieces, Planned, SlotId,
    StepCall, Timed,
};
use crate::sys::{
    ACCESS_LIST, Answer, At, Attributed, How, Kernel, Links, Scratch, Times, access_list, c_path,
    files,
};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::CStr;
use std::os::fd::RawFd;

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

impl<'a: 't, 't, K: Kernel> Executor<'t> for StepExecutor<'_, 'a, 't, K> {
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
    fn text(&self, name: &'t AttributeName) -> Cow<'t, CStr> {
        Cow::Borrowed(&name.0)
    }
    fn value(&self, path: &SlotId, name: &CStr, size: u64) -> &'t [u8] {
        if name == ACCESS_LIST {
            access_list(self.interpreter.mode_of(path.0))
        } else {
            self.interpreter.setting.written.first(size)
        }
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
    fn attribute(
        self,
        [_, _, op]: [Op; 3],
        path: &SlotId,
        call: impl FnOnce(&K, Attributed<'_>) -> Answer,
    ) -> Done {
        self.at(op, path, |kernel, at| {
            call(kernel, Attributed::Path(at.whole, Links::Follow))
        })
    }
    fn open(self, path: &SlotId, slot: Option<&SlotId>, how: How) -> Done {
        let slots = (path.0, slot.unwrap_or(path).0);
        self.interpreter.open(slots, how, &self.timed.expect)
    }
    fn close(self, file: &SlotId) -> Done {
        self.interpreter.close(file.0, &self.timed.expect)
    }
    fn symlink(self, path: &SlotId, target: &LinkTarget) -> Done {
        let act = self.act(*path);
        self.interpreter.symlink(act, path.0, target)
    }
}

impl<K: Kernel> Interpreter<'_, K> {
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
            StepCall::Plain(Call::Open {
                at,
                slot: Some(file),
                ..
            }),
            Some(_),
        ) = opened
        {
            self.name_after(file.0, at.0);
        }
        Ok(done.unwrap_or(0))
    }

    #[inline(never)]
    pub(super) fn run(&mut self, timed: &Timed) -> Done {
        match &timed.call {
            StepCall::Plain(call) => {
                let interpreter = self;
                execute(call, StepExecutor { interpreter, timed })
            }
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
            | StepCall::MmapRead { file } => {
                let act = self.act(timed.op, file.0, &timed.expect);
                self.data_call(act, file.0, &timed.call)
            }
        }
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

    fn open(&mut self, (path_slot, file_slot): (u8, u8), how: How, expect: &Expect) -> Done {
        if self.file(file_slot).is_some() {
            self.close(file_slot, &Expect::OK)?;
        }
        let act = self.act(Op::Open, path_slot, expect);
        let Some(path) = self.path(path_slot) else {
            return self.refuse(act, Errno::INVAL);
        };
        let opening = self.watch_open(path_slot, path, how.flags);
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

    fn symlink(&mut self, act: Act<'_>, slot: u8, target: &LinkTarget) -> Done {
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
