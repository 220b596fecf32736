//! Calls on open files that only traces make, and those whose operands a plan cannot have: the same in every confinement.
#![expect(
    unsafe_code,
    reason = "rustix lacks repeated buffers, attributes without copies and half of these calls"
)]

use super::answer::Answer;
use super::files::{borrow, length};
use super::scratch::Scratch;
use crate::program::Owner;
use crate::replay::program::{Time, Times};
use rustix::fs::{AtFlags, Gid, StatxFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;

const SYNC: AtFlags = AtFlags::STATX_FORCE_SYNC.union(AtFlags::STATX_DONT_SYNC);
/// Buffers of one vectored call (`UIO_MAXIOV`).
const VECTORS: usize = 1024;

/// So many times the buffer, until `size` bytes are covered or there are no more vectors.
fn repeated(
    (address, len): (*mut u8, usize),
    size: u64,
    vectors: &mut [libc::iovec; VECTORS],
) -> libc::c_int {
    let mut rest = usize::try_from(size).unwrap_or(usize::MAX);
    let mut count = 0;
    for vector in vectors {
        vector.iov_base = address.cast();
        vector.iov_len = rest.min(len);
        rest -= vector.iov_len;
        count += 1;
        if rest == 0 || len == 0 {
            break;
        }
    }
    count
}

const NO_VECTOR: libc::iovec = libc::iovec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

/// The halves of an offset as preadv takes them on x86-64: the low one holds all.
fn signed(offset: u64) -> Answer<i64> {
    i64::try_from(offset).map_err(|_| Errno::INVAL)
}

/// A position in a file (none: the description's own), and how many bytes.
type Span = (Option<u64>, u64);

/// The position as preadv2 takes it.
fn position(offset: Option<u64>) -> Answer<i64> {
    offset.map_or(Ok(-1), signed)
}

/// Read into a buffer, over and over where it is smaller. Without flags it is readv or preadv.
#[inline(never)]
pub(crate) fn readv(file: RawFd, buffer: Scratch, (offset, size): Span, flags: u32) -> Answer<u64> {
    let mut vectors = [NO_VECTOR; VECTORS];
    let count = repeated((buffer.address(), buffer.len()), size, &mut vectors);
    let first = vectors.as_ptr();
    match offset {
        _ if flags != 0 => {
            let offset = position(offset)?;
            // SAFETY: each vector is the scratch buffer or its beginning, which is writable while the engine lives.
            length(unsafe {
                libc::syscall(libc::SYS_preadv2, file, first, count, offset, 0_i64, flags)
            })
        }
        // SAFETY: as above.
        None => length(unsafe { libc::syscall(libc::SYS_readv, file, first, count) }),
        Some(offset) => {
            let offset = signed(offset)?;
            // SAFETY: as above.
            length(unsafe { libc::syscall(libc::SYS_preadv, file, first, count, offset, 0) })
        }
    }
}

/// Write bytes, over and over where they are fewer. Without flags it is writev or pwritev.
#[inline(never)]
pub(crate) fn writev(file: RawFd, bytes: &[u8], (offset, size): Span, flags: u32) -> Answer<u64> {
    let mut vectors = [NO_VECTOR; VECTORS];
    let address = bytes.as_ptr().cast_mut();
    let count = repeated((address, bytes.len()), size, &mut vectors);
    let first = vectors.as_ptr();
    match offset {
        _ if flags != 0 => {
            let offset = position(offset)?;
            // SAFETY: each vector is `bytes` or its beginning; the kernel only reads it.
            length(unsafe {
                libc::syscall(libc::SYS_pwritev2, file, first, count, offset, 0_i64, flags)
            })
        }
        // SAFETY: as above.
        None => length(unsafe { libc::syscall(libc::SYS_writev, file, first, count) }),
        Some(offset) => {
            let offset = signed(offset)?;
            // SAFETY: as above.
            length(unsafe { libc::syscall(libc::SYS_pwritev, file, first, count, offset, 0) })
        }
    }
}

/// The largest buffer of getdents64 (chosen; libraries use 32 KiB).
const LISTING_BYTES: usize = 1 << 20;

/// A buffer of one thread's own that directories are listed into, so that their entries can be counted.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    bytes: Vec<u8>,
}

impl Listing {
    /// Make room for calls of this size. Takes memory only when it grows.
    pub(crate) fn prepare(&mut self, size: u64) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let size = size.min(LISTING_BYTES);
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
    }

    /// One getdents64; how many bytes it filled.
    pub(crate) fn fill(&mut self, file: RawFd, size: u64) -> Answer<u64> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let len = size.min(self.bytes.len());
        let address = self.bytes.as_mut_ptr();
        // SAFETY: a writable buffer of at least this length.
        length(unsafe { libc::syscall(libc::SYS_getdents64, file, address, len) })
    }

    /// Entries in the first bytes: `struct linux_dirent64` has its length at byte 16.
    pub(crate) fn entries(&self, filled: u64) -> u64 {
        let mut rest = self.bytes.get(..usize::try_from(filled).unwrap_or(0));
        let mut entries = 0;
        while let Some([low, high]) = rest.and_then(|bytes| bytes.get(16..18)) {
            let len = usize::from(u16::from_ne_bytes([*low, *high])).max(18);
            entries += 1;
            rest = rest.and_then(|bytes| bytes.get(len..));
        }
        entries
    }
}

pub(crate) fn seek(file: RawFd, offset: i64, whence: u32) -> Answer<u64> {
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_lseek, file, offset, whence) })
}

/// Attributes, as fresh as the bits of `AT_STATX_SYNC_TYPE` say.
pub(super) fn statx(from: BorrowedFd<'_>, path: &CStr, flags: AtFlags, sync: u32) -> Answer<u64> {
    let sync = AtFlags::from_bits_retain(sync) & SYNC;
    rustix::fs::statx(from, path, flags | sync, StatxFlags::BASIC_STATS).map(|_| 0)
}

/// The same of what a descriptor stands for.
pub(crate) fn statx_of(file: RawFd, sync: u32) -> Answer<u64> {
    statx(borrow(file), c"", AtFlags::EMPTY_PATH, sync)
}

pub(crate) fn fstatfs(file: RawFd) -> Answer<u64> {
    rustix::fs::fstatfs(borrow(file)).map(|_| 0)
}

pub(crate) fn syncfs(file: RawFd) -> Answer<u64> {
    rustix::fs::syncfs(borrow(file)).map(|()| 0)
}

pub(crate) fn sync_range(file: RawFd, (offset, size): (u64, u64), flags: u32) -> Answer<u64> {
    let (offset, size) = (signed(offset)?, signed(size)?);
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_sync_file_range, file, offset, size, flags) })
}

pub(crate) fn advise(file: RawFd, (offset, size): (u64, u64), advice: u32) -> Answer<u64> {
    let (offset, size) = (signed(offset)?, signed(size)?);
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_fadvise64, file, offset, size, advice) })
}

pub(crate) fn readahead(file: RawFd, (offset, size): (u64, u64)) -> Answer<u64> {
    let offset = signed(offset)?;
    // SAFETY: no memory is involved.
    length(unsafe { libc::syscall(libc::SYS_readahead, file, offset, size) })
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

pub(super) fn timestamps(times: Times) -> Timestamps {
    Timestamps {
        last_access: timespec(times.access),
        last_modification: timespec(times.modification),
    }
}

pub(crate) fn futimens(file: RawFd, times: Times) -> Answer<u64> {
    rustix::fs::futimens(borrow(file), &timestamps(times)).map(|()| 0)
}

/// The same of what a descriptor with `O_PATH` stands for.
pub(crate) fn utimens_of(file: RawFd, times: Times) -> Answer<u64> {
    let times = timestamps(times);
    rustix::fs::utimensat(borrow(file), c"", &times, AtFlags::EMPTY_PATH).map(|()| 0)
}

/// Give what a descriptor with `O_PATH` stands for to somebody.
pub(crate) fn chown_of(file: RawFd, owner: Owner) -> Answer<u64> {
    let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
    rustix::fs::chownat(borrow(file), c"", uid, gid, AtFlags::EMPTY_PATH).map(|()| 0)
}

/// A mapping that nobody touches.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: usize,
    len: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of our own at an address of the kernel's choice; nothing borrows from it.
        let unmapped = unsafe { libc::munmap(self.start as *mut _, self.len) };
        debug_assert_eq!(unmapped, 0);
    }
}

/// Protection and flags of a mapping, as mmap takes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) protection: u32,
    pub(crate) flags: u32,
}

/// Map a part of a file at an address of the kernel's choice. Dropping the mapping unmaps it.
pub(crate) fn map(file: RawFd, (offset, size): (u64, u64), wish: Wish) -> Answer<Mapping> {
    let shared = wish.flags & (libc::MAP_SHARED | libc::MAP_PRIVATE).cast_unsigned();
    let populate = wish.flags & (libc::MAP_POPULATE | libc::MAP_NONBLOCK).cast_unsigned();
    // A private copy is never written, so it need not be writable: it would count as memory.
    let writable = if shared & libc::MAP_SHARED.cast_unsigned() != 0 {
        libc::PROT_WRITE.cast_unsigned()
    } else {
        0
    };
    let protection = wish.protection & (libc::PROT_READ.cast_unsigned() | writable);
    let len = usize::try_from(size).map_err(|_| Errno::NOMEM)?;
    let offset = signed(offset)?;
    // SAFETY: no address is wished for (nor fixed), so nothing that is mapped is replaced; nobody touches the memory.
    let start = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            ptr::null_mut::<u8>(),
            len,
            protection,
            shared | populate,
            file,
            offset,
        )
    };
    let start = length(start)?;
    let start = usize::try_from(start).map_err(|_| Errno::NOMEM)?;
    Ok(Mapping { start, len })
}

/// Copy between two files, at explicit positions where they are given.
pub(crate) fn copy_range(
    (from, from_offset): (RawFd, Option<u64>),
    (to, to_offset): (RawFd, Option<u64>),
    size: u64,
) -> Answer<u64> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let (mut from_offset, mut to_offset) = (from_offset, to_offset);
    let copied = rustix::fs::copy_file_range(
        borrow(from),
        from_offset.as_mut(),
        borrow(to),
        to_offset.as_mut(),
        size,
    )?;
    Ok(copied as u64)
}

/// Make `to` share the data of `from`.
pub(crate) fn clone_file(from: RawFd, to: RawFd) -> Answer<u64> {
    rustix::fs::ioctl_ficlone(borrow(to), borrow(from)).map(|()| 0)
}

pub(crate) fn sendfile(from: RawFd, to: RawFd, size: u64, offset: Option<u64>) -> Answer<u64> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut offset = offset;
    let sent = rustix::fs::sendfile(borrow(to), borrow(from), offset.as_mut(), size)?;
    Ok(sent as u64)
}

/// Whether a path may be used; `AT_EMPTY_PATH` asks for the directory's own descriptor. Linux before 5.8 knows no flags: there the
/// effective user is asked for as the real one, who is the same here, and the other flags are ENOSYS.
#[inline]
pub(super) fn access(from: RawFd, path: &CStr, mode: u32, flags: u32) -> Answer<u64> {
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
fn access_plain(from: RawFd, path: &CStr, mode: u32) -> Answer<u64> {
    // SAFETY: a NUL-terminated path.
    length(unsafe { libc::syscall(libc::SYS_faccessat, from, path.as_ptr(), mode) })
}

/// One more descriptor of the same description; it is closed when a program is started.
pub(crate) fn duplicate(file: RawFd) -> Answer<RawFd> {
    // SAFETY: no memory is involved.
    let copy =
        length(unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_DUPFD_CLOEXEC, 0_i64) })?;
    RawFd::try_from(copy).map_err(|_| Errno::MFILE)
}

pub(crate) fn fgetxattr(file: RawFd, name: &CStr, buffer: Scratch) -> Answer<u64> {
    let (address, len) = (buffer.address(), buffer.len());
    // SAFETY: a NUL-terminated name and a writable buffer of this length.
    length(unsafe { libc::syscall(libc::SYS_fgetxattr, file, name.as_ptr(), address, len) })
}

pub(crate) fn fsetxattr(file: RawFd, name: &CStr, value: &[u8], flags: u32) -> Answer<u64> {
    let (address, len) = (value.as_ptr(), value.len());
    // SAFETY: a NUL-terminated name and a readable value of this length.
    length(unsafe {
        libc::syscall(
            libc::SYS_fsetxattr,
            file,
            name.as_ptr(),
            address,
            len,
            flags,
        )
    })
}

pub(crate) fn fremovexattr(file: RawFd, name: &CStr) -> Answer<u64> {
    rustix::fs::fremovexattr(borrow(file), name).map(|()| 0)
}

pub(crate) fn flistxattr(file: RawFd, buffer: Scratch) -> Answer<u64> {
    let (address, len) = (buffer.address(), buffer.len());
    // SAFETY: a writable buffer of this length.
    length(unsafe { libc::syscall(libc::SYS_flistxattr, file, address, len) })
}

/// Close a descriptor that nobody uses any more.
pub(crate) fn close(file: RawFd) -> Answer {
    super::files::close(file)
}

#[cfg(test)]
pub(crate) fn borrowed(file: RawFd) -> std::os::fd::BorrowedFd<'static> {
    borrow(file)
}
