//! What a user records: a small batch of samples, the sums of the transaction under way, and time that is no part of what is measured.

use crate::clock::now_ns;
use crate::ops::{self, Op, outcome_of_errno};
use crate::record::event::{ErrorKind, Event, SlowSample};
use crate::record::shard::Shard;
use crate::record::{Recorder, Sample};
use crate::thread_state::{ABANDONED, ThreadState, UnderWay};
use rustix::io::Errno;
use std::sync::Arc;

/// Samples of one batch; chosen: 2 KiB a user.
const BATCH: usize = 64;
/// A batch this full is handed over when a transaction ends.
const HALF: usize = 32;
/// A batch older than this is handed over when a call or a transaction ends: calls count in the second in which they did.
const OLD_NS: u64 = 20_000_000;

/// A finished transaction, for whoever listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) transaction: u16,
    pub(crate) end_ns: u64,
    pub(crate) latency_ns: u64,
    pub(crate) bytes: u64,
    /// When its user was free again: what is not timed comes after its end.
    pub(crate) free_ns: u64,
}

/// The op that failed a transaction.
#[derive(Clone, Debug)]
pub(crate) struct FailedOp {
    pub(crate) op: Op,
    pub(crate) outcome: u8,
    pub(crate) path: Vec<u8>,
}

pub(crate) struct Journal {
    recorder: Arc<Recorder>,
    shard: Arc<Shard>,
    thread_state: Arc<ThreadState>,
    target: u16,
    engine_begin_ns: u64,
    /// Transactions come by a schedule: those that began in the warm-up belong to it, whenever they end.
    scheduled: bool,
    batch: Vec<Sample>,
    flushed_ns: u64,
    transaction: u16,
    /// When it began, whatever is taken off afterwards.
    began_ns: u64,
    intended_ns: u64,
    start_ns: u64,
    /// When the last call or think time of the transaction ended.
    latest_ns: u64,
    spent: Spent,
    bytes: u64,
    in_call_ns: u64,
    /// Outcome and duration of the last op, for interactive users.
    last: (u8, u64),
    pub(crate) finished: Option<Finished>,
    pub(crate) failed: Option<FailedOp>,
}

impl Journal {
    pub(crate) fn new(
        recorder: Arc<Recorder>,
        shard: Arc<Shard>,
        thread_state: Arc<ThreadState>,
        target: u16,
        engine_begin_ns: u64,
    ) -> Journal {
        Journal {
            recorder,
            shard,
            thread_state,
            target,
            engine_begin_ns,
            scheduled: false,
            batch: Vec::with_capacity(BATCH),
            flushed_ns: 0,
            transaction: 0,
            began_ns: 0,
            intended_ns: 0,
            start_ns: 0,
            latest_ns: 0,
            spent: Spent::default(),
            bytes: 0,
            in_call_ns: 0,
            last: (0, 0),
            finished: None,
            failed: None,
        }
    }

    /// For a user whose transactions come by a schedule, or not.
    pub(crate) fn on_schedule(self, scheduled: bool) -> Journal {
        Journal { scheduled, ..self }
    }

    pub(crate) fn transaction(&self) -> u16 {
        self.transaction
    }

    pub(crate) fn begin(&mut self, transaction: u16, intended_ns: u64, start_ns: u64) {
        if self.is_of_warm_up() {
            self.flush();
        }
        self.transaction = transaction;
        self.began_ns = start_ns;
        self.intended_ns = intended_ns.min(start_ns);
        self.start_ns = start_ns;
        self.latest_ns = start_ns;
        self.bytes = 0;
        self.failed = None;
        self.thread_state.begin_transaction(UnderWay {
            transaction,
            scheduled: self.scheduled,
            intended_ns: Some(self.intended_ns),
            began_ns: start_ns,
            aside_ns: 0,
        });
    }

    /// What follows is outside of any transaction, recorded under this name.
    pub(crate) fn begin_outside(&mut self, name: u16) {
        let now_ns = now_ns();
        self.begin(name, now_ns, now_ns);
        self.thread_state.end_transaction();
    }

    /// Time has passed without a call.
    pub(crate) fn pass(&mut self, now_ns: u64) {
        self.latest_ns = now_ns;
    }

    /// When the transaction ends if nothing more is done: what follows its last call is our own time.
    pub(crate) fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// So much time until now is no part of the transaction, nor of how long those that follow wait for their user.
    pub(crate) fn aside(&mut self, ns: u64) {
        self.spent.add(ns, self.latest_ns);
        self.thread_state.put_aside(ns);
    }

    /// How much was put aside in this transaction so far.
    pub(crate) fn aside_ns(&self) -> u64 {
        self.spent.all_ns()
    }

    /// What of it lies before the end of the last call.
    pub(crate) fn aside_before_latest_ns(&mut self) -> u64 {
        self.spent.before_ns(self.latest_ns)
    }

    /// When a transaction that starts would have been intended if its user had done nothing else than transactions.
    pub(crate) fn intended_without_aside(&mut self, intended_ns: u64, start_ns: u64) -> u64 {
        self.spent.begin(intended_ns, start_ns)
    }

    /// The transaction ends: what was no part of it is taken off, but for what came after its last call.
    pub(crate) fn take_off_aside(&mut self) {
        let ns = self.spent.end(self.latest_ns);
        self.intended_ns = self.intended_ns.saturating_add(ns);
        self.start_ns = self.start_ns.saturating_add(ns);
        self.latest_ns = self.latest_ns.max(self.start_ns);
    }

    /// Until now its user has done what is not timed.
    pub(crate) fn busy_until(&mut self, now_ns: u64) {
        self.spent.busy_until(now_ns);
    }

    /// When the transaction began, and whether it came by a schedule.
    pub(crate) fn began(&self) -> (u64, bool) {
        (self.began_ns, self.scheduled)
    }

    /// Bytes of the transaction so far, and when its last call ended.
    pub(crate) fn part(&self) -> (u64, u64) {
        (self.bytes, self.latest_ns)
    }

    /// Take what other threads did for this transaction.
    pub(crate) fn join(&mut self, bytes: u64, latest_ns: u64, failed: Option<FailedOp>) {
        self.bytes += bytes;
        self.latest_ns = self.latest_ns.max(latest_ns);
        self.failed = self.failed.take().or(failed);
    }

    /// Remember the first op that failed the transaction, without a line of its own.
    pub(crate) fn fail(&mut self, op: Op, outcome: u8, path: Vec<u8>) {
        self.failed.get_or_insert(FailedOp { op, outcome, path });
    }

    /// How long others were waited for: no call, so no time in one.
    pub(crate) fn record_wait(&mut self, op: Op, outcome: (u8, bool), ns: u64) {
        self.push(op as u8, outcome, 0, ns);
    }

    /// How late an event of a replay began.
    pub(crate) fn record_lag(&mut self, ns: u64) {
        self.push(ops::EVENT_LAG, (ops::OK, true), 0, ns);
    }

    /// It ends: its three times are recorded.
    pub(crate) fn end(&mut self, outcome: u8, end_ns: u64) {
        self.thread_state.end_transaction();
        self.latest_ns = end_ns;
        let latency_ns = end_ns.saturating_sub(self.intended_ns);
        let expected = outcome != ops::FAILED;
        let service_ns = end_ns.saturating_sub(self.start_ns);
        let lag_ns = self.start_ns - self.intended_ns;
        let (outcome, bytes) = ((outcome, expected), self.bytes);
        self.push(ops::TRANSACTION, outcome, bytes, latency_ns);
        self.push(ops::SERVICE, outcome, 0, service_ns);
        self.push(ops::LAG, outcome, 0, lag_ns);
        let transaction = self.transaction;
        self.finished = Some(Finished {
            transaction,
            end_ns,
            latency_ns,
            bytes,
            free_ns: end_ns.max(self.spent.free_ns()),
        });
        if self.batch.len() >= HALF {
            self.hand_over(end_ns);
        } else {
            self.hand_over_old(end_ns);
        }
    }

    #[inline]
    pub(crate) fn record(
        &mut self,
        op: Op,
        outcome: (u8, bool),
        bytes: u64,
        (ns, end_ns): (u64, u64),
    ) {
        self.latest_ns = end_ns;
        self.bytes += bytes;
        self.in_call_ns += ns;
        self.last = (outcome.0, self.last.1 + ns);
        self.push(op as u8, outcome, bytes, ns);
        self.hand_over_old(end_ns);
    }

    #[inline]
    fn hand_over_old(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.flushed_ns) >= OLD_NS {
            self.hand_over(now_ns);
        }
    }

    #[cold]
    fn hand_over(&mut self, now_ns: u64) {
        self.flush();
        self.flushed_ns = now_ns;
    }

    #[inline]
    fn push(&mut self, op: u8, (outcome, expected): (u8, bool), bytes: u64, ns: u64) {
        if self.batch.len() == BATCH {
            self.flush();
        }
        let transaction = self.transaction;
        self.batch.push(Sample {
            ns,
            end_ns: self.latest_ns,
            bytes,
            transaction,
            op,
            outcome,
            expected,
        });
    }

    /// Whether the transaction began in a warm-up that has ended meanwhile: it would be one too many among those of the measured time.
    fn is_of_warm_up(&self) -> bool {
        self.scheduled && self.recorder.began_before_measured(self.began_ns)
    }

    /// Hand the batch over (a user that was given up on hands over nothing).
    pub(crate) fn flush(&mut self) {
        self.thread_state
            .add_in_call(std::mem::take(&mut self.in_call_ns));
        if self.thread_state.flags() & ABANDONED == 0 {
            let (recorder, began) = (&*self.recorder, self.began());
            let keep = |batch: &mut Vec<Sample>| leave_out_warm_up(recorder, began, batch);
            self.shard.flush_kept(&mut self.batch, keep);
        }
        self.batch.clear();
    }

    /// Outcome of the last op, and the time of all since the last question.
    pub(crate) fn take_last(&mut self) -> (u8, u64) {
        std::mem::take(&mut self.last)
    }

    /// Log an unexpected outcome while the recorder wants it, and remember it for the transaction.
    pub(crate) fn report_error(
        &mut self,
        op: Op,
        outcome: u8,
        end_ns: u64,
        path: impl FnOnce() -> Vec<u8>,
    ) {
        let path = path();
        let kind = ErrorKind {
            target: self.target,
            transaction: self.transaction,
            op: op as u8,
            outcome,
        };
        if self.recorder.error_wanted(kind) && self.thread_state.flags() & ABANDONED == 0 {
            self.recorder.log(&Event::Error {
                t_ns: end_ns.saturating_sub(self.engine_begin_ns),
                user: self.thread_state.user,
                kind,
                path: path.clone(),
            });
        }
        self.failed = Some(FailedOp { op, outcome, path });
    }

    /// The run's folder, or what is needed to work in it, was refused since a time; the outcome.
    #[cold]
    pub(crate) fn record_refusal(&mut self, op: Op, errno: Errno, start_ns: u64) -> u8 {
        let end_ns = now_ns();
        let outcome = outcome_of_errno(errno.raw_os_error());
        let ns = end_ns.saturating_sub(start_ns);
        self.record(op, (outcome, false), 0, (ns, end_ns));
        self.report_error(op, outcome, end_ns, || b".".to_vec());
        outcome
    }

    /// Hand a slow sample over, if it is slow.
    pub(crate) fn report_slow(
        &self,
        op: Op,
        outcome: u8,
        (ns, end_ns): (u64, u64),
        path: impl FnOnce() -> Vec<u8>,
    ) {
        let slow = self.recorder.slow(self.thread_state.home);
        if ns <= slow.floor(self.transaction, op as u8) {
            return;
        }
        slow.keep(SlowSample {
            t_ns: end_ns.saturating_sub(self.engine_begin_ns),
            user: self.thread_state.user,
            target: self.target,
            transaction: self.transaction,
            op: op as u8,
            outcome,
            service_ns: ns,
            path: path(),
        });
    }
}

/// What ended in the warm-up, and was not handed over by then, is not the measured phase's; nor is a transaction that came by a
/// schedule and began there.
fn leave_out_warm_up(recorder: &Recorder, began: (u64, bool), batch: &mut Vec<Sample>) {
    let (began_ns, scheduled) = began;
    if scheduled && recorder.began_before_measured(began_ns) {
        batch.clear();
    }
    let kept = |sample: &Sample| !recorder.began_before_measured(sample.end_ns);
    if !batch.first().is_none_or(kept) {
        batch.retain(kept);
    }
}

/// Time of verifying, and of laying out and removing files of a replay, in a transaction; what of it lies before its last call, and what later transactions were kept waiting by.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "all of them are times")]
pub(super) struct Spent {
    /// Before the last call that is known of.
    before_ns: u64,
    /// Since then.
    after_ns: u64,
    /// The end of that call.
    mark_ns: u64,
    /// All since its user last had nothing to do.
    debt_ns: u64,
    /// When its user was free again.
    free_ns: u64,
}

impl Spent {
    /// Some was spent, when the last call of the transaction had ended at a time.
    pub(super) fn add(&mut self, ns: u64, latest_ns: u64) {
        self.turn(latest_ns);
        self.after_ns += ns;
        self.debt_ns = self.debt_ns.saturating_add(ns);
    }

    fn turn(&mut self, latest_ns: u64) {
        if latest_ns > self.mark_ns {
            self.before_ns += std::mem::take(&mut self.after_ns);
            self.mark_ns = latest_ns;
        }
    }

    /// All of this transaction so far.
    pub(super) fn all_ns(&self) -> u64 {
        self.before_ns + self.after_ns
    }

    /// What of it lies before the end of the last call.
    pub(super) fn before_ns(&mut self, latest_ns: u64) -> u64 {
        self.turn(latest_ns);
        self.before_ns
    }

    /// A transaction begins: when it would have been intended to if its user had not been kept.
    pub(super) fn begin(&mut self, intended_ns: u64, start_ns: u64) -> u64 {
        self.before_ns = 0;
        self.after_ns = 0;
        self.mark_ns = start_ns;
        if intended_ns >= self.free_ns {
            self.debt_ns = 0;
        }
        let lag_ns = start_ns.saturating_sub(intended_ns);
        intended_ns + self.debt_ns.min(lag_ns)
    }

    /// It ends: how much was spent between its start and the end of its last call.
    pub(super) fn end(&mut self, latest_ns: u64) -> u64 {
        self.turn(latest_ns);
        std::mem::take(&mut self.before_ns)
    }

    /// Until now its user has done what is not timed.
    pub(super) fn busy_until(&mut self, now_ns: u64) {
        self.free_ns = now_ns;
    }

    pub(super) fn free_ns(&self) -> u64 {
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;

    #[test]
    fn time_after_the_last_call_is_not_taken_off_the_latency() {
        let mut spent = Spent::default();
        assert_eq!(spent.begin(1000, 1000), 1000);
        spent.add(50, 1100);
        spent.add(5, 1100);
        spent.add(7, 1300);
        assert_eq!((spent.all_ns(), spent.before_ns(1300)), (62, 55));
        assert_eq!(spent.end(1300), 55);
        spent.busy_until(1400);
        assert_eq!(spent.begin(1400, 1400), 1400);
        spent.add(30, 1500);
        assert_eq!(spent.end(1600), 30);
        spent.busy_until(1650);
        // Late by 100, of which 30 and 20 were spent here.
        spent.add(20, 1600);
        assert_eq!(spent.begin(1600, 1700), 1650);
    }
}
