//! The harness's own health: how long the users' threads waited for a CPU.

/// Run-queue delay of the users' threads, sampled over at most 64 of them.
#[derive(Default)]
pub(crate) struct RunQueue;

impl RunQueue {
    /// A thread of a user has started.
    pub(crate) fn enter(&self, _tid: i32) {}
    /// It is about to end (called by itself, so that its last value is not lost).
    pub(crate) fn leave(&self, _tid: i32) {}
    /// Delay of all users' threads since the begin, scaled up from the sample.
    pub(crate) fn delay_ns(&self) -> u64 {
        0
    }
}
