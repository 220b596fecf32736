//! What is recorded: samples, what they belong to, and the rows that they become. No behaviour lives here.

use crate::histogram::Histogram;
use std::borrow::Cow;
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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) target: u16,
    pub(crate) round: u16,
    pub(crate) phase: Phase,
    /// The phase that follows the warm-up.
    pub(crate) then: Phase,
    /// False before the first, and from the end of one to the begin of the next.
    pub(crate) open: bool,
}

/// What was measured of one key.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct RowData {
    pub key: LogKey,
    pub bytes: u64,
    /// Compressed V2 form.
    pub histogram: Arc<[u8]>,
}

/// What one histogram of a log is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct LogKey {
    pub target: u16,
    pub round: u16,
    pub phase: Phase,
    pub transaction: Arc<str>,
    pub op: Cow<'static, str>,
    pub outcome: Cow<'static, str>,
    pub expected: bool,
}

/// What was measured of one key in one interval, as files have it.
#[derive(Debug)]
pub struct Line<'a> {
    /// What it is of.
    pub key: &'a LogKey,
    /// Bytes moved.
    pub bytes: u64,
    /// The times.
    pub times: &'a Histogram,
    /// The same, in their compressed V2 form.
    pub packed: &'a [u8],
}

/// `warm-up`, `measured` or `alone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Before the measured time.
    WarmUp,
    /// The measured time.
    #[default]
    Measured,
    /// Time in which one of two targets was at work that are measured at the same time: it counts in no figure of them.
    Alone,
}

impl Phase {
    /// Its name in run folders.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Measured => "measured",
            Self::Alone => "alone",
        }
    }

    /// The phase of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::WarmUp, Self::Measured, Self::Alone]
            .into_iter()
            .find(|phase| phase.name() == name)
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
