//! What the kernel answers, and what it is asked for that takes several words.

use crate::program::LockKind;
use rustix::io::Errno;

pub(crate) type Answer<T = ()> = Result<T, Errno>;

/// A lock of a byte range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockRange {
    pub(crate) kind: LockKind,
    pub(crate) wait: bool,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}
