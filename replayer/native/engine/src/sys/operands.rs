//! What the kernel is asked for that takes several words, and what it answers.

use crate::program::Owner;
use rustix::fs::{AtFlags, Gid, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::RawFd;

pub(crate) type Answer<T = u64> = Result<T, Errno>;

/// A position in a file, and how many bytes from there.
pub(crate) type Range = (u64, u64);

/// A path below the run's folder, and how it looks from an open directory where the program named one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(crate) whole: &'a CStr,
    pub(crate) seen: Option<(RawFd, &'a CStr)>,
}

impl<'a> At<'a> {
    /// A path from the run's folder.
    #[inline]
    pub(crate) fn whole(whole: &'a CStr) -> At<'a> {
        At { whole, seen: None }
    }
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

/// How a file is opened, as openat2 is told it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) flags: u32,
    pub(crate) mode: u32,
    /// What may not be on the way of its path (`RESOLVE_NO_SYMLINKS`…).
    pub(crate) resolve: u32,
}

/// Open flags that are handed on: those of plans. No signals (`O_ASYNC`), nothing unknown.
pub(crate) const OPEN_FLAGS: u32 = (libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_DSYNC
    | libc::O_DIRECT
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_SYNC
    | libc::O_PATH
    | libc::O_TMPFILE)
    .cast_unsigned();

/// What of `resolve` is handed on: `RESOLVE_NO_XDEV`, `RESOLVE_NO_MAGICLINKS`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_BENEATH`
/// (linux/openat2.h). Whether a path was cached says something of the machine, and the root of all paths is the run's folder.
const RESOLVE: u32 = 0xF;

impl How {
    /// What openat2 takes, where open ignores what makes no sense.
    #[inline]
    pub(crate) fn tamed(self) -> How {
        let of_path = (libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW).cast_unsigned();
        let is_path = self.flags & libc::O_PATH.cast_unsigned() != 0;
        How {
            flags: self.flags & if is_path { of_path } else { OPEN_FLAGS },
            mode: self.mode & 0o7777,
            resolve: self.resolve & RESOLVE,
        }
    }
}

/// How attributes of an open file are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Through {
    #[default]
    Descriptor,
    /// With `AT_EMPTY_PATH`: what was opened with `O_PATH` takes nothing else.
    EmptyPath,
}

/// Access and modification time; `None` leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) access: Option<Time>,
    pub(crate) modification: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Now,
    At(i64),
}

impl Times {
    /// The same for both; `None`: now.
    pub(crate) fn both(ns: Option<u64>) -> Times {
        let at = |ns| Time::At(i64::try_from(ns).unwrap_or(i64::MAX));
        let time = Some(ns.map_or(Time::Now, at));
        Times {
            access: time,
            modification: time,
        }
    }

    pub(super) fn timestamps(self) -> Timestamps {
        Timestamps {
            last_access: timespec(self.access),
            last_modification: timespec(self.modification),
        }
    }
}

fn timespec(time: Option<Time>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(UTIME_OMIT),
        Some(Time::Now) => special(UTIME_NOW),
        Some(Time::At(ns)) => Timespec {
            tv_sec: ns.div_euclid(1_000_000_000),
            tv_nsec: ns.rem_euclid(1_000_000_000),
        },
    }
}

impl Owner {
    #[inline]
    pub(super) fn ids(self) -> (Option<Uid>, Option<Gid>) {
        (self.uid.map(Uid::from_raw), self.gid.map(Gid::from_raw))
    }
}
