//! The eventfd that tells Python that something waits to be drained, or that a user has no more to do.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rings once until it is answered.
#[derive(Debug)]
pub(crate) struct Doorbell {
    file: OwnedFd,
    rung: AtomicBool,
}

impl Doorbell {
    pub(crate) fn new() -> Result<Doorbell, Errno> {
        Ok(Doorbell {
            file: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            rung: AtomicBool::new(false),
        })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Make the descriptor readable, unless it was made so already. To be called after the queue was filled.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // EAGAIN (a counter at its limit) still means readable.
            let written = rustix::io::write(&self.file, &1_u64.to_ne_bytes());
            debug_assert!(matches!(written, Ok(8) | Err(Errno::AGAIN)));
        }
    }

    /// To be called before a queue is emptied.
    pub(crate) fn answer(&self) {
        self.rung.store(false, Ordering::SeqCst);
    }
}
