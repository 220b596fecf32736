//! Calls of a thread whose root is the run's folder: one system call an op, nothing outside can be named. They begin at an open directory
//! where the program named one.

use super::files::{access, borrow, size_of, statx};
use super::folder::{Folder, open_so};
use super::kernel::{ACCESS_FLAGS, Kernel, Name};
use super::naming::prepare_to_link;
use super::operands::{Answer, At, How, Links};
use super::threads::enter_jail;
use crate::program::Owner;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, RawFd};
use std::sync::Arc;

/// Makes plain calls relative to the working directory, which is the run's folder and the thread's root.
#[derive(Debug)]
pub(crate) struct Jailed;

/// Where a call begins, and the path from there.
#[inline]
fn base(at: At<'_>) -> Name<'_> {
    match at.seen {
        Some((directory, rest)) => (borrow(directory), rest),
        None => (CWD, at.whole),
    }
}

/// The same of a call that changes something. A directory that others move out of the run's folder while it is open lies beyond the
/// thread's root, and from there a link or a `..` leads anywhere. So from a directory only a name in it is changed, and where a link
/// could be followed the path begins at the root.
#[inline]
fn firm(at: At<'_>, links: Links) -> Name<'_> {
    match at.seen {
        Some((directory, name)) if links == Links::Keep && is_name(name) => {
            (borrow(directory), name)
        }
        _ => (CWD, at.whole),
    }
}

#[inline]
fn is_name(path: &CStr) -> bool {
    let path = path.to_bytes();
    path != b".." && !path.contains(&b'/')
}

impl Kernel for Jailed {
    fn enter(folder: &Arc<Folder>) -> Answer<Jailed> {
        prepare_to_link();
        enter_jail(folder.file.as_fd()).map(|()| Jailed)
    }
    #[inline]
    fn name<'a>(&self, at: At<'a>) -> Answer<Name<'a>> {
        Ok(firm(at, Links::Keep))
    }
    #[inline]
    fn look<'a>(&self, at: At<'a>) -> Answer<Name<'a>> {
        Ok(base(at))
    }
    #[inline]
    fn by_path<T>(
        &self,
        path: &CStr,
        _: Links,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T> {
        call(path)
    }
    /// A path that leaves its directory again (through a link) is followed from the root, beneath which it stays.
    #[inline]
    fn open(&self, at: At<'_>, how: How) -> Answer<RawFd> {
        let (from, path) = base(at);
        let opened = match open_so(from, path, how) {
            Err(Errno::XDEV) if at.seen.is_some() && how.resolve == 0 => {
                open_so(CWD, at.whole, how)
            }
            answer => answer,
        };
        opened.map(IntoRawFd::into_raw_fd)
    }
    #[inline]
    fn stat(&self, at: At<'_>) -> Answer {
        let (from, path) = base(at);
        rustix::fs::statat(from, path, AtFlags::empty()).map(|facts| size_of(&facts))
    }
    fn statx(&self, at: At<'_>, links: Links, sync: u32) -> Answer {
        let (from, path) = base(at);
        statx(from, path, links.at_flags(), sync)
    }
    #[inline]
    fn access(&self, at: At<'_>, mode: u32, flags: u32) -> Answer {
        let (from, path) = base(at);
        access(from.as_raw_fd(), path, mode, flags & ACCESS_FLAGS)
    }
    fn chown(&self, at: At<'_>, owner: Owner, links: Links) -> Answer {
        let ((from, path), (uid, gid)) = (firm(at, links), owner.ids());
        rustix::fs::chownat(from, path, uid, gid, links.at_flags()).map(|()| 0)
    }
}
