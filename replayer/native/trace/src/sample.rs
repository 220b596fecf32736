//! What of a log's times comes before an event.

/// The time between two events of a thread, as recorded, without what it waited for other threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sample {
    /// None where the log has no clock, or nothing came before.
    pub(crate) gap_ns: Option<i64>,
    /// Traced calls in between, of this thread that are no events, and of others: the tracer serves one at a time.
    pub(crate) others: u32,
    /// The same since the last event ended that the thread was kept waiting by, if it was.
    pub(crate) after: Option<After>,
}

/// The time between the end of the event that a thread was kept waiting by and the event that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct After {
    /// What it was kept waiting by.
    pub(crate) row: u64,
    pub(crate) gap_ns: i64,
    pub(crate) others: u32,
}
