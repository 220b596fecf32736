//! What an event waits for beside what is done to its files.

use crate::order::Reason;
use crate::seat::Seat;

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
