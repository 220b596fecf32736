//! Runs the steps of a plan for one user: binds, draws, calls, records. Knows nothing of threads, segments or pace.
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

mod bindings;
mod calls;
mod data;
mod journal;
mod looks;
mod steps;
#[cfg(test)]
mod tests;
mod verified;

pub(crate) use journal::{FailedOp, Finished, Journal};
pub(crate) use steps::Shift;

use crate::clock::{self, now_ns};
use crate::error::Error;
use crate::health::RunQueue;
use crate::ops::{self, KINDS, Op};
use crate::program::{Expect, Program, SLOTS};
use crate::record::Recorder;
use crate::record::event::Event;
use crate::record::shard::Shard;
use crate::replay::play::{LaneThreads, Ledger};
use crate::rng::Stream;
use crate::segment::Segment;
use crate::signals::Signals;
use crate::sys::{Answer, Kernel, Scratch, ScratchPool, files, open_sink};
use crate::thread_state::{ALL_SLOTS, Place, ThreadState};
use crate::verify::{Verification, Verifier};
use crate::written::Written;
use bindings::{Root, Slot};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What all users of an engine share while they run.
pub(crate) struct Setting {
    pub(crate) program: Arc<Program>,
    pub(crate) written: Written,
    pub(crate) scratch: ScratchPool,
    /// Where `sendfile` sends to.
    pub(crate) sink: OwnedFd,
    pub(crate) recorder: Arc<Recorder>,
    /// Monotonic time of the engine's begin.
    pub(crate) begin_ns: u64,
    /// Where the users' threads wait for a CPU.
    pub(crate) run_queue: RunQueue,
    /// What replays found.
    pub(crate) ledger: Ledger,
    /// What users tell each other.
    pub(crate) signals: Signals,
    /// A directory for the event logs of replays.
    pub(crate) event_log: Option<OwnedFd>,
    /// What is remembered of writes; `None`: nothing is verified.
    pub(crate) verification: Option<Arc<Verification>>,
}

impl Setting {
    /// With reads of at most so many bytes, no event logs, and nothing verified.
    pub(crate) fn new(
        program: Arc<Program>,
        recorder: Arc<Recorder>,
        begin_ns: u64,
        read_bytes: u64,
    ) -> Result<Setting, Error> {
        Ok(Setting {
            written: Written::of(&program),
            scratch: ScratchPool::new(read_bytes)
                .map_err(|errno| Error::os(errno, "read buffers"))?,
            sink: open_sink().map_err(|errno| Error::os(errno, "/dev/null"))?,
            program,
            recorder,
            begin_ns,
            run_queue: RunQueue::default(),
            ledger: Ledger::default(),
            signals: Signals::default(),
            event_log: None,
            verification: None,
        })
    }

    /// For a user on a target.
    pub(crate) fn journal(
        &self,
        shard: Arc<Shard>,
        thread_state: &Arc<ThreadState>,
        target: u16,
    ) -> Journal {
        let recorder = Arc::clone(&self.recorder);
        Journal::new(
            recorder,
            shard,
            Arc::clone(thread_state),
            target,
            self.begin_ns,
        )
    }

    /// Have a warning about a user's work in the log of events.
    pub(crate) fn warn(&self, user: u32, message: String) {
        let t_ns = now_ns().saturating_sub(self.begin_ns);
        let event = Event::Broken {
            t_ns,
            user,
            message,
        };
        self.recorder.log(&event);
    }
}

/// Why the rest of a transaction is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// An op had an unexpected outcome.
    Failed,
    /// It was broken off from outside.
    Cut,
    /// What is looked for is not there yet.
    Unmet,
}

/// The value that an op returned when its outcome was `ok`; `None` for another one that was expected.
type Done = Result<Option<u64>, Halt>;

/// What a call returned and how long it took.
#[derive(Clone, Copy, Debug)]
struct Measured {
    answer: Answer,
    ns: u64,
    end_ns: u64,
}

impl Measured {
    fn outcome(&self) -> u8 {
        match self.answer {
            Ok(_) => ops::OK,
            Err(errno) => ops::outcome_of_errno(errno.raw_os_error()),
        }
    }

    /// The outcome of a call that moves data: one that moved none has found the end. Calls that are not real find it at once.
    fn outcome_of_data<K: Kernel>(&self) -> u8 {
        match self.answer {
            Ok(0) if K::REAL => ops::END,
            _ => self.outcome(),
        }
    }

    fn value(&self) -> u64 {
        self.answer.unwrap_or(0)
    }
}

/// Which op, where, and how it may end.
#[derive(Clone, Copy, Debug)]
struct Act<'e> {
    op: Op,
    place: Place,
    expect: &'e Expect,
}

pub(crate) struct Interpreter<'a, K> {
    setting: &'a Setting,
    program: &'a Program,
    thread_state: &'a ThreadState,
    kernel: K,
    pub(crate) journal: Journal,
    /// By transaction and op; see `floor`.
    floors: &'a [AtomicU64],
    slots: [Slot<'a>; ALL_SLOTS],
    /// The slots that were bound or opened since the transaction began, a bit each.
    used: u32,
    stream: Stream,
    round: u16,
    /// The transaction's number in this segment.
    seq: u64,
    /// Write ops of this segment.
    writes: u64,
    /// Pipelines of this segment.
    pipelines: u64,
    /// The next candidate of each sequential picker.
    cursors: Box<[usize]>,
    /// The directory of each dataset for this user, with a slash.
    roots: Box<[Root]>,
    /// Where names are composed.
    text: Vec<u8>,
    scratch: Scratch,
    /// The threads that replays are played on; interactive users have none.
    lane_threads: Option<&'a mut LaneThreads>,
    /// The segment under way; interactive users have none.
    segment: Option<&'a Segment>,
    /// While looking until something is seen: where it was not, in the end.
    unmet: Option<Place>,
    /// Looks at what calls did, between them.
    verifier: Option<Box<Verifier<'a>>>,
    /// Whether a look at the clock costs more than what lies between two calls: the end of one is then the begin of the next.
    spares_looks: bool,
    /// That end, unless other time has passed since.
    looked_ns: Option<u64>,
}

impl<'a, K: Kernel> Interpreter<'a, K> {
    /// An interpreter at the begin of a segment.
    pub(crate) fn new(
        setting: &'a Setting,
        thread_state: &'a ThreadState,
        kernel: K,
        journal: Journal,
        round: u16,
    ) -> Self {
        let program = &*setting.program;
        Interpreter {
            setting,
            program,
            thread_state,
            kernel,
            journal,
            floors: setting.recorder.slow(thread_state.home).floors(),
            slots: thread_state.texts.each_ref().map(Slot::new),
            used: 0,
            stream: Stream::of_ops(program.draws, round, thread_state.user),
            round,
            seq: 0,
            writes: 0,
            pipelines: 0,
            cursors: program
                .pickers
                .iter()
                .map(|picker| picker.first_of(thread_state.user, program.users))
                .collect(),
            roots: program
                .datasets
                .iter()
                .map(|dataset| Root::of(dataset, thread_state.user))
                .collect(),
            text: Vec::new(),
            scratch: setting.scratch.of_user(thread_state.number),
            lane_threads: None,
            segment: None,
            unmet: None,
            verifier: None,
            spares_looks: clock::is_slow(),
            looked_ns: None,
        }
    }

    /// The same, for a user that replays.
    pub(crate) fn with_lane_threads(mut self, lane_threads: &'a mut LaneThreads) -> Self {
        self.lane_threads = Some(lane_threads);
        self
    }

    /// The same, in a segment.
    pub(crate) fn in_segment(mut self, segment: &'a Segment) -> Self {
        self.segment = Some(segment);
        self
    }

    /// Close what the transaction left open, in slot order, also when it was cut.
    pub(crate) fn close_all(&mut self) -> Result<(), Halt> {
        let mut result = Ok(());
        for slot in (0_u8..).take(SLOTS) {
            if self.used & 1 << slot == 0 {
                continue;
            }
            if let Some(file) = self.slot_mut(slot).and_then(|slot| slot.file.take()) {
                let act = Act {
                    op: Op::Close,
                    place: self.place(slot),
                    expect: &Expect::OK,
                };
                let measured = self.measure_uncut(act, |_| files::close(file));
                self.watch_close(slot, &measured);
                result = result.and(
                    self.settle(act, measured.outcome(), 0, measured)
                        .map(|_| ()),
                );
            }
        }
        result
    }

    fn forget(&mut self) {
        let mut used = std::mem::take(&mut self.used);
        while used != 0 {
            let slot = used.trailing_zeros();
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.unbind();
                slot.file = None;
            }
            used &= used - 1;
        }
    }

    /// Make a call between two looks at the clock, unless the transaction is to be broken off.
    #[inline(always)]
    fn measure(&mut self, act: Act<'_>, call: impl FnOnce(&K) -> Answer) -> Result<Measured, Halt> {
        if self.thread_state.is_cut() {
            return Err(Halt::Cut);
        }
        Ok(self.measure_uncut(act, call))
    }

    #[inline(always)]
    fn measure_uncut(&mut self, act: Act<'_>, call: impl FnOnce(&K) -> Answer) -> Measured {
        let start_ns = self.looked_ns.unwrap_or_else(now_ns);
        self.thread_state.enter(act.op, act.place, start_ns);
        let answer = if K::REAL { call(&self.kernel) } else { Ok(0) };
        let end_ns = now_ns();
        self.thread_state.leave();
        self.spare_look(end_ns);
        self.kernel.tidy();
        Measured {
            answer,
            ns: end_ns.saturating_sub(start_ns),
            end_ns,
        }
    }

    /// What follows begins at a time that was just looked at, where a look is dear and nothing is checked between calls.
    #[inline(always)]
    fn spare_look(&mut self, now_ns: u64) {
        if self.spares_looks && self.verifier.is_none() {
            self.looked_ns = Some(now_ns);
        }
    }

    /// Record what a call did, and decide whether the transaction goes on.
    #[inline(always)]
    fn settle(&mut self, act: Act<'_>, outcome: u8, bytes: u64, measured: Measured) -> Done {
        if outcome != ops::OK || !act.expect.allows(ops::OK) {
            return self.settle_other(act, outcome, bytes, measured);
        }
        self.journal.record(
            act.op,
            (ops::OK, true),
            bytes,
            (measured.ns, measured.end_ns),
        );
        if measured.ns > self.floor(act.op) {
            self.report_slow(act, outcome, measured);
        }
        Ok(Some(measured.value()))
    }

    /// Above this an op is one of the ten slowest.
    #[inline]
    fn floor(&self, op: Op) -> u64 {
        let place = usize::from(self.journal.transaction()) * KINDS + usize::from(op as u8);
        let floor = self.floors.get(place);
        floor.map_or(u64::MAX, |floor| floor.load(Ordering::Relaxed))
    }

    #[cold]
    fn settle_other(&mut self, act: Act<'_>, outcome: u8, bytes: u64, measured: Measured) -> Done {
        let times = (measured.ns, measured.end_ns);
        if outcome == ops::END {
            return self.settle_end(act, measured);
        }
        if self.thread_state.is_cut() && measured.answer == Err(Errno::INTR) {
            // It ended when we wanted it to: how long it would have taken nobody knows.
            let cancelled = (ops::CANCELLED, true);
            self.journal.record(act.op, cancelled, bytes, times);
            return Err(Halt::Cut);
        }
        let expected = act.expect.allows(outcome) && !ops::is_violation(outcome);
        let unmet = !expected && self.unmet.is_some() && ops::may_change(outcome);
        self.journal
            .record(act.op, (outcome, expected || unmet), bytes, times);
        self.report_slow(act, outcome, measured);
        if expected {
            return Ok(None);
        }
        if unmet {
            self.unmet = Some(act.place);
            return Err(Halt::Unmet);
        }
        self.journal
            .report_error(act.op, outcome, measured.end_ns, || {
                act.place.path(self.program, self.thread_state)
            });
        Err(Halt::Failed)
    }

    /// The end is as good as data where the step expects `ok`.
    fn settle_end(&mut self, act: Act<'_>, measured: Measured) -> Done {
        if !act.expect.allows(ops::OK) {
            return self.settle_other(act, ops::OK, 0, measured);
        }
        let times = (measured.ns, measured.end_ns);
        self.journal.record(act.op, (ops::END, true), 0, times);
        if measured.ns > self.floor(act.op) {
            self.report_slow(act, ops::END, measured);
        }
        Ok(Some(0))
    }

    #[cold]
    fn report_slow(&self, act: Act<'_>, outcome: u8, measured: Measured) {
        self.journal
            .report_slow(act.op, outcome, (measured.ns, measured.end_ns), || {
                act.place.path(self.program, self.thread_state)
            });
    }

    /// Make a call that moves no bytes, and record it.
    #[inline(always)]
    fn timed(&mut self, act: Act<'_>, call: impl FnOnce(&K) -> Answer) -> Done {
        let measured = self.measure(act, call)?;
        self.settle(act, measured.outcome(), 0, measured)
    }

    /// Make a call that returns how many bytes it moved, and record it.
    #[inline]
    fn moving(&mut self, act: Act<'_>, call: impl FnOnce(&K) -> Answer) -> Done {
        let measured = self.measure(act, call)?;
        self.settle(
            act,
            measured.outcome_of_data::<K>(),
            measured.value(),
            measured,
        )
    }

    /// Record an error that was found without a call.
    #[cold]
    fn refuse(&mut self, act: Act<'_>, errno: Errno) -> Done {
        let measured = Measured {
            answer: Err(errno),
            ns: 0,
            end_ns: now_ns(),
        };
        self.settle(act, measured.outcome(), 0, measured)
    }

    fn sink(&self) -> i32 {
        self.setting.sink.as_raw_fd()
    }
}
