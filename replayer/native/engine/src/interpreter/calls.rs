//! Ops that move no data: draws first, then the slot's state, then the call.
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

use super::{Act, Done, Halt, Interpreter};
use crate::ops::Op;
use crate::path;
use crate::program::{
    Call, Draw, Expect, LinkTarget, LockKind, Mode, Owner, Pieces, SlotId, Timed,
};
use crate::sys::controls::{LockRange, flock, lock};
use crate::sys::{
    ACCESS_LIST, Answer, At, How, Kernel, Links, Through, Times, access_list, c_path, files,
};
use rustix::io::Errno;
use std::os::fd::RawFd;

/// The buffer of getxattr and listxattr.
const ATTRIBUTE_BYTES: u64 = 64 << 10;
/// The buffer of readlink.
const LINK_BYTES: u64 = 4096;

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
        if let Call::Stat { path } = timed.call {
            let act = self.act(timed.op, path.0, &timed.expect);
            return self.at(act, path.0, K::stat).map(|_| ());
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
            Call::Open {
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
            Call::Open {
                path,
                slot,
                flags,
                mode,
            } => self.open((path.0, slot.unwrap_or(*path).0), *flags, *mode, expect),
            Call::Close { file } => self.close(file.0, expect),
            Call::Read { file, .. }
            | Call::Pread { file, .. }
            | Call::PreadRandom { file, .. }
            | Call::Write(Pieces { file, .. })
            | Call::Append(Pieces { file, .. })
            | Call::Pwrite { file, .. }
            | Call::PwriteRandom { file, .. }
            | Call::Getdents { file }
            | Call::CopyFileRange { file, .. }
            | Call::Sendfile { file, .. }
            | Call::MmapRead { file } => self.data_call(act(file), file.0, call),
            Call::Stat { path } => self.at(act(path), path.0, K::stat),
            Call::Lstat { path } => self.at(act(path), path.0, K::lstat),
            Call::Access { path, mode } => {
                self.at(act(path), path.0, |k, path| k.access(path, *mode, 0))
            }
            Call::Rmdir { path } => self.at(act(path), path.0, K::rmdir),
            Call::Unlink { path } => self.at(act(path), path.0, K::unlink),
            Call::Readlink { path } => {
                let buffer = self.scratch.first(LINK_BYTES);
                self.at(act(path), path.0, |k, path| k.readlink(path, buffer))
            }
            Call::Rename { path, to, flags } => {
                self.pair(act(path), (path.0, to.0), |k, from, to| {
                    k.rename(from, to, *flags)
                })
            }
            Call::Link { path, to } => self.pair(act(path), (path.0, to.0), |k, from, to| {
                k.link(from, to, Links::Keep)
            }),
            Call::Symlink { path, target } => self.symlink(path.0, target, expect),
            _ => self.mark(timed),
        }
    }

    /// Calls that change attributes by path.
    #[inline(never)]
    fn mark(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let act = |slot: &SlotId| self.act(*op, slot.0, expect);
        let attributes = self.scratch.first(ATTRIBUTE_BYTES);
        match call {
            Call::Mkdir { path, mode } => {
                let (act, mode) = (act(path), self.mode(*mode, path.0));
                self.at(act, path.0, |k, path| k.mkdir(path, mode))
            }
            Call::Truncate { path, size } => {
                let (act, size) = (act(path), self.draw(*size));
                self.at(act, path.0, |k, at| k.truncate(at.whole, size))
            }
            Call::Chmod { path, mode } => {
                let (act, mode) = (act(path), self.mode(*mode, path.0));
                self.at(act, path.0, |k, path| k.chmod(path, mode))
            }
            Call::Chown { path, uid, gid } => {
                let owner = Owner::of(*uid, *gid);
                self.at(act(path), path.0, |k, path| {
                    k.chown(path, owner, Links::Keep)
                })
            }
            Call::Utimens { path, mtime_ns } => {
                let act = act(path);
                let set = Times::both(mtime_ns.map(|time| self.draw(time)));
                self.at(act, path.0, |k, at| k.utimens(at, set, Links::Keep))
            }
            Call::Getxattr { path, name } => self.at(act(path), path.0, |k, path| {
                k.getxattr((path.whole, Links::Follow), name, attributes)
            }),
            Call::Setxattr { path, name, size } => {
                let (act, size) = (act(path), self.draw(*size));
                let list = access_list(self.mode_of(path.0));
                let value = if name.as_c_str() == ACCESS_LIST {
                    &list
                } else {
                    self.setting.written.first(size)
                };
                self.at(act, path.0, |k, path| {
                    k.setxattr((path.whole, Links::Follow), name, (value, 0))
                })
            }
            Call::Removexattr { path, name } => self.at(act(path), path.0, |k, path| {
                k.removexattr((path.whole, Links::Follow), name)
            }),
            Call::Listxattr { path } => self.at(act(path), path.0, |k, path| {
                k.listxattr((path.whole, Links::Follow), attributes)
            }),
            _ => self.file_call(timed),
        }
    }

    /// Calls on open files that move no data.
    #[inline(never)]
    #[expect(clippy::too_many_lines, reason = "a line or two a call")]
    fn file_call(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let act = |slot: &SlotId| self.act(*op, slot.0, expect);
        match call {
            Call::Lseek {
                file,
                offset,
                whence,
            } => {
                let (act, offset) = (act(file), self.draw(*offset).cast_signed());
                self.on(act, file.0, |file| files::lseek(file, offset, *whence))
            }
            Call::Fsync { file } => self.on(act(file), file.0, files::fsync),
            Call::Fdatasync { file } => self.on(act(file), file.0, files::fdatasync),
            Call::Fstat { file } => self.on(act(file), file.0, files::fstat),
            Call::Ftruncate { file, size } => {
                let (act, size) = (act(file), self.draw(*size));
                self.on(act, file.0, |file| files::ftruncate(file, size))
            }
            Call::Fallocate {
                file,
                offset,
                size,
                mode,
            } => {
                let act = act(file);
                let range = (self.draw(*offset), self.draw(*size));
                self.on(act, file.0, |file| files::fallocate(file, range, *mode))
            }
            Call::Fchmod { file, mode } => {
                let (act, mode) = (act(file), self.mode(*mode, file.0));
                self.on(act, file.0, |file| files::fchmod(file, mode))
            }
            Call::Fchown { file, uid, gid } => {
                let owner = Owner::of(*uid, *gid);
                self.on(act(file), file.0, |file| {
                    files::fchown(file, owner, Through::Descriptor)
                })
            }
            Call::Futimens { file, mtime_ns } => {
                let act = act(file);
                let set = Times::both(mtime_ns.map(|time| self.draw(time)));
                self.on(act, file.0, |file| {
                    files::futimens(file, set, Through::Descriptor)
                })
            }
            Call::Flock { file, kind, wait } => self.on(act(file), file.0, |file| {
                flock(file, flock_operation(*kind, *wait))
            }),
            Call::FlockUnlock { file } => self.on(act(file), file.0, |file| {
                flock(file, flock_operation(LockKind::Unlock, true))
            }),
            Call::FcntlLock {
                file,
                kind,
                wait,
                offset,
                size,
            } => self.range_lock((act(file), file.0), (*kind, *wait), (*offset, *size)),
            Call::FcntlUnlock { file, offset, size } => self.range_lock(
                (act(file), file.0),
                (LockKind::Unlock, false),
                (*offset, *size),
            ),
            // Every other call was made by `run` or `mark`.
            _ => Ok(None),
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

    fn pair(
        &mut self,
        act: Act<'_>,
        (from, to): (u8, u8),
        call: impl FnOnce(&K, At<'_>, At<'_>) -> Answer,
    ) -> Done {
        match (self.path(from), self.path(to)) {
            (Some(from), Some(to)) => {
                self.timed(act, |kernel| call(kernel, At::whole(from), At::whole(to)))
            }
            _ => self.refuse(act, Errno::INVAL),
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
