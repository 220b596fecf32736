//! Paths of replays for a thread whose root is the run's folder: plain calls, from an open directory where one was named.
#![expect(unsafe_code, reason = "rustix has no readlinkat for shared buffers")]

use super::answer::Answer;
use super::attributes;
use super::files::{borrow, length};
use super::folder::open_so;
use super::how::How;
use super::jailed::Jailed;
use super::naming::link_open;
use super::places::{ACCESS_FLAGS, At, Links, Places, follows, tamed};
use super::replayed::{access, statx, timestamps};
use super::scratch::Scratch;
use crate::program::Owner;
use crate::replay::program::Times;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

/// Where a call begins, and the path from there.
#[inline]
fn base(at: At<'_>) -> (BorrowedFd<'static>, &CStr) {
    match at.seen {
        Some((directory, rest)) => (borrow(directory), rest),
        None => (CWD, at.whole),
    }
}

/// The same of a call that changes something. A directory that others move out of the run's folder while it is open lies beyond the
/// thread's root, and from there a link or a `..` leads anywhere. So from a directory only a name in it is changed, and where a link
/// could be followed the path begins at the root.
#[inline]
fn firm(at: At<'_>, links: Links) -> (BorrowedFd<'static>, &CStr) {
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

/// Open; a path that leaves its directory again (through a link) is followed from the root, beneath which it stays.
#[inline]
fn open(at: At<'_>, how: How) -> Answer<OwnedFd> {
    let (from, path) = base(at);
    match open_so(from, path, how) {
        Err(Errno::XDEV) if at.seen.is_some() && how.resolve == 0 => open_so(CWD, at.whole, how),
        answer => answer,
    }
}

impl Places for Jailed {
    #[inline]
    fn open_at(&self, at: At<'_>, how: How) -> Answer<RawFd> {
        open(at, tamed(how)).map(IntoRawFd::into_raw_fd)
    }
    #[inline]
    fn stat_at(&self, at: At<'_>, links: Links) -> Answer<u64> {
        let (from, path) = base(at);
        rustix::fs::statat(from, path, links.at_flags()).map(|_| 0)
    }
    fn statx_at(&self, at: At<'_>, links: Links, sync: u32) -> Answer<u64> {
        let (from, path) = base(at);
        statx(from, path, links.at_flags(), sync)
    }
    #[inline]
    fn access_at(&self, at: At<'_>, mode: u32, flags: u32) -> Answer<u64> {
        let (from, path) = base(at);
        access(from.as_raw_fd(), path, mode, flags & ACCESS_FLAGS)
    }
    fn look_up(&self, at: At<'_>) -> Answer<u64> {
        let flags = (OFlags::PATH | OFlags::DIRECTORY).bits();
        let how = How {
            flags,
            mode: 0,
            resolve: 0,
        };
        open(at, how).map(|file| {
            // Closing is timed with it: a descriptor costs less than a chdir does.
            drop(file);
            0
        })
    }
    fn statfs(&self, path: &CStr) -> Answer<u64> {
        rustix::fs::statfs(path).map(|_| 0)
    }
    fn mkdir_at(&self, at: At<'_>, mode: u32) -> Answer<u64> {
        let (from, path) = firm(at, Links::Keep);
        rustix::fs::mkdirat(from, path, Mode::from_raw_mode(mode & 0o7777)).map(|()| 0)
    }
    fn mknod_at(&self, at: At<'_>, mode: u32) -> Answer<u64> {
        let (from, path) = firm(at, Links::Keep);
        let mode = Mode::from_raw_mode(mode & 0o7777);
        rustix::fs::mknodat(from, path, FileType::RegularFile, mode, 0).map(|()| 0)
    }
    fn rmdir_at(&self, at: At<'_>) -> Answer<u64> {
        let (from, path) = firm(at, Links::Keep);
        rustix::fs::unlinkat(from, path, AtFlags::REMOVEDIR).map(|()| 0)
    }
    fn unlink_at(&self, at: At<'_>) -> Answer<u64> {
        let (from, path) = firm(at, Links::Keep);
        rustix::fs::unlinkat(from, path, AtFlags::empty()).map(|()| 0)
    }
    fn readlink_at(&self, at: At<'_>, buffer: Scratch) -> Answer<u64> {
        let (from, path) = base(at);
        let (from, path) = (from.as_raw_fd(), path.as_ptr());
        // SAFETY: a NUL-terminated path and a writable buffer of this length.
        length(unsafe {
            libc::syscall(
                libc::SYS_readlinkat,
                from,
                path,
                buffer.address(),
                buffer.len(),
            )
        })
    }
    fn rename_at(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer<u64> {
        let ((from, old), (to, new)) = (firm(from, Links::Keep), firm(to, Links::Keep));
        let flags = RenameFlags::from_bits_retain(flags);
        rustix::fs::renameat_with(from, old, to, new, flags).map(|()| 0)
    }
    fn link_at(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer<u64> {
        let links = follows(flags);
        let ((from, old), (to, new)) = (firm(from, links), firm(to, Links::Keep));
        let flags = match links {
            Links::Follow => AtFlags::SYMLINK_FOLLOW,
            Links::Keep => AtFlags::empty(),
        };
        rustix::fs::linkat(from, old, to, new, flags).map(|()| 0)
    }
    fn link_open(&self, file: RawFd, to: At<'_>) -> Answer<u64> {
        let (to, new) = firm(to, Links::Keep);
        link_open(file, to, new)
    }
    fn symlink_at(&self, target: &CStr, at: At<'_>) -> Answer<u64> {
        let (from, path) = firm(at, Links::Keep);
        rustix::fs::symlinkat(target, from, path).map(|()| 0)
    }
    fn chmod_at(&self, at: At<'_>, mode: u32) -> Answer<u64> {
        let (from, path) = firm(at, Links::Follow);
        let mode = Mode::from_raw_mode(mode & 0o7777);
        rustix::fs::chmodat(from, path, mode, AtFlags::empty()).map(|()| 0)
    }
    fn chown_at(&self, at: At<'_>, owner: Owner, links: Links) -> Answer<u64> {
        let (from, path) = firm(at, links);
        let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
        rustix::fs::chownat(from, path, uid, gid, links.at_flags()).map(|()| 0)
    }
    fn utimens_at(&self, at: At<'_>, times: Times, links: Links) -> Answer<u64> {
        let (from, path) = firm(at, links);
        rustix::fs::utimensat(from, path, &timestamps(times), links.at_flags()).map(|()| 0)
    }
    fn get_attribute(&self, on: (&CStr, Links), name: &CStr, buffer: Scratch) -> Answer<u64> {
        attributes::get(on, name, buffer)
    }
    fn set_attribute(&self, on: (&CStr, Links), name: &CStr, value: (&[u8], u32)) -> Answer<u64> {
        attributes::set(on, name, value)
    }
    fn remove_attribute(&self, on: (&CStr, Links), name: &CStr) -> Answer<u64> {
        attributes::remove(on, name)
    }
    fn list_attributes(&self, on: (&CStr, Links), buffer: Scratch) -> Answer<u64> {
        attributes::list(on, buffer)
    }
}
