//! Ops that move no data: draws first, then the slot's state, then the call.
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

use super::{Act, Done, Halt, Interpreter, Value};
use crate::ops::Op;
use crate::path;
use crate::program::{Call, Expect, FileCall, LinkTarget, Mode, PairCall, PathCall, Timed};
use crate::sys::{ACCESS_LIST, Answer, Kernel, LockRange, access_list, c_path};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::RawFd;

/// The buffer of getxattr and listxattr.
const ATTRIBUTE_BYTES: u64 = 64 << 10;
/// The buffer of readlink.
const LINK_BYTES: u64 = 4096;

impl<K: Kernel> Interpreter<'_, K> {
    /// Run one timed step.
    #[inline(always)]
    pub(super) fn call(&mut self, timed: &Timed) -> Result<(), Halt> {
        // Apart from the others' table of jumps: it would be mispredicted after every call.
        if let Call::Path {
            path,
            call: PathCall::Stat,
        } = timed.call
        {
            let act = self.act(timed.op, path, &timed.expect);
            return self.at(act, path, K::stat).map(|_| ());
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
        if let (Call::Open { path, file, .. }, Some(_)) = (&timed.call, done) {
            self.name_after(*file, *path);
        }
        Ok(done.unwrap_or(0))
    }

    #[inline(never)]
    pub(super) fn run(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let op = *op;
        match call {
            Call::Path { path, call } => self.path_call(self.act(op, *path, expect), *path, call),
            Call::Data { file, call } => self.data_call(self.act(op, *file, expect), *file, call),
            Call::File { file, call } => self.file_call(self.act(op, *file, expect), *file, call),
            Call::Open {
                path,
                file,
                flags,
                mode,
            } => self.open((*path, *file), *flags, *mode, expect),
            Call::Close { file } => self.close(*file, expect),
            Call::Pair { path, to, call } => {
                self.pair_call(self.act(op, *path, expect), (*path, *to), call)
            }
            Call::Symlink { path, target } => self.symlink(*path, target, expect),
        }
    }

    #[inline(never)]
    fn path_call(&mut self, act: Act<'_>, slot: u8, call: &PathCall) -> Done {
        let attributes = self.scratch.first(ATTRIBUTE_BYTES);
        match call {
            PathCall::Stat => self.at(act, slot, K::stat),
            PathCall::Lstat => self.at(act, slot, K::lstat),
            PathCall::Access(mode) => self.at(act, slot, |k, path| k.access(path, *mode)),
            PathCall::Mkdir(mode) => {
                let mode = self.mode(*mode, slot);
                self.at(act, slot, |k, path| k.mkdir(path, mode))
            }
            PathCall::Rmdir => self.at(act, slot, K::rmdir),
            PathCall::Unlink => self.at(act, slot, K::unlink),
            PathCall::Readlink => {
                let buffer = self.scratch.first(LINK_BYTES);
                self.at(act, slot, |k, path| k.readlink(path, buffer))
            }
            PathCall::Truncate(size) => {
                let size = self.draw(*size);
                self.at(act, slot, |k, path| k.truncate(path, size))
            }
            PathCall::Chmod(mode) => {
                let mode = self.mode(*mode, slot);
                self.at(act, slot, |k, path| k.chmod(path, mode))
            }
            PathCall::Chown(owner) => self.at(act, slot, |k, path| k.chown(path, *owner)),
            PathCall::Utimens(time) => {
                let time = time.map(|time| self.draw(time));
                self.at(act, slot, |k, path| k.utimens(path, time))
            }
            PathCall::Getxattr(name) => {
                self.at(act, slot, |k, path| k.getxattr(path, name, attributes))
            }
            PathCall::Setxattr(name, size) => {
                let size = self.draw(*size);
                let list = access_list(self.mode_of(slot));
                let value = if name.as_c_str() == ACCESS_LIST {
                    &list
                } else {
                    self.setting.written.first(size)
                };
                self.at(act, slot, |k, path| k.setxattr(path, name, value))
            }
            PathCall::Removexattr(name) => self.at(act, slot, |k, path| k.removexattr(path, name)),
            PathCall::Listxattr => self.at(act, slot, |k, path| k.listxattr(path, attributes)),
        }
    }

    #[inline(never)]
    fn file_call(&mut self, act: Act<'_>, slot: u8, call: &FileCall) -> Done {
        match call {
            FileCall::Lseek { offset, whence } => {
                let offset = self.draw(*offset).cast_signed();
                self.on(act, slot, |k, file| k.lseek(file, offset, *whence))
            }
            FileCall::Fsync => self.on(act, slot, K::fsync),
            FileCall::Fdatasync => self.on(act, slot, K::fdatasync),
            FileCall::Fstat => self.on(act, slot, K::fstat),
            FileCall::Ftruncate(size) => {
                let size = self.draw(*size);
                self.on(act, slot, |k, file| k.ftruncate(file, size))
            }
            FileCall::Fallocate { offset, size, mode } => {
                let range = (self.draw(*offset), self.draw(*size));
                self.on(act, slot, |k, file| k.fallocate(file, *mode, range))
            }
            FileCall::Fchmod(mode) => {
                let mode = self.mode(*mode, slot);
                self.on(act, slot, |k, file| k.fchmod(file, mode))
            }
            FileCall::Fchown(owner) => self.on(act, slot, |k, file| k.fchown(file, *owner)),
            FileCall::Futimens(time) => {
                let time = time.map(|time| self.draw(time));
                self.on(act, slot, |k, file| k.futimens(file, time))
            }
            FileCall::Flock { kind, wait } => {
                self.on(act, slot, |k, file| k.flock(file, *kind, *wait))
            }
            FileCall::FcntlLock {
                kind,
                wait,
                offset,
                size,
            } => {
                let (kind, wait) = (*kind, *wait);
                let (offset, size) = (self.draw(*offset), self.draw(*size));
                let range = LockRange {
                    kind,
                    wait,
                    offset,
                    size,
                };
                self.on(act, slot, |k, file| k.fcntl_lock(file, range))
            }
        }
    }

    fn pair_call(&mut self, act: Act<'_>, (from, to): (u8, u8), call: &PairCall) -> Done {
        let (Some(from), Some(to)) = (self.path(from), self.path(to)) else {
            return self.refuse(act, Errno::INVAL);
        };
        match call {
            PairCall::Rename { flags } => self.timed(act, |k| k.rename(from, to, *flags)),
            PairCall::Link => self.timed(act, |k| k.link(from, to)),
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
    fn at<V: Value>(
        &mut self,
        act: Act<'_>,
        slot: u8,
        call: impl FnOnce(&K, &CStr) -> Answer<V>,
    ) -> Done {
        match self.path(slot) {
            Some(path) => self.timed(act, |kernel| call(kernel, path)),
            None => self.refuse(act, Errno::INVAL),
        }
    }

    /// Call on the descriptor of a slot.
    #[inline]
    fn on<V: Value>(
        &mut self,
        act: Act<'_>,
        slot: u8,
        call: impl FnOnce(&K, RawFd) -> Answer<V>,
    ) -> Done {
        match self.file(slot) {
            Some(file) => self.timed(act, |kernel| call(kernel, file)),
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
        let measured = self.measure(act, |kernel| {
            kernel
                .open(path, flags, mode)
                .map(|file| u64::from(file.cast_unsigned()))
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
        let measured = self.measure(act, |kernel| kernel.close(file))?;
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
        self.timed(act, |kernel| kernel.symlink(c_path(target), path))
    }
}
