//! The recording: what the users' threads hand over, and the thread that cuts, counts and writes it.
//!
//! Samples go from a user's batch into a shard; the recorder's thread merges the shards into intervals
//! and totals, writes them into the record directory and queues them for the Python door.

use crate::health::RunQueue;
use crate::record_event::{Event, SlowSample};
use crate::record_shard::Shard;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// One timed op, or one of the three times of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ns: u64,
    pub(crate) bytes: u64,
    pub(crate) transaction: u16,
    /// An index into the ops; then `Recorder::TRANSACTION`, `SERVICE` and `LAG` counted from their number.
    pub(crate) op: u8,
    /// 0 is ok; an errno below 200; then `outcome::SHORT`, `FAILED`, `CANCELLED`.
    pub(crate) outcome: u8,
    pub(crate) expected: bool,
}

/// What a recorder needs to know and to call.
pub(crate) struct RecorderConfig {
    /// Names of the ops, as in `OPS`.
    pub(crate) ops: &'static [&'static str],
    /// Names of the plan's transactions, in order.
    pub(crate) transactions: Vec<String>,
    pub(crate) interval_ns: u64,
    /// The record directory, opened.
    pub(crate) directory: Option<OwnedFd>,
    /// Wall-clock time of the engine's begin.
    pub(crate) begin_epoch_ns: u64,
    /// Monotonic nanoseconds since the engine's begin.
    pub(crate) clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Users running now.
    pub(crate) users: Box<dyn Fn() -> u32 + Send + Sync>,
    /// Called (from the recorder's thread or a boundary's caller) when an interval was queued.
    pub(crate) doorbell: Box<dyn Fn() + Send + Sync>,
    /// Sampled once an interval.
    pub(crate) run_queue: Arc<RunQueue>,
}

/// `warm-up` or `measured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    WarmUp,
    Measured,
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

/// The recorder and its thread.
pub(crate) struct Recorder {
    _config: RecorderConfig,
}

impl Recorder {
    /// Start the thread; opens (creates, appends to) the files of the record directory.
    pub(crate) fn start(config: RecorderConfig) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { _config: config }))
    }
    /// The shard of a user; its samples belong to the target of the open segment.
    pub(crate) fn shard(&self, _user: u32) -> Arc<Shard> {
        Arc::default()
    }
    /// The shard of an interactive user: its samples belong to its own target.
    pub(crate) fn shard_on(&self, _user: u32, _target: u16) -> Arc<Shard> {
        Arc::default()
    }
    pub(crate) fn begin_segment(&self, _target: u16, _round: u16, _warm_up_ns: u64) {}
    pub(crate) fn measure(&self) {}
    pub(crate) fn end_segment(&self) {}
    pub(crate) fn drain_intervals(&self) -> Vec<IntervalData> {
        Vec::new()
    }
    pub(crate) fn totals(&self) -> Vec<RowData> {
        Vec::new()
    }
    /// The number of a transaction by name; a new name gets a new one, up to 256 beside the plan's.
    pub(crate) fn transaction_id(&self, _name: &str) -> Option<u16> {
        None
    }
    /// Whether an error of this kind would still be written (the first 20 are): ask before composing one.
    pub(crate) fn error_wanted(&self, _transaction: u16, _op: u8, _outcome: u8) -> bool {
        true
    }
    pub(crate) fn log(&self, _event: Event) {}
    /// A measured sample above this enters the ten slowest of its (target, transaction, op).
    pub(crate) fn slow_floor(&self, _transaction: u16, _op: u8) -> u64 {
        u64::MAX
    }
    pub(crate) fn slow(&self, _sample: SlowSample) {}
    /// The first write that failed, if one did: "histograms.hlog" and its errno.
    pub(crate) fn write_error(&self) -> Option<(&'static str, i32)> {
        None
    }
    /// Cut and write what is left, end the thread. Idempotent.
    pub(crate) fn close(&self) {}
}
