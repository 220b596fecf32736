//! Calls of a thread whose root is the run's folder: one system call an op, nothing outside can be named.
#![expect(
    unsafe_code,
    reason = "rustix has no calls for shared buffers and for truncate and xattrs without copies"
)]

use super::answer::Answer;
use super::files::{length, times};
use super::folder::{Folder, open_beneath};
use super::kernel::Kernel;
use super::naming::prepare_to_link;
use super::scratch::Scratch;
use super::threads::enter_jail;
use crate::program::Owner;
use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, IntoRawFd, RawFd};
use std::sync::Arc;

/// Makes plain calls relative to the working directory, which is the run's folder and the thread's root.
#[derive(Debug)]
pub(crate) struct Jailed;

fn size_of(facts: &rustix::fs::Stat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or(0)
}

impl Kernel for Jailed {
    fn enter(folder: &Arc<Folder>) -> Answer<Jailed> {
        prepare_to_link();
        enter_jail(folder.file.as_fd()).map(|()| Jailed)
    }
    #[inline]
    fn open(&self, path: &CStr, flags: u32, mode: u32) -> Answer<RawFd> {
        open_beneath(CWD, path, flags, mode).map(IntoRawFd::into_raw_fd)
    }
    #[inline]
    fn stat(&self, path: &CStr) -> Answer<u64> {
        rustix::fs::statat(CWD, path, AtFlags::empty()).map(|facts| size_of(&facts))
    }
    #[inline]
    fn lstat(&self, path: &CStr) -> Answer<u64> {
        rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map(|facts| size_of(&facts))
    }
    fn access(&self, path: &CStr, mode: u32) -> Answer {
        rustix::fs::accessat(CWD, path, Access::from_bits_retain(mode), AtFlags::empty())
    }
    fn mkdir(&self, path: &CStr, mode: u32) -> Answer {
        rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(mode))
    }
    fn rmdir(&self, path: &CStr) -> Answer {
        rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)
    }
    #[inline]
    fn unlink(&self, path: &CStr) -> Answer {
        rustix::fs::unlinkat(CWD, path, AtFlags::empty())
    }
    fn rename(&self, from: &CStr, to: &CStr, flags: u32) -> Answer {
        rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::from_bits_retain(flags))
    }
    fn link(&self, from: &CStr, to: &CStr) -> Answer {
        rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())
    }
    fn symlink(&self, target: &CStr, path: &CStr) -> Answer {
        rustix::fs::symlinkat(target, CWD, path)
    }
    fn readlink(&self, path: &CStr, buffer: Scratch) -> Answer<u64> {
        let (address, len) = (buffer.address(), buffer.len());
        // SAFETY: a NUL-terminated path and a writable buffer of this length.
        length(unsafe {
            libc::syscall(
                libc::SYS_readlinkat,
                libc::AT_FDCWD,
                path.as_ptr(),
                address,
                len,
            )
        })
    }
    fn truncate(&self, path: &CStr, size: u64) -> Answer {
        let size = i64::try_from(size).map_err(|_| Errno::INVAL)?;
        // SAFETY: a NUL-terminated path.
        length(unsafe { libc::syscall(libc::SYS_truncate, path.as_ptr(), size) }).map(|_| ())
    }
    fn chmod(&self, path: &CStr, mode: u32) -> Answer {
        rustix::fs::chmodat(CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
    }
    fn chown(&self, path: &CStr, owner: Owner) -> Answer {
        let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
        rustix::fs::chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
    }
    fn utimens(&self, path: &CStr, mtime_ns: Option<u64>) -> Answer {
        rustix::fs::utimensat(CWD, path, &times(mtime_ns), AtFlags::SYMLINK_NOFOLLOW)
    }
    fn getxattr(&self, path: &CStr, name: &CStr, buffer: Scratch) -> Answer<u64> {
        getxattr(path, name, buffer)
    }
    fn setxattr(&self, path: &CStr, name: &CStr, value: &[u8]) -> Answer {
        rustix::fs::setxattr(path, name, value, XattrFlags::empty())
    }
    fn removexattr(&self, path: &CStr, name: &CStr) -> Answer {
        rustix::fs::removexattr(path, name)
    }
    fn listxattr(&self, path: &CStr, buffer: Scratch) -> Answer<u64> {
        listxattr(path, buffer)
    }
}

pub(super) fn getxattr(path: &CStr, name: &CStr, buffer: Scratch) -> Answer<u64> {
    let (address, len) = (buffer.address(), buffer.len());
    // SAFETY: NUL-terminated strings and a writable buffer of this length.
    length(unsafe {
        libc::syscall(
            libc::SYS_getxattr,
            path.as_ptr(),
            name.as_ptr(),
            address,
            len,
        )
    })
}

pub(super) fn listxattr(path: &CStr, buffer: Scratch) -> Answer<u64> {
    // SAFETY: a NUL-terminated path and a writable buffer of this length.
    length(unsafe {
        libc::syscall(
            libc::SYS_listxattr,
            path.as_ptr(),
            buffer.address(),
            buffer.len(),
        )
    })
}
