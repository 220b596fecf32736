//! What an event waits for beside what is done to its files.

use crate::seat::Seat;

/// Why an event waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// What the first thread of a log did while it was the only one may have been for every other.
    Start,
    Spawn,
    Wait,
    /// Something was read from a pipe that was written after it.
    Pipe,
    Descriptor,
    Name,
    Directory,
    Data,
    Lock,
}

impl Reason {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Spawn => "spawn",
            Self::Wait => "wait",
            Self::Pipe => "pipe",
            Self::Descriptor => "descriptor",
            Self::Name => "name",
            Self::Directory => "directory",
            Self::Data => "data",
            Self::Lock => "lock",
        }
    }
}

/// An event that let a thread come into being, or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) seat: Seat,
    pub(crate) reason: Reason,
    /// When it ended, on the log's clock.
    pub(crate) end_ns: Option<i64>,
    /// Calls of the whole log that had ended then.
    pub(crate) calls: u64,
}
