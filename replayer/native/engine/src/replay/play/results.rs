//! What becomes of an event that has ended: judged, sampled, counted; divergences are told.

use super::check::{Facts, Got, Verdict, judge, recorded_outcome};
use super::lane_replay::{Act, Ended, LaneReplay, Replayed};
use super::ledger::{Example, Kind};
use crate::clock::now_ns;
use crate::interpreter::Halt;
use crate::ops::{CANCELLED, DIVERGED, END, Flag, OK, Op};
use crate::program::ReplayPace;
use crate::record::event::{Divergence, Event};
use crate::replay::program::{Recorded, ScheduledCall};
use crate::sys::{Answer, Kernel};
use rustix::io::Errno;
use std::sync::atomic::Ordering;

/// Divergences of one lane and performance that are offered as examples (as many as are kept at all).
const OFFERED: u64 = 20;

impl<K: Kernel> LaneReplay<'_, K> {
    /// A call that could not be made, because an earlier one did not do what it was recorded to do.
    #[cold]
    pub(super) fn lost(&mut self, scheduled: &ScheduledCall, act: Act, errno: Errno) -> Replayed {
        let now_ns = now_ns();
        let ended = Ended {
            answer: if K::REAL { Err(errno) } else { Ok(0) },
            bytes: 0,
            start_ns: now_ns,
            end_ns: now_ns,
        };
        self.settle(scheduled, act, ended)
    }

    #[inline]
    pub(super) fn settle(&mut self, scheduled: &ScheduledCall, act: Act, ended: Ended) -> Replayed {
        let is_plain = match (ended.answer, scheduled.recorded) {
            (Ok(_), Recorded::Well) => true,
            (Ok(got), Recorded::Exactly(recorded)) => got == recorded,
            (Err(errno), Recorded::Error(recorded)) => errno.raw_os_error() == recorded,
            _ => false,
        };
        if is_plain && K::REAL {
            self.book(scheduled, act, ended, Verdict::Matched);
            return Ok(());
        }
        let verdict = self.judged(scheduled.recorded, act, ended, false);
        self.book_other(scheduled, act, ended, verdict)
    }

    #[cold]
    pub(super) fn judged(
        &self,
        recorded: Recorded,
        act: Act,
        ended: Ended,
        seeks_freely: bool,
    ) -> Verdict {
        if !K::REAL {
            return Verdict::Unknown;
        }
        let facts = Facts {
            op: act.op,
            recorded,
            seeks_freely,
            path: self.performance.names.path(act.path).to_bytes(),
        };
        judge(facts, ended.answer)
    }

    /// Record a call whose result is as it should be.
    #[inline]
    pub(super) fn book(
        &mut self,
        scheduled: &ScheduledCall,
        act: Act,
        ended: Ended,
        verdict: Verdict,
    ) {
        let outcome = Self::succeeded_as(act, ended);
        self.tally.compared += u64::from(verdict != Verdict::Unknown);
        self.tally.matched += u64::from(verdict == Verdict::Matched);
        self.sample(scheduled, act, ended, (outcome, true));
    }

    /// The outcome of a call whose result is as it should be: reading that moved nothing has found the end.
    fn succeeded_as(act: Act, ended: Ended) -> u8 {
        match ended.answer {
            Ok(0) if K::REAL && act.op.is(Flag::ends) => END,
            _ => ended.outcome(),
        }
    }

    /// Whether a call ended by our own signal, because the lane is to end: what it would have returned nobody knows.
    pub(super) fn is_broken_off<V>(&self, answer: &Answer<V>) -> bool {
        matches!(answer, Err(Errno::INTR)) && self.performance.is_over(self.thread_state)
    }

    /// Record what was broken off: it would have taken longer.
    #[cold]
    pub(super) fn break_off(
        &mut self,
        scheduled: &ScheduledCall,
        act: Act,
        ended: Ended,
    ) -> Replayed {
        self.sample(scheduled, act, ended, (CANCELLED, true));
        Err(Halt::Cut)
    }

    #[cold]
    pub(super) fn book_other(
        &mut self,
        scheduled: &ScheduledCall,
        act: Act,
        ended: Ended,
        verdict: Verdict,
    ) -> Replayed {
        if self.is_broken_off(&ended.answer) {
            return self.break_off(scheduled, act, ended);
        }
        match verdict {
            Verdict::Matched | Verdict::Unknown => {
                self.book(scheduled, act, ended, verdict);
                Ok(())
            }
            Verdict::Allowed(allowance) => {
                self.tally.compared += 1;
                if let Some(count) = self.tally.allowed.get_mut(allowance as usize) {
                    *count += 1;
                }
                self.sample(
                    scheduled,
                    act,
                    ended,
                    (Self::succeeded_as(act, ended), true),
                );
                Ok(())
            }
            Verdict::Diverged(got) => {
                self.tally.compared += 1;
                let outcome = match ended.answer {
                    Ok(_) => DIVERGED,
                    Err(_) => ended.outcome(),
                };
                self.sample(scheduled, act, ended, (outcome, false));
                self.diverge((scheduled, scheduled.recorded), act, ended, got);
                Ok(())
            }
        }
    }

    #[inline]
    fn sample(&mut self, scheduled: &ScheduledCall, act: Act, ended: Ended, outcome: (u8, bool)) {
        let ns = ended.ns();
        let (start_ns, end_ns) = (ended.start_ns, ended.end_ns);
        self.tally.events += 1;
        self.journal
            .record(act.op, outcome, ended.bytes, (ns, end_ns));
        self.last_ns = Some(end_ns);
        self.pause.begin(start_ns);
        let floor = self.floors.get(act.op as usize);
        if floor.is_some_and(|floor| ns > floor.load(Ordering::Relaxed)) {
            self.report_slow(act, outcome.0, (ns, end_ns));
        }
        if let Some(due_ns) = self.due_ns {
            self.journal.record_lag(start_ns.saturating_sub(due_ns));
        }
        if let Some(log) = &mut self.tools.log {
            log.write(scheduled.row, (start_ns, end_ns));
        }
    }

    #[cold]
    fn report_slow(&self, act: Act, outcome: u8, times: (u64, u64)) {
        if outcome == CANCELLED {
            return;
        }
        self.journal.report_slow(act.op, outcome, times, || {
            self.performance.names.path(act.path).to_bytes().to_vec()
        });
    }

    /// An event that is not made as a timed call.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "so ends whatever is done with an event"
    )]
    pub(super) fn pass(&mut self, scheduled: &ScheduledCall) -> Replayed {
        let now_ns = now_ns();
        self.last_ns = Some(now_ns);
        self.pause.begin(now_ns);
        if let Some(log) = &mut self.tools.log {
            log.write(scheduled.row, (now_ns, now_ns));
        }
        Ok(())
    }

    /// The thread has ended. What it did by itself since its last call is time of the transaction's, unless there are no pauses.
    pub(super) fn end(&mut self, scheduled: &ScheduledCall) -> Replayed {
        let passed = self.pass(scheduled);
        if let Some(now_ns) = self.last_ns
            && self.performance.timing.pace != ReplayPace::Asap
        {
            self.journal.pass(now_ns);
        }
        passed
    }

    /// Count a divergence, and keep the first ones.
    #[cold]
    pub(super) fn diverge(
        &mut self,
        (scheduled, recorded): (&ScheduledCall, Recorded),
        act: Act,
        ended: Ended,
        got: Got,
    ) {
        let kind = Kind {
            op: act.op as u8,
            recorded: recorded_outcome(recorded),
            got,
        };
        let before = self.divergences;
        self.divergences += 1;
        self.tally.diverge(kind);
        let path = self.performance.names.path(act.path).to_bytes();
        if before == 0 {
            let outcome = match got {
                Got::Outcome(OK) | Got::Less | Got::More => DIVERGED,
                Got::Outcome(outcome) => outcome,
            };
            self.journal.fail(act.op, outcome, path.to_vec());
        }
        if before >= OFFERED {
            return;
        }
        let id = self.performance.id;
        let example = Example {
            target: id.target,
            user: id.user,
            performance: id.performance,
            trace: id.trace,
            row: scheduled.row,
            thread: scheduled.thread,
            path: path.to_vec(),
            kind,
            result_recorded: match recorded {
                Recorded::Exactly(number) => Some(number),
                _ => None,
            },
            // Sizes of what is looked at are not compared.
            result_got: (ended.answer.ok()).map(|got| {
                if matches!(act.op, Op::Stat | Op::Lstat) {
                    0
                } else {
                    got
                }
            }),
        };
        if self.setting.ledger.keep(&example) {
            self.setting
                .recorder
                .log(&Event::Divergence(Box::new(Divergence {
                    t_ns: ended.end_ns.saturating_sub(self.setting.begin_ns),
                    transaction: id.transaction,
                    example,
                })));
        }
    }
}
