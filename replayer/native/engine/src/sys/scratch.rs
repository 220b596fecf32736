//! Buffers that reads fill and nobody looks at, shared by the users so that 10,000 of them need little memory.
#![expect(
    unsafe_code,
    reason = "memory that only the kernel writes is mapped, not borrowed"
)]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// A buffer of a [`ScratchPool`], or its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scratch {
    address: usize,
    len: usize,
}

impl Scratch {
    pub(super) fn address(self) -> *mut u8 {
        self.address as *mut u8
    }

    pub(super) fn len(self) -> usize {
        self.len
    }

    pub(crate) fn bytes(self) -> u64 {
        self.len as u64
    }

    #[inline]
    pub(crate) fn holds(self, len: u64) -> bool {
        self.len as u64 >= len
    }

    #[inline]
    pub(crate) fn first(self, len: u64) -> Scratch {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(self.len);
        Scratch {
            address: self.address,
            len,
        }
    }
}

/// At most this many buffers (chosen: above it, two users that run at the same time rarely share one).
const BUFFERS: usize = 64;
/// Every buffer has at least so much (interactive users' reads are not known beforehand).
const LEAST: usize = 1 << 20;
/// At most so much address space.
const TOTAL: usize = 4 << 30;

/// One mapping, cut into buffers of equal size. Pages are only taken when they are written.
#[derive(Debug)]
pub(crate) struct ScratchPool {
    start: usize,
    each: usize,
    count: usize,
}

impl ScratchPool {
    /// Map buffers that hold `bytes` each.
    pub(crate) fn new(bytes: u64) -> Result<ScratchPool, Errno> {
        ScratchPool::of(bytes, BUFFERS)
    }

    fn of(bytes: u64, most: usize) -> Result<ScratchPool, Errno> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::NOMEM)?;
        let each = bytes.max(LEAST).next_multiple_of(4096);
        let count = (TOTAL / each).clamp(1, most);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                each * count,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?
        };
        Ok(ScratchPool {
            start: start as usize,
            each,
            count,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.each as u64
    }

    /// The buffer of a user. Others may have the same one: its contents mean nothing.
    pub(crate) fn of_user(&self, user: u32) -> Scratch {
        let index = user as usize % self.count;
        Scratch {
            address: self.start + index * self.each,
            len: self.each,
        }
    }
}

impl Drop for ScratchPool {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; every thread that was given a buffer holds the pool alive.
        let unmapped = unsafe { rustix::mm::munmap(self.start as *mut _, self.each * self.count) };
        debug_assert!(unmapped.is_ok());
    }
}

/// A buffer of one user alone: what was read can be looked at.
#[derive(Debug)]
pub(crate) struct OwnScratch(ScratchPool);

impl OwnScratch {
    pub(crate) fn new(bytes: u64) -> Result<OwnScratch, Errno> {
        ScratchPool::of(bytes, 1).map(OwnScratch)
    }

    /// To be given to calls of the user that it belongs to, while it lives.
    pub(crate) fn scratch(&self) -> Scratch {
        self.0.of_user(0)
    }

    /// Its first bytes, after a call has returned.
    pub(crate) fn seen(&self, len: u64) -> &[u8] {
        let buffer = self.scratch().first(len);
        // SAFETY: the mapping is readable, begins as zeros and lives as long as `self`; only the kernel writes to it, in calls
        // of the one thread that has `self`, and none is under way while it looks.
        unsafe { std::slice::from_raw_parts(buffer.address(), buffer.len()) }
    }
}
