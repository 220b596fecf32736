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
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct RowData {
    pub target: u16,
    pub round: u16,
    pub phase: Phase,
    pub transaction: Arc<str>,
    pub op: &'static str,
    pub outcome: &'static str,
    pub expected: bool,
    pub bytes: u64,
    /// Compressed V2 form.
    pub histogram: Arc<[u8]>,
}

/// `warm-up` or `measured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the measured time.
    WarmUp,
    /// The measured time.
    Measured,
}

impl Phase {
    /// Its name in run folders.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Measured => "measured",
        }
    }
}

/// What was recorded in one interval.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct IntervalData {
    pub start_ns: u64,
    pub end_ns: u64,
    pub users: u32,
    pub target: u16,
    pub round: u16,
    pub phase: Phase,
    pub rows: Vec<RowData>,
}
