//! Where an event stands in a trace.

/// An event's thread and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seat {
    pub(crate) row: u64,
    pub(crate) thread: u32,
}
