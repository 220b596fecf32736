//! Every op of plan format 1: draws first, then the slot's state, then the call.

use super::{Act, Done, Halt, Interpreter};
use crate::ops::{self, Op};
use crate::path;
use crate::program::{Call, Draw, Expect, LinkTarget, Mode, Timed};
use crate::sys::{Answer, Kernel, LockRange, Owner, Scratch, c_path};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::RawFd;

/// The buffer of getdents64.
const DIRECTORY_BYTES: u64 = 32 << 10;
/// The buffer of getxattr and listxattr.
const ATTRIBUTE_BYTES: u64 = 64 << 10;
/// The buffer of readlink.
const LINK_BYTES: u64 = 4096;

fn no_value(answer: Answer) -> Answer<u64> {
    answer.map(|()| 0)
}

impl<'a, K: Kernel> Interpreter<'a, K> {
    /// Run one timed step.
    #[inline]
    pub(crate) fn call(&mut self, timed: &Timed) -> Result<(), Halt> {
        self.path_call(timed).map(|_| ())
    }

    /// Run one timed step of an interactive user; the value that it returned, 0 if none.
    pub(crate) fn call_once(&mut self, timed: &Timed) -> u64 {
        self.path_call(timed).ok().flatten().unwrap_or(0)
    }

    fn path_call(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let (op, expect) = (*op, *expect);
        match call {
            Call::Open {
                path,
                file,
                flags,
                mode,
            } => self.open((*path, *file), *flags, *mode, expect),
            Call::Stat { path } => {
                self.on_path(op, *path, expect, |kernel, path| kernel.stat(path))
            }
            Call::Lstat { path } => {
                self.on_path(op, *path, expect, |kernel, path| kernel.lstat(path))
            }
            Call::Access { path, mode } => self.on_path(op, *path, expect, |kernel, path| {
                no_value(kernel.access(path, *mode))
            }),
            Call::Mkdir { path, mode } => {
                let mode = self.mode(*mode, *path);
                self.on_path(op, *path, expect, |kernel, path| {
                    no_value(kernel.mkdir(path, mode))
                })
            }
            Call::Rmdir { path } => self.on_path(op, *path, expect, |kernel, path| {
                no_value(kernel.rmdir(path))
            }),
            Call::Unlink { path } => self.on_path(op, *path, expect, |kernel, path| {
                no_value(kernel.unlink(path))
            }),
            Call::Rename { path, to, flags } => {
                self.on_paths(op, (*path, *to), expect, |kernel, from, to| {
                    no_value(kernel.rename(from, to, *flags))
                })
            }
            Call::Link { path, to } => {
                self.on_paths(op, (*path, *to), expect, |kernel, from, to| {
                    no_value(kernel.link(from, to))
                })
            }
            Call::Symlink { path, target } => self.symlink(*path, target, expect),
            Call::Readlink { path } => {
                let buffer = self.scratch.first(LINK_BYTES);
                self.on_path(op, *path, expect, |kernel, path| {
                    kernel.readlink(path, buffer)
                })
            }
            Call::Truncate { path, size } => {
                let size = self.draw(*size);
                self.on_path(op, *path, expect, |kernel, path| {
                    no_value(kernel.truncate(path, size))
                })
            }
            Call::Chmod { path, mode } => {
                let mode = self.mode(*mode, *path);
                self.on_path(op, *path, expect, |kernel, path| {
                    no_value(kernel.chmod(path, mode))
                })
            }
            Call::Chown { path, uid, gid } => {
                let owner = Owner {
                    uid: *uid,
                    gid: *gid,
                };
                self.on_path(op, *path, expect, |kernel, path| {
                    no_value(kernel.chown(path, owner))
                })
            }
            Call::Utimens { path, mtime_ns } => {
                let time = mtime_ns.map(|time| self.draw(time));
                self.on_path(op, *path, expect, |kernel, path| {
                    no_value(kernel.utimens(path, time))
                })
            }
            _ => self.other_call(timed),
        }
    }

    fn other_call(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let (op, expect) = (*op, *expect);
        let attributes = self.scratch.first(ATTRIBUTE_BYTES);
        match call {
            Call::Getxattr { path, name } => self.on_path(op, *path, expect, |kernel, path| {
                kernel.getxattr(path, name, attributes)
            }),
            Call::Setxattr { path, name, size } => {
                let size = self.draw(*size);
                let value = self.setting.written.first(size);
                self.on_path(op, *path, expect, |kernel, path| {
                    no_value(kernel.setxattr(path, name, value))
                })
            }
            Call::Removexattr { path, name } => self.on_path(op, *path, expect, |kernel, path| {
                no_value(kernel.removexattr(path, name))
            }),
            Call::Listxattr { path } => self.on_path(op, *path, expect, |kernel, path| {
                kernel.listxattr(path, attributes)
            }),
            Call::Close { file } => self.close(*file, expect),
            Call::Read {
                file,
                size,
                until_end,
                check_size,
            } => {
                let size = self.draw(*size);
                let act = self.act(op, *file, expect);
                self.read(act, *file, size, (*until_end, *check_size))
            }
            Call::Pread { file, size, offset } => {
                let (size, offset) = (self.draw(*size), self.draw(*offset));
                self.pread(self.act(op, *file, expect), *file, size, offset)
            }
            Call::PreadRandom { file, size, align } => {
                let size = self.draw(*size);
                let offset = self.position(*file, size, *align);
                self.pread(self.act(op, *file, expect), *file, size, offset)
            }
            Call::Write { file, total, block } => {
                let (total, block) = (self.draw(*total), self.draw(*block).max(1));
                self.write(self.act(op, *file, expect), *file, total, block)
            }
            Call::Pwrite { file, size, offset } => {
                let (size, offset) = (self.draw(*size), self.draw(*offset));
                self.pwrite(self.act(op, *file, expect), *file, size, offset)
            }
            Call::PwriteRandom { file, size, align } => {
                let size = self.draw(*size);
                let offset = self.position(*file, size, *align);
                self.pwrite(self.act(op, *file, expect), *file, size, offset)
            }
            _ => self.file_call(timed),
        }
    }

    fn file_call(&mut self, timed: &Timed) -> Done {
        let Timed { op, call, expect } = timed;
        let (op, expect) = (*op, *expect);
        match call {
            Call::Lseek {
                file,
                offset,
                whence,
            } => {
                let offset = self.draw(*offset);
                self.on_file(op, *file, expect, |kernel, file| {
                    kernel.lseek(file, offset, *whence)
                })
            }
            Call::Fsync { file } => self.on_file(op, *file, expect, |kernel, file| {
                no_value(kernel.fsync(file))
            }),
            Call::Fdatasync { file } => self.on_file(op, *file, expect, |kernel, file| {
                no_value(kernel.fdatasync(file))
            }),
            Call::Fstat { file } => {
                self.on_file(op, *file, expect, |kernel, file| kernel.fstat(file))
            }
            Call::Ftruncate { file, size } => {
                let size = self.draw(*size);
                self.on_file(op, *file, expect, |kernel, file| {
                    no_value(kernel.ftruncate(file, size))
                })
            }
            Call::Fallocate {
                file,
                offset,
                size,
                mode,
            } => {
                let range = (self.draw(*offset), self.draw(*size));
                self.on_file(op, *file, expect, |kernel, file| {
                    no_value(kernel.fallocate(file, *mode, range))
                })
            }
            Call::Fchmod { file, mode } => {
                let mode = self.mode(*mode, *file);
                self.on_file(op, *file, expect, |kernel, file| {
                    no_value(kernel.fchmod(file, mode))
                })
            }
            Call::Fchown { file, uid, gid } => {
                let owner = Owner {
                    uid: *uid,
                    gid: *gid,
                };
                self.on_file(op, *file, expect, |kernel, file| {
                    no_value(kernel.fchown(file, owner))
                })
            }
            Call::Futimens { file, mtime_ns } => {
                let time = mtime_ns.map(|time| self.draw(time));
                self.on_file(op, *file, expect, |kernel, file| {
                    no_value(kernel.futimens(file, time))
                })
            }
            Call::Flock { file, kind, wait } => self.on_file(op, *file, expect, |kernel, file| {
                no_value(kernel.flock(file, *kind, *wait))
            }),
            Call::FcntlLock {
                file,
                kind,
                wait,
                offset,
                size,
            } => {
                let (offset, size) = (self.draw(*offset), self.draw(*size));
                let range = LockRange {
                    kind: *kind,
                    wait: *wait,
                    offset,
                    size,
                };
                self.on_file(op, *file, expect, |kernel, file| {
                    no_value(kernel.fcntl_lock(file, range))
                })
            }
            Call::Getdents { file } => self.getdents(self.act(op, *file, expect), *file),
            Call::CopyFileRange { file, to, size } => {
                self.copy(self.act(op, *file, expect), (*file, *to), *size)
            }
            Call::Sendfile { file, size } => {
                self.sendfile(self.act(op, *file, expect), *file, *size)
            }
            Call::MmapRead { file } => {
                let act = self.act(op, *file, expect);
                match self.file(*file) {
                    Some(file) => self.moving(act, |kernel| kernel.mmap_read(file)),
                    None => self.refuse(act, Errno::BADF),
                }
            }
            _ => Ok(None),
        }
    }

    #[inline]
    fn act(&self, op: Op, slot: u8, expect: Expect) -> Act {
        Act {
            op,
            place: self.place(slot),
            expect,
        }
    }

    fn mode(&self, mode: Mode, slot: u8) -> u32 {
        match mode {
            Mode::Fixed(mode) => mode,
            Mode::Bound => self.mode_of(slot),
        }
    }

    #[inline]
    fn on_path(
        &mut self,
        op: Op,
        slot: u8,
        expect: Expect,
        call: impl FnOnce(&K, &CStr) -> Answer<u64>,
    ) -> Done {
        let act = self.act(op, slot, expect);
        match self.path(slot) {
            Some(path) => self.timed(act, |kernel| call(kernel, path)),
            None => self.refuse(act, Errno::INVAL),
        }
    }

    fn on_paths(
        &mut self,
        op: Op,
        (from, to): (u8, u8),
        expect: Expect,
        call: impl FnOnce(&K, &CStr, &CStr) -> Answer<u64>,
    ) -> Done {
        let act = self.act(op, from, expect);
        match (self.path(from), self.path(to)) {
            (Some(from), Some(to)) => self.timed(act, |kernel| call(kernel, from, to)),
            _ => self.refuse(act, Errno::INVAL),
        }
    }

    #[inline]
    fn on_file(
        &mut self,
        op: Op,
        slot: u8,
        expect: Expect,
        call: impl FnOnce(&K, RawFd) -> Answer<u64>,
    ) -> Done {
        let act = self.act(op, slot, expect);
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
        expect: Expect,
    ) -> Done {
        if self.file(file_slot).is_some() {
            self.close(file_slot, Expect::OK)?;
        }
        let mode = self.mode(mode, path_slot);
        let act = self.act(Op::Open, path_slot, expect);
        let Some(path) = self.path(path_slot) else {
            return self.refuse(act, Errno::INVAL);
        };
        let measured = self.measure(act, |kernel| {
            kernel
                .open(path, flags, mode)
                .map(|file| u64::from(file.cast_unsigned()))
        })?;
        if let (Ok(file), Some(slot)) = (measured.answer, self.slot_mut(file_slot)) {
            slot.file = RawFd::try_from(file).ok();
        }
        let opened = self.settle(act, measured.outcome(), 0, measured)?;
        Ok(opened.map(|_| 0))
    }

    fn close(&mut self, slot: u8, expect: Expect) -> Done {
        let act = self.act(Op::Close, slot, expect);
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let measured = self.measure(act, |kernel| no_value(kernel.close(file)))?;
        if let Some(slot) = self.slot_mut(slot) {
            slot.file = None;
        }
        self.settle(act, measured.outcome(), 0, measured)
    }

    fn read(
        &mut self,
        act: Act,
        slot: u8,
        size: u64,
        (until_end, check_size): (bool, bool),
    ) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let buffer: Scratch = self.scratch.first(size);
        let want = self.size_of(slot);
        let mut total = 0;
        loop {
            let measured = self.measure(act, |kernel| kernel.read(file, buffer))?;
            let read = measured.value();
            total += read;
            let last = !until_end || read == 0;
            let is_short =
                check_size && last && total != want && measured.answer.is_ok() && K::REAL;
            let outcome = if is_short {
                ops::SHORT
            } else {
                measured.outcome()
            };
            let done = self.settle(act, outcome, read, measured)?;
            if last || done.is_none() {
                return Ok(done.map(|_| total));
            }
        }
    }

    fn pread(&mut self, act: Act, slot: u8, size: u64, offset: u64) -> Done {
        let buffer = self.scratch.first(size);
        match self.file(slot) {
            Some(file) => self.moving(act, |kernel| kernel.pread(file, buffer, offset)),
            None => self.refuse(act, Errno::BADF),
        }
    }

    /// A random multiple of `align` at which `size` bytes fit into the bound entry.
    fn position(&mut self, slot: u8, size: u64, align: u64) -> u64 {
        let whole = self.size_of(slot);
        let starts = whole.checked_sub(size).map_or(1, |room| room / align + 1);
        align * self.stream.below(starts)
    }

    fn write(&mut self, act: Act, slot: u8, total: u64, block: u64) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let mut rest = total;
        while rest > 0 {
            let bytes = self.slice(rest.min(block));
            let done = self.write_once(act, bytes.len(), |kernel| kernel.write(file, bytes))?;
            match done {
                Some(written) => rest = rest.saturating_sub(written),
                None => return Ok(None),
            }
        }
        Ok(Some(total))
    }

    fn pwrite(&mut self, act: Act, slot: u8, size: u64, offset: u64) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let bytes = self.slice(size);
        self.write_once(act, bytes.len(), |kernel| {
            kernel.pwrite(file, bytes, offset)
        })
    }

    /// What the next write op writes.
    #[inline]
    fn slice(&mut self, size: u64) -> &'a [u8] {
        let turn = self.writes;
        self.writes += 1;
        self.setting.written.slice(self.pulse.user, turn, size)
    }

    #[inline]
    fn write_once(&mut self, act: Act, len: usize, call: impl FnOnce(&K) -> Answer<u64>) -> Done {
        let measured = self.measure(act, call)?;
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

    fn getdents(&mut self, act: Act, slot: u8) -> Done {
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        let buffer = self.scratch.first(DIRECTORY_BYTES);
        let mut total = 0;
        loop {
            match self.timed(act, |kernel| kernel.getdents(file, buffer))? {
                Some(0) => return Ok(Some(total)),
                Some(read) => total += read,
                None => return Ok(None),
            }
        }
    }

    fn copy(&mut self, act: Act, (from, to): (u8, u8), size: Draw) -> Done {
        let size = self.draw(size);
        let (Some(from), Some(to)) = (self.file(from), self.file(to)) else {
            return self.refuse(act, Errno::BADF);
        };
        self.until_nothing(act, |kernel| kernel.copy_file_range(from, to, size))
    }

    fn sendfile(&mut self, act: Act, slot: u8, size: Draw) -> Done {
        let size = self.draw(size);
        let sink = self.sink();
        let Some(file) = self.file(slot) else {
            return self.refuse(act, Errno::BADF);
        };
        self.until_nothing(act, |kernel| kernel.sendfile(file, sink, size))
    }

    /// Repeat a call that moves bytes until it moves none.
    fn until_nothing(&mut self, act: Act, call: impl Fn(&K) -> Answer<u64>) -> Done {
        let mut total = 0;
        loop {
            match self.moving(act, &call)? {
                Some(0) => return Ok(Some(total)),
                Some(moved) => total += moved,
                None => return Ok(None),
            }
        }
    }

    fn symlink(&mut self, slot: u8, target: &LinkTarget, expect: Expect) -> Done {
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

    fn symlink_to(&mut self, act: Act, slot: u8, target: &mut Vec<u8>) -> Done {
        let path = self.path(slot);
        let Some(path) = path.filter(|path| path::link_stays_inside(path.to_bytes(), target))
        else {
            return self.refuse(act, Errno::INVAL);
        };
        target.push(0);
        self.timed(act, |kernel| no_value(kernel.symlink(c_path(target), path)))
    }
}
