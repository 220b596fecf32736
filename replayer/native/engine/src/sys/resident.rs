//! Which part of a file lies in this machine's page cache, and having it written out so that it can be dropped.
#![expect(
    unsafe_code,
    reason = "rustix has neither mincore nor sync_file_range; a mapping is made and never borrowed"
)]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes that are looked at in one go (chosen: 16,384 pages, a byte each).
const WINDOW: u64 = 64 << 20;
/// Of a page where nobody says; the smallest there is, so that there is an answer for each.
const PAGE: u64 = 4096;

/// How many of the first bytes of a file lie in the page cache. Where that cannot be told it is all of them.
pub(crate) fn cached_bytes(file: &OwnedFd, size: u64) -> u64 {
    let mut cached = 0;
    let mut offset = 0;
    while offset < size {
        let len = WINDOW.min(size - offset);
        cached += window(file, offset, len).unwrap_or(len);
        offset += len;
    }
    cached
}

fn window(file: &OwnedFd, offset: u64, len: u64) -> Result<u64, Errno> {
    let bytes = usize::try_from(len).map_err(|_| Errno::OVERFLOW)?;
    let mut pages = vec![0_u8; bytes.div_ceil(usize::try_from(PAGE).unwrap_or(1))];
    // SAFETY: a new private mapping at an address of the kernel's choice; unmapped below, never borrowed.
    let start = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            file,
            offset,
        )?
    };
    // SAFETY: the mapping made above, and a byte for each of its pages (of 4 KiB or more).
    let looked = unsafe { libc::mincore(start, bytes, pages.as_mut_ptr()) };
    // SAFETY: the mapping made above.
    unsafe { rustix::mm::munmap(start, bytes)? };
    if looked != 0 {
        return Err(Errno::INVAL);
    }
    // SAFETY: a number is asked for.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE);
    let there: u64 = pages.iter().map(|page| u64::from(page & 1)).sum();
    Ok((there * page).min(len))
}

/// Have a part of a file written out, and wait for that; where there is no such call, nothing.
pub(crate) fn write_out(file: &OwnedFd, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return;
    };
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: no memory is involved. What fails here fails in the fsync that follows, which is looked at.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, all) };
}
