//! What a replay can ask of the kernel by path, beyond what plans can.

use super::answer::Answer;
use super::how::How;
use super::kernel::Kernel;
use super::scratch::Scratch;
use crate::program::Owner;
use crate::replay::program::Times;
use rustix::fs::AtFlags;
use std::ffi::CStr;
use std::os::fd::RawFd;

/// A path below the run's folder, and how it looks from an open directory where the program named one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(crate) whole: &'a CStr,
    pub(crate) seen: Option<(RawFd, &'a CStr)>,
}

/// What becomes of a symlink in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Keep,
}

impl Links {
    #[inline]
    pub(super) fn at_flags(self) -> AtFlags {
        match self {
            Links::Follow => AtFlags::empty(),
            Links::Keep => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

/// Open flags that are handed on: those of plans. No signals (`O_ASYNC`), nothing unknown.
const OPEN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_DSYNC
    | libc::O_DIRECT
    | libc::O_LARGEFILE
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_SYNC
    | libc::O_PATH
    | libc::O_TMPFILE;

/// What of `resolve` is handed on: `RESOLVE_NO_XDEV`, `RESOLVE_NO_MAGICLINKS`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_BENEATH`
/// (linux/openat2.h). Whether a path was cached says something of the machine, and the root of all paths is the run's folder.
const RESOLVE: u32 = 0xF;

/// What openat2 takes, where open ignores what makes no sense.
#[inline]
pub(super) fn tamed(how: How) -> How {
    let flags = how.flags;
    let known = OPEN_FLAGS.cast_unsigned();
    let of_path = (libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW).cast_unsigned();
    let is_path = flags & libc::O_PATH.cast_unsigned() != 0;
    How {
        flags: flags & if is_path { of_path } else { known },
        mode: how.mode & 0o7777,
        resolve: how.resolve & RESOLVE,
    }
}

/// Flags of faccessat2 that are handed on.
pub(super) const ACCESS_FLAGS: u32 = (libc::AT_EACCESS | libc::AT_SYMLINK_NOFOLLOW).cast_unsigned();

/// Whether linkat follows a symlink.
pub(super) fn follows(flags: u32) -> Links {
    if flags & libc::AT_SYMLINK_FOLLOW.cast_unsigned() == 0 {
        Links::Keep
    } else {
        Links::Follow
    }
}

/// Calls by path of one lane of a replay. Nothing outside of the run's folder is reached, whatever the paths are.
pub(crate) trait Places: Kernel {
    fn open_at(&self, at: At<'_>, how: How) -> Answer<RawFd>;
    fn stat_at(&self, at: At<'_>, links: Links) -> Answer<u64>;
    fn statx_at(&self, at: At<'_>, links: Links, sync: u32) -> Answer<u64>;
    fn access_at(&self, at: At<'_>, mode: u32, flags: u32) -> Answer<u64>;
    /// Look a directory up, as chdir does; nobody's working directory changes.
    fn look_up(&self, at: At<'_>) -> Answer<u64>;
    fn statfs(&self, path: &CStr) -> Answer<u64>;
    fn mkdir_at(&self, at: At<'_>, mode: u32) -> Answer<u64>;
    /// An empty regular file.
    fn mknod_at(&self, at: At<'_>, mode: u32) -> Answer<u64>;
    fn rmdir_at(&self, at: At<'_>) -> Answer<u64>;
    fn unlink_at(&self, at: At<'_>) -> Answer<u64>;
    fn readlink_at(&self, at: At<'_>, buffer: Scratch) -> Answer<u64>;
    fn rename_at(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer<u64>;
    fn link_at(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer<u64>;
    /// Give a name to what is open, which may have none.
    fn link_open(&self, file: RawFd, to: At<'_>) -> Answer<u64>;
    fn symlink_at(&self, target: &CStr, at: At<'_>) -> Answer<u64>;
    fn chmod_at(&self, at: At<'_>, mode: u32) -> Answer<u64>;
    fn chown_at(&self, at: At<'_>, owner: Owner, links: Links) -> Answer<u64>;
    fn utimens_at(&self, at: At<'_>, times: Times, links: Links) -> Answer<u64>;
    fn get_attribute(&self, on: (&CStr, Links), name: &CStr, buffer: Scratch) -> Answer<u64>;
    fn set_attribute(&self, on: (&CStr, Links), name: &CStr, value: (&[u8], u32)) -> Answer<u64>;
    fn remove_attribute(&self, on: (&CStr, Links), name: &CStr) -> Answer<u64>;
    fn list_attributes(&self, on: (&CStr, Links), buffer: Scratch) -> Answer<u64>;
}
