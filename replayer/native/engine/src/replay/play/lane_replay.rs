//! Plays the scheduled calls of one lane: waits for others, for its pace, makes the call between two looks at the clock, judges the result.

use super::batch_queue::NoBatch;
use super::ledger::Tally;
use super::log::Log;
use super::pace::{Pause, scaled, wait_until};
use super::performance::Performance;
use crate::clock::now_ns;
use crate::interpreter::{Halt, Journal, Setting};
use crate::ops::{KINDS, OK, Op, outcome_of_errno};
use crate::program::ReplayPace;
use crate::replay::program::{CallBatch, PathId, ScheduledCall};
use crate::sys::data::Listing;
use crate::sys::{Answer, Kernel, Scratch};
use crate::thread_state::{Place, ThreadState};
use std::sync::atomic::AtomicU64;

/// A batch of samples is handed over before a wait as long as this (chosen: as when transactions end).
const FLUSH_NS: u64 = 20_000_000;

/// So many events are counted before the ledger is told in the midst of a performance (chosen: a few times a second).
const HANDED: u64 = 100_000;

/// What a thread that plays keeps from performance to performance.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(super) listing: Listing,
    pub(super) log: Option<Log>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) op: Op,
    pub(super) path: PathId,
}

impl Act {
    pub(super) fn new(op: Op, path: PathId) -> Act {
        Act { op, path }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) answer: Answer,
    pub(super) bytes: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Ended {
    /// The same, which moved as many bytes as it says.
    #[inline]
    pub(super) fn moving(self) -> Ended {
        let bytes = self.answer.unwrap_or(0);
        Ended { bytes, ..self }
    }

    /// How long it took; no time where the clock has stepped back.
    #[inline]
    pub(super) fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    pub(super) fn outcome(&self) -> u8 {
        match self.answer {
            Ok(_) => OK,
            Err(errno) => outcome_of_errno(errno.raw_os_error()),
        }
    }
}

pub(super) type Replayed = Result<(), Halt>;

/// One lane of one performance.
pub(crate) struct LaneReplay<'a, K> {
    pub(super) setting: &'a Setting,
    pub(super) performance: &'a Performance,
    pub(super) kernel: &'a K,
    pub(super) thread_state: &'a ThreadState,
    pub(super) journal: &'a mut Journal,
    pub(super) tools: &'a mut Tools,
    pub(super) scratch: Scratch,
    lane: usize,
    is_shared: bool,
    /// By op, of this transaction.
    pub(super) floors: &'a [AtomicU64],
    pub(super) tally: Tally,
    /// Those of this performance.
    pub(super) divergences: u64,
    pub(super) writes: u64,
    /// When the event under way was intended, at the recorded times.
    pub(super) due_ns: Option<u64>,
    /// When the last event of the lane ended.
    pub(super) last_ns: Option<u64>,
    pub(super) pause: Pause,
}

/// The thread that a lane is played on.
pub(crate) struct LaneContext<'a, K> {
    pub(crate) setting: &'a Setting,
    pub(crate) kernel: &'a K,
    pub(crate) thread_state: &'a ThreadState,
    pub(crate) journal: &'a mut Journal,
    pub(crate) tools: &'a mut Tools,
}

impl<'a, K: Kernel> LaneReplay<'a, K> {
    pub(crate) fn new(
        context: LaneContext<'a, K>,
        performance: &'a Performance,
        lane: usize,
    ) -> LaneReplay<'a, K> {
        let LaneContext {
            setting,
            kernel,
            thread_state,
            journal,
            tools,
        } = context;
        let first = usize::from(performance.id.transaction) * KINDS;
        let slow = setting.recorder.slow(thread_state.home);
        let floors = slow.floors().get(first..first + KINDS);
        let buffer = u32::try_from(lane)
            .unwrap_or(0)
            .wrapping_add(thread_state.number);
        LaneReplay {
            setting,
            performance,
            kernel,
            thread_state,
            journal,
            tools,
            scratch: setting.scratch.of_user(buffer),
            lane,
            is_shared: performance.lanes() > 1,
            floors: floors.unwrap_or_default(),
            tally: Tally::default(),
            divergences: 0,
            writes: 0,
            due_ns: None,
            last_ns: None,
            pause: Pause::default(),
        }
    }

    /// Play the lane to its end; its counts go into the ledger.
    pub(crate) fn play(mut self) -> Replayed {
        let played = self.play_batches();
        if played.is_err() {
            self.performance.halt();
        }
        self.performance.batch_queue.leave(self.lane);
        self.performance.progress.finish(self.lane);
        if let (Some(due_ns), Some(last_ns)) = (self.due_ns, self.last_ns) {
            self.tally.drift_ns = last_ns.saturating_sub(due_ns);
        }
        self.hand_over();
        self.flush_log();
        if self.divergences == 0 {
            played
        } else {
            played.and(Err(Halt::Failed))
        }
    }

    fn flush_log(&mut self) {
        let fault = self.tools.log.as_mut().and_then(|log| {
            log.flush();
            log.fault
        });
        if let Some(errno) = fault {
            let message = format!("the event log is incomplete: {errno}");
            self.setting.warn(self.thread_state.user, message);
        }
    }

    /// Hand what was counted to the ledger.
    fn hand_over(&mut self) {
        let id = self.performance.id;
        let tally = std::mem::take(&mut self.tally);
        let place = (id.target, id.transaction);
        self.setting.ledger.add(place, &tally);
    }

    fn play_batches(&mut self) -> Replayed {
        let (performance, thread_state, lane) = (self.performance, self.thread_state, self.lane);
        for number in 0.. {
            match performance
                .batch_queue
                .take(lane, number, &|| performance.is_over(thread_state))
            {
                Ok(Some(batch)) => {
                    let scheduled = batch.lanes.get(lane).map_or(&[][..], |scheduled| scheduled);
                    for scheduled in scheduled {
                        self.make(&batch, scheduled)?;
                    }
                    if self.tally.events >= HANDED {
                        self.hand_over();
                    }
                }
                Ok(None) => break,
                Err(NoBatch::Over) => return Err(Halt::Cut),
                Err(NoBatch::Broken(why)) => {
                    self.setting.warn(thread_state.user, why);
                    return Err(Halt::Failed);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn make(&mut self, batch: &CallBatch, scheduled: &ScheduledCall) -> Replayed {
        if self.performance.is_over(self.thread_state) {
            return Err(Halt::Cut);
        }
        if scheduled.waits.1 != 0 {
            self.wait(batch, scheduled)?;
        }
        if self.performance.timing.pace != ReplayPace::Asap {
            self.pace(scheduled)?;
        }
        self.enact(batch, scheduled)?;
        if self.is_shared {
            self.performance.progress.complete(self.lane, scheduled.row);
        }
        Ok(())
    }

    /// Whether events follow each other at the recorded distances.
    fn pauses(&self) -> bool {
        self.performance.timing.pace == ReplayPace::Closed
    }

    /// Wait for events of other lanes. Only earlier ones are waited for, so no circle of lanes can wait for itself.
    fn wait(&mut self, batch: &CallBatch, scheduled: &ScheduledCall) -> Replayed {
        let (performance, thread_state) = (self.performance, self.thread_state);
        let (first, count) = (scheduled.waits.0 as usize, scheduled.waits.1 as usize);
        let waits = batch.waits.get(first..first + count).unwrap_or_default();
        let begin_ns = self.pauses().then(now_ns);
        for (number, wait) in waits
            .iter()
            .filter(|wait| wait.row < scheduled.row)
            .enumerate()
        {
            if !performance
                .progress
                .wait(*wait, &|| performance.is_over(thread_state))
            {
                return Err(Halt::Cut);
            }
            if number == 0 && scheduled.after_ns > 0 && begin_ns.is_some() {
                self.pause.kept_until(now_ns());
            }
        }
        // A lane that was cut off counts as finished, for nobody to wait for it, without having made its events.
        if performance.is_over(thread_state) {
            return Err(Halt::Cut);
        }
        if let Some(begin_ns) = begin_ns {
            self.pause.hold_up(begin_ns, now_ns());
        }
        Ok(())
    }

    /// Wait until an event is due.
    fn pace(&mut self, scheduled: &ScheduledCall) -> Replayed {
        let (performance, thread_state, timing) =
            (self.performance, self.thread_state, self.performance.timing);
        let due_ns = if timing.pace == ReplayPace::Timed {
            let start_ns = scaled(scheduled.start_ns, timing.speed_percent);
            let due_ns = timing.begin_ns.saturating_add(start_ns);
            self.due_ns = Some(due_ns);
            due_ns
        } else {
            let first = || now_ns().max(timing.begin_ns);
            let last_ns = self.last_ns.unwrap_or_else(first);
            let gap_ns = scaled(scheduled.gap_ns, timing.speed_percent);
            let after_ns = scaled(scheduled.after_ns, timing.speed_percent);
            let due_ns = self.pause.plan(last_ns, gap_ns, after_ns);
            if due_ns <= last_ns {
                return Ok(());
            }
            due_ns
        };
        let journal = &mut *self.journal;
        let idle = |left_ns| {
            if left_ns > FLUSH_NS {
                journal.flush();
            }
        };
        if wait_until(
            due_ns,
            thread_state,
            &|| performance.is_over(thread_state),
            idle,
        ) {
            Ok(())
        } else {
            Err(Halt::Cut)
        }
    }

    /// Make calls that nobody times, but that others may see hanging.
    pub(super) fn untimed<V>(&self, act: Act, call: impl FnOnce(&K) -> V) -> V {
        let place = Place::name(act.path);
        self.thread_state.show(act.op, place, || call(self.kernel))
    }

    /// Make a call between two looks at the clock.
    #[inline]
    pub(super) fn measure(&self, act: Act, call: impl FnOnce(&K) -> Answer) -> Ended {
        let start_ns = now_ns();
        self.thread_state
            .enter(act.op, Place::name(act.path), start_ns);
        let answer = if K::REAL { call(self.kernel) } else { Ok(0) };
        let end_ns = now_ns();
        self.thread_state.leave();
        self.kernel.tidy();
        Ended {
            answer,
            bytes: 0,
            start_ns,
            end_ns,
        }
    }
}
