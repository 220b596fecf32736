//! Calls that move the data of open files, map them or list directories: the same in every confinement.
#![expect(
    unsafe_code,
    reason = "rustix lacks shared and repeated buffers, and calls on positions of two files"
)]

use super::files::{borrow, fstat, last_errno, length, signed};
use super::operands::{Answer, Range};
use super::scratch::Scratch;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::RawFd;
use std::ptr;

/// Buffers of one vectored call (`UIO_MAXIOV`).
const VECTORS: usize = 1024;

/// A file and a position in it (none: the description's own).
pub(crate) type Side = (RawFd, Option<u64>);

/// A position in a file (none: the description's own), and how many bytes.
pub(crate) type Span = (Option<u64>, u64);

fn size_of_call(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[inline]
pub(crate) fn read(file: RawFd, buffer: Scratch) -> Answer {
    // SAFETY: the scratch buffer is writable memory of this length for as long as the engine lives.
    length(unsafe { libc::syscall(libc::SYS_read, file, buffer.address(), buffer.len()) })
}

#[inline]
pub(crate) fn pread(file: RawFd, buffer: Scratch, offset: u64) -> Answer {
    let (offset, address, len) = (signed(offset)?, buffer.address(), buffer.len());
    // SAFETY: as for read.
    length(unsafe { libc::syscall(libc::SYS_pread64, file, address, len, offset) })
}

#[inline]
pub(crate) fn write(file: RawFd, bytes: &[u8]) -> Answer {
    rustix::io::write(borrow(file), bytes).map(|written| written as u64)
}

#[inline]
pub(crate) fn pwrite(file: RawFd, bytes: &[u8], offset: u64) -> Answer {
    rustix::io::pwrite(borrow(file), bytes, offset).map(|written| written as u64)
}

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

/// The numbers of a vectored call: without a position, with one, with flags.
type Calls = [libc::c_long; 3];

fn vectored(calls: Calls, file: RawFd, buffer: (*mut u8, usize), span: Span, flags: u32) -> Answer {
    let [plain, positioned, flagged] = calls;
    let (offset, size) = span;
    // As preadv takes it on x86-64, where the low half holds all, and preadv2.
    let position = offset.map_or(Ok(-1), signed)?;
    let mut vectors = [NO_VECTOR; VECTORS];
    let count = repeated(buffer, size, &mut vectors);
    let first = vectors.as_ptr();
    // SAFETY: each vector is the buffer or its beginning, which lives as long as the call and is writable where the kernel writes.
    length(unsafe {
        if flags != 0 {
            libc::syscall(flagged, file, first, count, position, 0_i64, flags)
        } else if offset.is_some() {
            libc::syscall(positioned, file, first, count, position, 0)
        } else {
            libc::syscall(plain, file, first, count)
        }
    })
}

/// Read into a buffer, over and over where it is smaller. Without flags it is readv or preadv.
#[inline(never)]
pub(crate) fn readv(file: RawFd, buffer: Scratch, span: Span, flags: u32) -> Answer {
    let calls = [libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2];
    vectored(calls, file, (buffer.address(), buffer.len()), span, flags)
}

/// Write bytes, over and over where they are fewer. Without flags it is writev or pwritev.
#[inline(never)]
pub(crate) fn writev(file: RawFd, bytes: &[u8], span: Span, flags: u32) -> Answer {
    let calls = [libc::SYS_writev, libc::SYS_pwritev, libc::SYS_pwritev2];
    let buffer = (bytes.as_ptr().cast_mut(), bytes.len());
    vectored(calls, file, buffer, span, flags)
}

pub(crate) fn getdents(file: RawFd, buffer: Scratch) -> Answer {
    // SAFETY: as for read.
    length(unsafe { libc::syscall(libc::SYS_getdents64, file, buffer.address(), buffer.len()) })
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
    pub(crate) fn fill(&mut self, file: RawFd, size: u64) -> Answer {
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

pub(crate) fn copy_range(
    (from, mut from_offset): Side,
    (to, mut to_offset): Side,
    size: u64,
) -> Answer {
    let copied = rustix::fs::copy_file_range(
        borrow(from),
        from_offset.as_mut(),
        borrow(to),
        to_offset.as_mut(),
        size_of_call(size),
    )?;
    Ok(copied as u64)
}

/// Make `to` share the data of `from`.
pub(crate) fn clone_file(from: RawFd, to: RawFd) -> Answer {
    rustix::fs::ioctl_ficlone(borrow(to), borrow(from)).map(|()| 0)
}

pub(crate) fn sendfile((from, mut offset): Side, to: RawFd, size: u64) -> Answer {
    let size = size_of_call(size);
    let sent = rustix::fs::sendfile(borrow(to), borrow(from), offset.as_mut(), size)?;
    Ok(sent as u64)
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
pub(crate) fn map(file: RawFd, (offset, size): Range, wish: Wish) -> Answer<Mapping> {
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

/// Bytes between two pages that are read. Larger pages are read more than once, which is harmless.
const PAGE: usize = 4096;

/// Map the whole file, read one byte of every page, unmap.
pub(crate) fn mmap_read(file: RawFd) -> Answer {
    mmap_part(file, (0, fstat(file)?))
}

/// The same of a part of the file. Behind its end there is nothing to read.
pub(crate) fn mmap_read_range(file: RawFd, (offset, size): Range) -> Answer {
    match mmap_part(file, (offset, size)) {
        Err(Errno::FAULT) => Ok(fstat(file)?.saturating_sub(offset).min(size)),
        answer => answer,
    }
}

fn mmap_part(file: RawFd, (offset, size): Range) -> Answer {
    if size == 0 {
        return Ok(0);
    }
    let within = offset % PAGE as u64;
    let len = size.checked_add(within).ok_or(Errno::OVERFLOW)?;
    let len = usize::try_from(len).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: a new private mapping at an address of the kernel's choice; unmapped below, never borrowed.
    let start = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            borrow(file),
            offset - within,
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
fn touch_pages(start: usize, len: usize) -> Answer<()> {
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
