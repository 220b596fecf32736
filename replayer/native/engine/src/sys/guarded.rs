//! Calls of a thread that may not change its root: each path is resolved beneath the run's folder first.
#![expect(unsafe_code, reason = "rustix has no readlinkat for shared buffers")]

use super::answer::Answer;
use super::files::{borrow, close, fstat, ftruncate, length, times};
use super::folder::{Folder, open_beneath};
use super::jailed::{getxattr, listxattr};
use super::kernel::Kernel;
use super::naming::prepare_to_link;
use super::replayed::access;
use super::scratch::Scratch;
use crate::program::Owner;
use crate::program::write_number;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Resolves with openat2, then calls by descriptor. Resolving is part of the op, closing what it took is not.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The run's folder.
    root: Arc<Folder>,
    /// Descriptors to close after the op.
    taken: [Cell<Option<RawFd>>; 2],
    /// A path or a part of one, with its NUL.
    text: RefCell<Vec<u8>>,
}

/// A directory, and a name in it.
pub(super) struct Place<'a> {
    pub(super) parent: RawFd,
    pub(super) leaf: &'a CStr,
}

impl Guarded {
    pub(super) fn root(&self) -> RawFd {
        self.root.file.as_raw_fd()
    }

    /// Remember a descriptor until the op is over.
    pub(super) fn keep(&self, file: OwnedFd) -> RawFd {
        let file = file.into_raw_fd();
        match &self.taken {
            [first, _] if first.get().is_none() => first.set(Some(file)),
            [_, second] => second.set(Some(file)),
        }
        file
    }

    /// The object that a path leads to, opened without access to its contents.
    fn resolve(&self, path: &CStr) -> Answer<RawFd> {
        let flags = OFlags::PATH.bits();
        open_beneath(borrow(self.root()), path, flags, 0).map(|file| self.keep(file))
    }

    /// The directory that a path's last name is in.
    pub(super) fn parent<'a>(&self, path: &'a CStr) -> Answer<Place<'a>> {
        let bytes = path.to_bytes_with_nul();
        let Some(slash) = bytes.iter().rposition(|byte| *byte == b'/') else {
            return Ok(Place {
                parent: self.root(),
                leaf: path,
            });
        };
        let (directory, leaf) = bytes.split_at(slash);
        let leaf = leaf.get(1..).unwrap_or_default();
        let leaf = CStr::from_bytes_with_nul(leaf).map_err(|_| Errno::INVAL)?;
        let mut text = self.text.borrow_mut();
        text.clear();
        text.extend_from_slice(directory);
        text.push(0);
        let directory = CStr::from_bytes_with_nul(&text).map_err(|_| Errno::INVAL)?;
        let flags = (OFlags::PATH | OFlags::DIRECTORY).bits();
        let parent = open_beneath(borrow(self.root()), directory, flags, 0)?;
        Ok(Place {
            parent: self.keep(parent),
            leaf,
        })
    }

    /// Call with `/proc/self/fd/N` of what a path leads to.
    pub(super) fn through_proc<T>(
        &self,
        path: &CStr,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T> {
        let file = self.resolve(path)?;
        self.through_descriptor(file, call)
    }

    fn through_descriptor<T>(
        &self,
        file: RawFd,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T> {
        let mut text = self.text.borrow_mut();
        text.clear();
        text.extend_from_slice(b"/proc/self/fd/");
        write_number(u64::from(file.cast_unsigned()), &mut text);
        text.push(0);
        call(CStr::from_bytes_with_nul(&text).map_err(|_| Errno::INVAL)?)
    }

    /// Whether what is open may be used. Linux before 5.8 has no call for that; there it is asked for by its name in /proc.
    pub(super) fn may_use(&self, file: RawFd, mode: u32, flags: u32) -> Answer<u64> {
        let itself = flags | libc::AT_EMPTY_PATH.cast_unsigned();
        match access(file, c"", mode, itself) {
            Err(Errno::NOSYS) => {
                self.through_descriptor(file, |path| access(libc::AT_FDCWD, path, mode, 0))
            }
            answer => answer,
        }
    }
}

impl Kernel for Guarded {
    fn enter(folder: &Arc<Folder>) -> Answer<Guarded> {
        prepare_to_link();
        Ok(Guarded {
            root: Arc::clone(folder),
            taken: [Cell::new(None), Cell::new(None)],
            text: RefCell::default(),
        })
    }
    fn tidy(&self) {
        for taken in &self.taken {
            if let Some(file) = taken.take() {
                let closed = close(file);
                debug_assert!(closed.is_ok());
            }
        }
    }
    fn open(&self, path: &CStr, flags: u32, mode: u32) -> Answer<RawFd> {
        open_beneath(borrow(self.root()), path, flags, mode).map(IntoRawFd::into_raw_fd)
    }
    fn stat(&self, path: &CStr) -> Answer<u64> {
        fstat(self.resolve(path)?)
    }
    fn lstat(&self, path: &CStr) -> Answer<u64> {
        let place = self.parent(path)?;
        let facts =
            rustix::fs::statat(borrow(place.parent), place.leaf, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(u64::try_from(facts.st_size).unwrap_or(0))
    }
    fn access(&self, path: &CStr, mode: u32) -> Answer {
        let file = self.resolve(path)?;
        self.may_use(file, mode, 0).map(|_| ())
    }
    fn mkdir(&self, path: &CStr, mode: u32) -> Answer {
        let place = self.parent(path)?;
        rustix::fs::mkdirat(borrow(place.parent), place.leaf, Mode::from_raw_mode(mode))
    }
    fn rmdir(&self, path: &CStr) -> Answer {
        let place = self.parent(path)?;
        rustix::fs::unlinkat(borrow(place.parent), place.leaf, AtFlags::REMOVEDIR)
    }
    fn unlink(&self, path: &CStr) -> Answer {
        let place = self.parent(path)?;
        rustix::fs::unlinkat(borrow(place.parent), place.leaf, AtFlags::empty())
    }
    fn rename(&self, from: &CStr, to: &CStr, flags: u32) -> Answer {
        let (from, to) = (self.parent(from)?, self.parent(to)?);
        let flags = RenameFlags::from_bits_retain(flags);
        rustix::fs::renameat_with(
            borrow(from.parent),
            from.leaf,
            borrow(to.parent),
            to.leaf,
            flags,
        )
    }
    fn link(&self, from: &CStr, to: &CStr) -> Answer {
        let (from, to) = (self.parent(from)?, self.parent(to)?);
        rustix::fs::linkat(
            borrow(from.parent),
            from.leaf,
            borrow(to.parent),
            to.leaf,
            AtFlags::empty(),
        )
    }
    fn symlink(&self, target: &CStr, path: &CStr) -> Answer {
        let place = self.parent(path)?;
        rustix::fs::symlinkat(target, borrow(place.parent), place.leaf)
    }
    fn readlink(&self, path: &CStr, buffer: Scratch) -> Answer<u64> {
        let place = self.parent(path)?;
        let (leaf, address, len) = (place.leaf.as_ptr(), buffer.address(), buffer.len());
        // SAFETY: a NUL-terminated path and a writable buffer of this length.
        length(unsafe { libc::syscall(libc::SYS_readlinkat, place.parent, leaf, address, len) })
    }
    fn truncate(&self, path: &CStr, size: u64) -> Answer {
        let file = open_beneath(borrow(self.root()), path, OFlags::WRONLY.bits(), 0)?;
        ftruncate(self.keep(file), size)
    }
    fn chmod(&self, path: &CStr, mode: u32) -> Answer {
        let mode = Mode::from_raw_mode(mode);
        self.through_proc(path, |path| {
            rustix::fs::chmodat(CWD, path, mode, AtFlags::empty())
        })
    }
    fn chown(&self, path: &CStr, owner: Owner) -> Answer {
        let place = self.parent(path)?;
        let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
        rustix::fs::chownat(
            borrow(place.parent),
            place.leaf,
            uid,
            gid,
            AtFlags::SYMLINK_NOFOLLOW,
        )
    }
    fn utimens(&self, path: &CStr, mtime_ns: Option<u64>) -> Answer {
        let place = self.parent(path)?;
        rustix::fs::utimensat(
            borrow(place.parent),
            place.leaf,
            &times(mtime_ns),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    }
    fn getxattr(&self, path: &CStr, name: &CStr, buffer: Scratch) -> Answer<u64> {
        self.through_proc(path, |path| getxattr(path, name, buffer))
    }
    fn setxattr(&self, path: &CStr, name: &CStr, value: &[u8]) -> Answer {
        self.through_proc(path, |path| {
            rustix::fs::setxattr(path, name, value, XattrFlags::empty())
        })
    }
    fn removexattr(&self, path: &CStr, name: &CStr) -> Answer {
        self.through_proc(path, |path| rustix::fs::removexattr(path, name))
    }
    fn listxattr(&self, path: &CStr, buffer: Scratch) -> Answer<u64> {
        self.through_proc(path, |path| listxattr(path, buffer))
    }
}
