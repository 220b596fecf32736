//! Locks and controls of open files that traces make: what could signal, start or unblock anything else is not handed on.
#![expect(
    unsafe_code,
    reason = "rustix has no open-file-description locks and no raw fcntl or ioctl"
)]

use super::files::length;
use super::operands::Answer;
use crate::program::LockKind;
use rustix::io::Errno;
use std::os::fd::RawFd;

pub(crate) fn flock(file: RawFd, kind: LockKind, wait: bool) -> Answer {
    let kind = match kind {
        LockKind::Shared => libc::LOCK_SH,
        LockKind::Exclusive => libc::LOCK_EX,
        LockKind::Unlock => libc::LOCK_UN,
    };
    let operation = kind | if wait { 0 } else { libc::LOCK_NB };
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_flock, file, operation) })
}

/// A lock of a byte range, as fcntl takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockRange {
    pub(crate) kind: LockKind,
    pub(crate) whence: u32,
    pub(crate) offset: i64,
    pub(crate) size: i64,
}

/// Open file description locks: the users are threads of one process, whose own locks would not keep them apart.
pub(crate) fn lock(file: RawFd, range: LockRange, wait: bool) -> Answer {
    let kind = match range.kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
        LockKind::Unlock => libc::F_UNLCK,
    };
    let lock = libc::flock {
        l_type: libc::c_short::try_from(kind).map_err(|_| Errno::INVAL)?,
        l_whence: libc::c_short::try_from(range.whence).map_err(|_| Errno::INVAL)?,
        l_start: range.offset,
        l_len: range.size,
        l_pid: 0,
    };
    let command = if wait {
        libc::F_OFD_SETLKW
    } else {
        libc::F_OFD_SETLK
    };
    // SAFETY: `lock` is a whole struct flock that outlives the call.
    length(unsafe { libc::syscall(libc::SYS_fcntl, file, command, &raw const lock) })
}

/// Status flags that a program may change (`SETFL` in fs/fcntl.c, without signals).
const STATUS_FLAGS: i32 = libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOATIME | libc::O_DIRECT;

/// The argument of a command of fcntl that asks, or changes nothing but the description itself.
fn tamed(command: u32, argument: u64) -> Option<i64> {
    match i32::try_from(command).ok()? {
        libc::F_GETFD | libc::F_GETFL | libc::F_GET_SEALS => Some(0),
        // Never without: a program that Python starts must not inherit it.
        libc::F_SETFD => Some(i64::from(libc::FD_CLOEXEC)),
        libc::F_SETFL => Some(i64::try_from(argument).unwrap_or(0) & i64::from(STATUS_FLAGS)),
        _ => None,
    }
}

/// Whether a command of fcntl is made.
pub(crate) fn is_harmless(command: u32) -> bool {
    tamed(command, 0).is_some()
}

/// A command of fcntl that is harmless.
pub(crate) fn fcntl(file: RawFd, command: u32, argument: u64) -> Answer {
    let argument = tamed(command, argument).ok_or(Errno::INVAL)?;
    // SAFETY: these commands take a number or nothing.
    length(unsafe { libc::syscall(libc::SYS_fcntl, file, command, argument) })
}

/// Commands that change nothing, and fill at most 64 bytes with what the file system or the terminal driver knows (asm-generic/ioctls.h,
/// linux/fs.h).
const ASKING: [(&[u8], u32); 7] = [
    (b"TCGETS", 0x5401),
    (b"TIOCGWINSZ", 0x5413),
    (b"FIONREAD", 0x541B),
    (b"FIGETBSZ", 2),
    (b"FS_IOC_GETFLAGS", 0x8008_6601),
    (b"FS_IOC_GETVERSION", 0x8008_7601),
    (b"FS_IOC_FSGETXATTR", 0x801C_581F),
];

/// The number of a command that asks.
pub(crate) fn asking(name: &[u8]) -> Option<u32> {
    let known = ASKING.iter().find(|(known, _)| *known == name);
    known.map(|(_, command)| *command)
}

/// Whether a command of ioctl is made.
pub(crate) fn is_asking(command: u32) -> bool {
    ASKING.iter().any(|(_, known)| *known == command)
}

/// A command of ioctl that asks.
pub(crate) fn ioctl(file: RawFd, command: u32) -> Answer {
    if !is_asking(command) {
        return Err(Errno::INVAL);
    }
    let mut answer = [0_u64; 32];
    // SAFETY: a buffer larger than what any of these commands writes.
    length(unsafe { libc::syscall(libc::SYS_ioctl, file, command, answer.as_mut_ptr()) })
}
