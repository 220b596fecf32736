//! Calls on open files: the same in every confinement.
#![expect(
    unsafe_code,
    reason = "descriptors of plans live in slots, and rustix lacks range locks and shared read buffers"
)]

use super::answer::{Answer, LockRange};
use super::scratch::Scratch;
use crate::program::LockKind;
use crate::program::Owner;
use rustix::fs::{
    FallocateFlags, FlockOperation, Gid, Mode, SeekFrom, Timespec, Timestamps, UTIME_NOW, Uid,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{BorrowedFd, RawFd};

/// Borrow the descriptor of a slot for one call.
#[inline]
pub(super) fn borrow(file: RawFd) -> BorrowedFd<'static> {
    // SAFETY: slots hold descriptors that `open` returned and that only this user's thread closes, and each
    // borrow ends with its call. (The kernel itself answers EBADF to any other number.)
    unsafe { BorrowedFd::borrow_raw(file) }
}

/// What a raw call returned: a length, or −1 and errno.
#[inline]
pub(super) fn length(returned: libc::c_long) -> Answer<u64> {
    u64::try_from(returned).map_err(|_| last_errno())
}

#[cold]
fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// An offset or a size as the kernel takes it.
#[inline]
fn signed(number: u64) -> Answer<i64> {
    i64::try_from(number).map_err(|_| Errno::INVAL)
}

fn size_of_call(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

pub(super) fn close(file: RawFd) -> Answer {
    // SAFETY: the slot gives its descriptor up before this call, so nobody uses it afterwards.
    length(unsafe { libc::syscall(libc::SYS_close, file) }).map(|_| ())
}

pub(super) fn read(file: RawFd, buffer: Scratch) -> Answer<u64> {
    // SAFETY: the scratch buffer is writable memory of this length for as long as the engine lives.
    length(unsafe { libc::syscall(libc::SYS_read, file, buffer.address(), buffer.len()) })
}

pub(super) fn pread(file: RawFd, buffer: Scratch, offset: u64) -> Answer<u64> {
    let offset = signed(offset)?;
    // SAFETY: as for read.
    length(unsafe {
        libc::syscall(
            libc::SYS_pread64,
            file,
            buffer.address(),
            buffer.len(),
            offset,
        )
    })
}

pub(super) fn write(file: RawFd, bytes: &[u8]) -> Answer<u64> {
    rustix::io::write(borrow(file), bytes).map(|written| written as u64)
}

pub(super) fn pwrite(file: RawFd, bytes: &[u8], offset: u64) -> Answer<u64> {
    rustix::io::pwrite(borrow(file), bytes, offset).map(|written| written as u64)
}

pub(super) fn lseek(file: RawFd, offset: i64, whence: u32) -> Answer<u64> {
    let place = match whence {
        0 => SeekFrom::Start(offset.cast_unsigned()),
        1 => SeekFrom::Current(offset),
        _ => SeekFrom::End(offset),
    };
    rustix::fs::seek(borrow(file), place)
}

pub(super) fn fsync(file: RawFd) -> Answer {
    rustix::fs::fsync(borrow(file))
}

pub(super) fn fdatasync(file: RawFd) -> Answer {
    rustix::fs::fdatasync(borrow(file))
}

pub(super) fn fstat(file: RawFd) -> Answer<u64> {
    rustix::fs::fstat(borrow(file)).map(|facts| u64::try_from(facts.st_size).unwrap_or(0))
}

pub(super) fn ftruncate(file: RawFd, size: u64) -> Answer {
    rustix::fs::ftruncate(borrow(file), size)
}

pub(super) fn fallocate(file: RawFd, mode: u32, (offset, size): (u64, u64)) -> Answer {
    rustix::fs::fallocate(
        borrow(file),
        FallocateFlags::from_bits_retain(mode),
        offset,
        size,
    )
}

pub(super) fn fchmod(file: RawFd, mode: u32) -> Answer {
    rustix::fs::fchmod(borrow(file), Mode::from_raw_mode(mode))
}

pub(super) fn fchown(file: RawFd, owner: Owner) -> Answer {
    rustix::fs::fchown(
        borrow(file),
        owner.uid.map(Uid::from_raw),
        owner.gid.map(Gid::from_raw),
    )
}

/// Access and modification time: the same, or now.
pub(super) fn times(mtime_ns: Option<u64>) -> Timestamps {
    let time = match mtime_ns {
        None => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        },
        Some(time_ns) => Timespec {
            tv_sec: i64::try_from(time_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(time_ns % 1_000_000_000).unwrap_or(0),
        },
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

pub(super) fn futimens(file: RawFd, mtime_ns: Option<u64>) -> Answer {
    rustix::fs::futimens(borrow(file), &times(mtime_ns))
}

pub(super) fn flock(file: RawFd, kind: LockKind, wait: bool) -> Answer {
    let operation = match (kind, wait) {
        (LockKind::Shared, true) => FlockOperation::LockShared,
        (LockKind::Shared, false) => FlockOperation::NonBlockingLockShared,
        (LockKind::Exclusive, true) => FlockOperation::LockExclusive,
        (LockKind::Exclusive, false) => FlockOperation::NonBlockingLockExclusive,
        (LockKind::Unlock, _) => FlockOperation::Unlock,
    };
    rustix::fs::flock(borrow(file), operation)
}

/// Open file description locks: the users are threads of one process, whose own locks would not keep them apart.
pub(super) fn fcntl_lock(file: RawFd, range: LockRange) -> Answer {
    let kind = match range.kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
        LockKind::Unlock => libc::F_UNLCK,
    };
    let lock = libc::flock {
        l_type: libc::c_short::try_from(kind).map_err(|_| Errno::INVAL)?,
        l_whence: 0,
        l_start: signed(range.offset)?,
        l_len: signed(range.size)?,
        l_pid: 0,
    };
    let command = if range.wait {
        libc::F_OFD_SETLKW
    } else {
        libc::F_OFD_SETLK
    };
    // SAFETY: `lock` is a whole struct flock that outlives the call.
    length(unsafe { libc::syscall(libc::SYS_fcntl, file, command, &raw const lock) }).map(|_| ())
}

pub(super) fn getdents(file: RawFd, buffer: Scratch) -> Answer<u64> {
    // SAFETY: as for read.
    length(unsafe { libc::syscall(libc::SYS_getdents64, file, buffer.address(), buffer.len()) })
}

pub(super) fn copy_file_range(from: RawFd, to: RawFd, size: u64) -> Answer<u64> {
    let copied =
        rustix::fs::copy_file_range(borrow(from), None, borrow(to), None, size_of_call(size))?;
    Ok(copied as u64)
}

pub(super) fn sendfile(from: RawFd, sink: RawFd, size: u64) -> Answer<u64> {
    let sent = rustix::fs::sendfile(borrow(sink), borrow(from), None, size_of_call(size))?;
    Ok(sent as u64)
}

/// Bytes between two pages that are read. Larger pages are read more than once, which is harmless.
const PAGE: usize = 4096;

/// Map the whole file, read one byte of every page, unmap.
pub(super) fn mmap_read(file: RawFd) -> Answer<u64> {
    let size = fstat(file)?;
    if size == 0 {
        return Ok(0);
    }
    let len = usize::try_from(size).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: a new private mapping at an address of the kernel's choice; unmapped below, never borrowed.
    let start = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            borrow(file),
            0,
        )?
    };
    let touched = touch_pages(start as usize, len);
    // SAFETY: the mapping made above.
    unsafe { rustix::mm::munmap(start, len)? };
    touched.map(|()| size)
}

/// Read one byte of every page through `process_vm_readv` on ourselves: a file that shrinks meanwhile is EFAULT, where a
/// plain load would be a SIGBUS that ends the process.
#[inline(never)]
fn touch_pages(start: usize, len: usize) -> Answer {
    const BATCH: usize = 128;
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut sink = [0_u8; BATCH];
    let mut done = 0;
    while done < len {
        let mut count = 0;
        let pages: [libc::iovec; BATCH] = std::array::from_fn(|page| {
            let offset = done + page * PAGE;
            let inside = offset < len;
            count += usize::from(inside);
            libc::iovec {
                iov_base: (start + offset) as *mut libc::c_void,
                iov_len: usize::from(inside),
            }
        });
        let local = libc::iovec {
            iov_base: sink.as_mut_ptr().cast(),
            iov_len: count,
        };
        // SAFETY: `local` is a writable buffer of `count` bytes; the remote addresses are checked by the kernel.
        let read = unsafe {
            libc::process_vm_readv(pid, &raw const local, 1, pages.as_ptr(), count as u64, 0)
        };
        if usize::try_from(read).map_err(|_| last_errno())? < count {
            return Err(Errno::FAULT);
        }
        done += BATCH * PAGE;
    }
    Ok(())
}
