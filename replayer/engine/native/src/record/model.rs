//! What is recorded: samples, what they belong to, and the rows that they become. No behaviour lives here.

use std::sync::Arc;

/// One timed op, or one of the three times of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ns: u64,
    /// When it ended (of `clock::now_ns`).
    pub(crate) end_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) transaction: u16,
    /// An op's number, or `ops::TRANSACTION`, `SERVICE`, `LAG`.
    pub(crate) op: u8,
    /// As in `ops`.
    pub(crate) outcome: u8,
    pub(crate) expected: bool,
}

/// What samples belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) target: u16,
    pub(crate) round: u16,
    pub(crate) phase: Phase,
    /// False before the first, and from the end of one to the begin of the next.
    pub(crate) open: bool,
}

/// What was measured of one key.
#[derive(Clone, Debug)]
pub(crate) struct RowData {
    pub(crate) target: u16,
    pub(crate) round: u16,
    pub(crate) phase: Phase,
    pub(crate) transaction: Arc<str>,
    pub(crate) op: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) expected: bool,
    pub(crate) bytes: u64,
    /// Compressed V2 form.
    pub(crate) histogram: Arc<[u8]>,
}

/// `warm-up` or `measured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    WarmUp,
    Measured,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Measured => "measured",
        }
    }
}

/// One interval, ready for the Python door.
#[derive(Clone, Debug)]
pub(crate) struct IntervalData {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) users: u32,
    pub(crate) target: u16,
    pub(crate) round: u16,
    pub(crate) phase: Phase,
    pub(crate) rows: Vec<RowData>,
}
