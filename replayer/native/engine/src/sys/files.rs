//! Calls on open files that move no data: the same in every confinement.
#![expect(
    unsafe_code,
    reason = "descriptors live in slots, and rustix lacks half of these calls"
)]

use super::operands::{Answer, Range, Through, Times};
use crate::program::Owner;
use rustix::fs::{AtFlags, FallocateFlags, Mode, Stat, StatxFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, RawFd};

const SYNC: AtFlags = AtFlags::STATX_FORCE_SYNC.union(AtFlags::STATX_DONT_SYNC);

/// Borrow the descriptor of a slot for one call.
#[inline]
pub(crate) fn borrow(file: RawFd) -> BorrowedFd<'static> {
    // SAFETY: slots hold descriptors that `open` returned and that only this user's thread closes, and each
    // borrow ends with its call. (The kernel itself answers EBADF to any other number.)
    unsafe { BorrowedFd::borrow_raw(file) }
}

/// What a raw call returned: a length, or −1 and errno.
#[inline]
pub(super) fn length(returned: libc::c_long) -> Answer {
    u64::try_from(returned).map_err(|_| last_errno())
}

#[cold]
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// An offset or a size as the kernel takes it.
#[inline]
pub(super) fn signed(number: u64) -> Answer<i64> {
    i64::try_from(number).map_err(|_| Errno::INVAL)
}

#[inline]
pub(super) fn size_of(facts: &Stat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or(0)
}

/// Close a descriptor that nobody uses any more.
pub(crate) fn close(file: RawFd) -> Answer {
    // SAFETY: the slot gives its descriptor up before this call, so nobody uses it afterwards.
    length(unsafe { libc::syscall(libc::SYS_close, file) })
}

/// One more descriptor of the same description; it is closed when a program is started.
pub(crate) fn duplicate(file: RawFd) -> Answer<RawFd> {
    // SAFETY: no memory is involved.
    let copy =
        length(unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_DUPFD_CLOEXEC, 0_i64) })?;
    RawFd::try_from(copy).map_err(|_| Errno::MFILE)
}

pub(crate) fn lseek(file: RawFd, offset: i64, whence: u32) -> Answer {
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_lseek, file, offset, whence) })
}

pub(crate) fn fsync(file: RawFd) -> Answer {
    rustix::fs::fsync(borrow(file)).map(|()| 0)
}

pub(crate) fn fdatasync(file: RawFd) -> Answer {
    rustix::fs::fdatasync(borrow(file)).map(|()| 0)
}

pub(crate) fn syncfs(file: RawFd) -> Answer {
    rustix::fs::syncfs(borrow(file)).map(|()| 0)
}

pub(crate) fn sync_range(file: RawFd, (offset, size): Range, flags: u32) -> Answer {
    let (offset, size) = (signed(offset)?, signed(size)?);
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_sync_file_range, file, offset, size, flags) })
}

pub(crate) fn advise(file: RawFd, (offset, size): Range, advice: u32) -> Answer {
    let (offset, size) = (signed(offset)?, signed(size)?);
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_fadvise64, file, offset, size, advice) })
}

pub(crate) fn readahead(file: RawFd, (offset, size): Range) -> Answer {
    let offset = signed(offset)?;
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_readahead, file, offset, size) })
}

/// The size.
pub(crate) fn fstat(file: RawFd) -> Answer {
    rustix::fs::fstat(borrow(file)).map(|facts| size_of(&facts))
}

/// Attributes, as fresh as the bits of `AT_STATX_SYNC_TYPE` say.
pub(super) fn statx(from: BorrowedFd<'_>, path: &CStr, flags: AtFlags, sync: u32) -> Answer {
    let sync = AtFlags::from_bits_retain(sync) & SYNC;
    rustix::fs::statx(from, path, flags | sync, StatxFlags::BASIC_STATS).map(|_| 0)
}

/// The same of what a descriptor stands for.
pub(crate) fn statx_of(file: RawFd, sync: u32) -> Answer {
    statx(borrow(file), c"", AtFlags::EMPTY_PATH, sync)
}

/// Have the extents of a file counted (`struct fiemap` of linux/fiemap.h: from its begin, whole, no room for a list).
pub(crate) fn fiemap(file: RawFd) -> Answer {
    const FS_IOC_FIEMAP: u32 = 0xC020_660B;
    let mut whole = [0, u64::MAX, 0, 0];
    // SAFETY: a buffer as large as what the command reads and writes where it lists nothing.
    length(unsafe { libc::syscall(libc::SYS_ioctl, file, FS_IOC_FIEMAP, whole.as_mut_ptr()) })
}

pub(crate) fn fstatfs(file: RawFd) -> Answer {
    rustix::fs::fstatfs(borrow(file)).map(|_| 0)
}

/// Whether a path may be used; `AT_EMPTY_PATH` asks for the directory's own descriptor. Linux before 5.8 knows no flags: there the
/// effective user is asked for as the real one, who is the same here, and the other flags are ENOSYS.
#[inline]
pub(super) fn access(from: RawFd, path: &CStr, mode: u32, flags: u32) -> Answer {
    if flags == 0 {
        return access_plain(from, path, mode);
    }
    let (at, effective) = (path.as_ptr(), libc::AT_EACCESS.cast_unsigned());
    // SAFETY: a NUL-terminated path.
    match length(unsafe { libc::syscall(libc::SYS_faccessat2, from, at, mode, flags) }) {
        Err(Errno::NOSYS) if flags == effective => access_plain(from, path, mode),
        answer => answer,
    }
}

#[inline]
fn access_plain(from: RawFd, path: &CStr, mode: u32) -> Answer {
    // SAFETY: a NUL-terminated path.
    length(unsafe { libc::syscall(libc::SYS_faccessat, from, path.as_ptr(), mode) })
}

pub(crate) fn ftruncate(file: RawFd, size: u64) -> Answer {
    rustix::fs::ftruncate(borrow(file), size).map(|()| 0)
}

pub(crate) fn fallocate(file: RawFd, (offset, size): Range, mode: u32) -> Answer {
    let mode = FallocateFlags::from_bits_retain(mode);
    rustix::fs::fallocate(borrow(file), mode, offset, size).map(|()| 0)
}

pub(crate) fn fchmod(file: RawFd, mode: u32) -> Answer {
    rustix::fs::fchmod(borrow(file), Mode::from_raw_mode(mode & 0o7777)).map(|()| 0)
}

pub(crate) fn fchown(file: RawFd, owner: Owner, through: Through) -> Answer {
    let (uid, gid) = owner.ids();
    match through {
        Through::Descriptor => rustix::fs::fchown(borrow(file), uid, gid).map(|()| 0),
        Through::EmptyPath => chown_of(file, owner),
    }
}

/// Give what a descriptor with `O_PATH` stands for to somebody.
pub(super) fn chown_of(file: RawFd, owner: Owner) -> Answer {
    let (uid, gid) = owner.ids();
    rustix::fs::chownat(borrow(file), c"", uid, gid, AtFlags::EMPTY_PATH).map(|()| 0)
}

pub(crate) fn futimens(file: RawFd, times: Times, through: Through) -> Answer {
    let (file, times) = (borrow(file), times.timestamps());
    match through {
        Through::Descriptor => rustix::fs::futimens(file, &times),
        Through::EmptyPath => rustix::fs::utimensat(file, c"", &times, AtFlags::EMPTY_PATH),
    }
    .map(|()| 0)
}
