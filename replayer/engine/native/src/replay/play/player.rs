//! Plays the cues of one lane: waits for others, for its pace, makes the call between two looks at the clock, judges the result.

use super::check::{Facts, Got, Verdict, judge, recorded_outcome};
use super::feed::Dry;
use super::ledger::{Example, Kind, Tally};
use super::log::Log;
use super::pace::{scaled, wait_until};
use super::stage::Stage;
use crate::clock::now_ns;
use crate::interpreter::{Halt, Journal, Setting};
use crate::ops::{DIVERGED, KINDS, OK, Op, outcome_of_errno};
use crate::program::ReplayPace;
use crate::pulse::{Place, Pulse};
use crate::record_event::{Divergence, Event};
use crate::replay::reel::{Chunk, Cue, PathId, Recorded};
use crate::sys::replayed::Listing;
use crate::sys::{Answer, Places, Scratch};
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};

/// A batch of samples is handed over before a wait as long as this (chosen: as when transactions end).
const FLUSH_NS: u64 = 20_000_000;
/// Divergences of one lane and performance that are offered as examples (as many as are kept at all).
const OFFERED: u64 = 20;

/// What a thread that plays keeps from performance to performance.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(super) listing: Listing,
    pub(super) log: Option<Log>,
}

/// A call: which and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) op: Op,
    pub(super) path: PathId,
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) answer: Answer<u64>,
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

    fn outcome(&self) -> u8 {
        match self.answer {
            Ok(_) => OK,
            Err(errno) => outcome_of_errno(errno.raw_os_error()),
        }
    }
}

pub(super) type Played = Result<(), Halt>;

/// One lane of one performance.
pub(crate) struct Player<'a, K> {
    pub(super) setting: &'a Setting,
    pub(super) stage: &'a Stage,
    pub(super) kernel: &'a K,
    pub(super) pulse: &'a Pulse,
    pub(super) journal: &'a mut Journal,
    pub(super) tools: &'a mut Tools,
    pub(super) scratch: Scratch,
    lane: usize,
    is_shared: bool,
    /// By op, of this transaction.
    floors: &'a [AtomicU64],
    pub(super) tally: Tally,
    /// Write calls so far.
    pub(super) writes: u64,
    /// When the event under way was intended, at the recorded times.
    due_ns: Option<u64>,
    /// When the last event of the lane ended.
    last_ns: Option<u64>,
}

/// The thread that a lane is played on.
pub(crate) struct Seat<'a, K> {
    pub(crate) setting: &'a Setting,
    pub(crate) kernel: &'a K,
    pub(crate) pulse: &'a Pulse,
    pub(crate) journal: &'a mut Journal,
    pub(crate) tools: &'a mut Tools,
}

impl<'a, K: Places> Player<'a, K> {
    pub(crate) fn new(seat: Seat<'a, K>, stage: &'a Stage, lane: usize) -> Player<'a, K> {
        let Seat {
            setting,
            kernel,
            pulse,
            journal,
            tools,
        } = seat;
        let first = usize::from(stage.cast.transaction) * KINDS;
        let floors = setting.recorder.slow_floors().get(first..first + KINDS);
        let buffer = u32::try_from(lane).unwrap_or(0).wrapping_add(pulse.user);
        Player {
            setting,
            stage,
            kernel,
            pulse,
            journal,
            tools,
            scratch: setting.scratch.of_user(buffer),
            lane,
            is_shared: stage.lanes() > 1,
            floors: floors.unwrap_or_default(),
            tally: Tally::default(),
            writes: 0,
            due_ns: None,
            last_ns: None,
        }
    }

    /// Play the lane to its end; its counts go into the ledger.
    pub(crate) fn play(mut self) -> Played {
        let played = self.play_chunks();
        if played.is_err() {
            self.stage.halt();
        }
        self.stage.feed.leave(self.lane);
        self.stage.progress.finish(self.lane);
        if let (Some(due_ns), Some(last_ns)) = (self.due_ns, self.last_ns) {
            self.tally.drift_ns = last_ns.saturating_sub(due_ns);
        }
        let cast = self.stage.cast;
        let place = (cast.target, cast.transaction);
        self.setting.ledger.add(place, &self.tally);
        if let Some(log) = &mut self.tools.log {
            log.flush();
        }
        if self.tally.diverged.is_empty() {
            played
        } else {
            played.and(Err(Halt::Failed))
        }
    }

    fn play_chunks(&mut self) -> Played {
        let (stage, pulse, lane) = (self.stage, self.pulse, self.lane);
        for number in 0.. {
            match stage.feed.take(lane, number, &|| stage.is_over(pulse)) {
                Ok(Some(chunk)) => {
                    let cues = chunk.lanes.get(lane).map_or(&[][..], |cues| cues);
                    for cue in cues {
                        self.cue(&chunk, cue)?;
                    }
                }
                Ok(None) => break,
                Err(Dry::Over) => return Err(Halt::Cut),
                Err(Dry::Broken(why)) => {
                    self.setting.recorder.log(&Event::Broken {
                        t_ns: now_ns().saturating_sub(self.setting.begin_ns),
                        user: pulse.user,
                        message: why,
                    });
                    return Err(Halt::Failed);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn cue(&mut self, chunk: &Chunk, cue: &Cue) -> Played {
        if self.stage.is_over(self.pulse) {
            return Err(Halt::Cut);
        }
        if cue.waits.1 != 0 {
            self.wait(chunk, cue)?;
        }
        if self.stage.tempo.pace != ReplayPace::Asap {
            self.pace(cue)?;
        }
        self.enact(chunk, cue)?;
        if self.is_shared {
            self.stage.progress.complete(self.lane, cue.row);
        }
        Ok(())
    }

    /// Wait for events of other lanes. Only earlier ones are waited for, so no circle of lanes can wait for itself.
    fn wait(&mut self, chunk: &Chunk, cue: &Cue) -> Played {
        let (stage, pulse) = (self.stage, self.pulse);
        let (first, count) = (cue.waits.0 as usize, cue.waits.1 as usize);
        let waits = chunk.waits.get(first..first + count).unwrap_or_default();
        for wait in waits.iter().filter(|wait| wait.row < cue.row) {
            if !stage.progress.wait(*wait, &|| stage.is_over(pulse)) {
                return Err(Halt::Cut);
            }
        }
        Ok(())
    }

    /// Wait until an event is due.
    fn pace(&mut self, cue: &Cue) -> Played {
        let (stage, pulse, tempo) = (self.stage, self.pulse, self.stage.tempo);
        let due_ns = if tempo.pace == ReplayPace::Timed {
            let start_ns = scaled(cue.start_ns, tempo.speed_percent);
            let due_ns = tempo.begin_ns.saturating_add(start_ns);
            self.due_ns = Some(due_ns);
            due_ns
        } else {
            let first = || now_ns().max(tempo.begin_ns);
            let last_ns = self.last_ns.unwrap_or_else(first);
            last_ns.saturating_add(scaled(cue.gap_ns, tempo.speed_percent))
        };
        let journal = &mut *self.journal;
        let idle = |left_ns| {
            if left_ns > FLUSH_NS {
                journal.flush();
            }
        };
        if wait_until(due_ns, pulse, &|| stage.is_over(pulse), idle) {
            Ok(())
        } else {
            Err(Halt::Cut)
        }
    }

    /// Make a call between two looks at the clock.
    #[inline]
    pub(super) fn measure(&self, act: Act, call: impl FnOnce(&K) -> Answer<u64>) -> Ended {
        let start_ns = now_ns();
        self.pulse.enter(act.op, Place::name(act.path), start_ns);
        let answer = if K::REAL { call(self.kernel) } else { Ok(0) };
        let end_ns = now_ns();
        self.pulse.leave();
        self.kernel.tidy();
        Ended {
            answer,
            bytes: 0,
            start_ns,
            end_ns,
        }
    }

    /// A call that could not be made, because an earlier one did not do what it was recorded to do.
    #[cold]
    pub(super) fn lost(&mut self, cue: &Cue, act: Act, errno: Errno) -> Played {
        let now_ns = now_ns();
        let ended = Ended {
            answer: if K::REAL { Err(errno) } else { Ok(0) },
            bytes: 0,
            start_ns: now_ns,
            end_ns: now_ns,
        };
        self.settle(cue, act, ended)
    }

    /// Record what a call did.
    #[inline]
    pub(super) fn settle(&mut self, cue: &Cue, act: Act, ended: Ended) -> Played {
        let is_plain = match (ended.answer, cue.recorded) {
            (Ok(_), Recorded::Well) => true,
            (Ok(got), Recorded::Exactly(recorded)) => got == recorded,
            (Err(errno), Recorded::Error(recorded)) => errno.raw_os_error() == recorded,
            _ => false,
        };
        if is_plain && K::REAL {
            return self.book(cue, act, ended, Verdict::Matched);
        }
        let verdict = self.judged(cue.recorded, act, ended, false);
        self.book_other(cue, act, ended, verdict)
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
            path: self.stage.names.path(act.path).to_bytes(),
        };
        judge(facts, ended.answer)
    }

    /// Record a call whose result is as it should be.
    #[inline]
    pub(super) fn book(&mut self, cue: &Cue, act: Act, ended: Ended, verdict: Verdict) -> Played {
        let outcome = ended.outcome();
        self.tally.compared += u64::from(verdict != Verdict::Unknown);
        self.tally.matched += u64::from(verdict == Verdict::Matched);
        self.sample(cue, act, ended, (outcome, true));
        Ok(())
    }

    /// Record any other call.
    #[cold]
    pub(super) fn book_other(
        &mut self,
        cue: &Cue,
        act: Act,
        ended: Ended,
        verdict: Verdict,
    ) -> Played {
        if ended.answer == Err(Errno::INTR) && self.stage.is_over(self.pulse) {
            self.sample(cue, act, ended, (ended.outcome(), true));
            return Err(Halt::Cut);
        }
        match verdict {
            Verdict::Matched | Verdict::Unknown => self.book(cue, act, ended, verdict),
            Verdict::Allowed(allowance) => {
                self.tally.compared += 1;
                if let Some(count) = self.tally.allowed.get_mut(allowance as usize) {
                    *count += 1;
                }
                self.sample(cue, act, ended, (ended.outcome(), true));
                Ok(())
            }
            Verdict::Diverged(got) => {
                self.tally.compared += 1;
                let outcome = match ended.answer {
                    Ok(_) => DIVERGED,
                    Err(_) => ended.outcome(),
                };
                self.sample(cue, act, ended, (outcome, false));
                self.diverge((cue, cue.recorded), act, ended, got);
                Ok(())
            }
        }
    }

    #[inline]
    fn sample(&mut self, cue: &Cue, act: Act, ended: Ended, outcome: (u8, bool)) {
        let Ended {
            bytes,
            start_ns,
            end_ns,
            ..
        } = ended;
        let ns = end_ns - start_ns;
        self.tally.events += 1;
        self.journal.record(act.op, outcome, bytes, (ns, end_ns));
        self.last_ns = Some(end_ns);
        let floor = self.floors.get(act.op as usize);
        if floor.is_some_and(|floor| ns > floor.load(Ordering::Relaxed)) {
            self.report_slow(act, outcome.0, (ns, end_ns));
        }
        if let Some(due_ns) = self.due_ns {
            self.journal.record_lag(start_ns.saturating_sub(due_ns));
        }
        if let Some(log) = &mut self.tools.log {
            log.write(cue.row, (start_ns, end_ns));
        }
    }

    #[cold]
    fn report_slow(&self, act: Act, outcome: u8, times: (u64, u64)) {
        self.journal.report_slow(act.op, outcome, times, || {
            self.stage.names.path(act.path).to_bytes().to_vec()
        });
    }

    /// An event that is not made as a timed call.
    pub(super) fn pass(&mut self, cue: &Cue) {
        let now_ns = now_ns();
        self.last_ns = Some(now_ns);
        if let Some(log) = &mut self.tools.log {
            log.write(cue.row, (now_ns, now_ns));
        }
    }

    /// Count a divergence, and keep the first ones.
    #[cold]
    pub(super) fn diverge(
        &mut self,
        (cue, recorded): (&Cue, Recorded),
        act: Act,
        ended: Ended,
        got: Got,
    ) {
        let kind = Kind {
            op: act.op as u8,
            recorded: recorded_outcome(recorded),
            got,
        };
        let before: u64 = self.tally.diverged.iter().map(|(_, count)| count).sum();
        self.tally.diverge(kind);
        let path = self.stage.names.path(act.path).to_bytes();
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
        let cast = self.stage.cast;
        let example = Example {
            target: cast.target,
            user: cast.user,
            performance: cast.performance,
            trace: cast.trace,
            row: cue.row,
            thread: cue.thread,
            path: path.to_vec(),
            kind,
            result_recorded: match recorded {
                Recorded::Exactly(number) => Some(number),
                _ => None,
            },
            result_got: ended.answer.ok(),
        };
        if self.setting.ledger.keep(&example) {
            self.setting
                .recorder
                .log(&Event::Divergence(Box::new(Divergence {
                    t_ns: ended.end_ns.saturating_sub(self.setting.begin_ns),
                    transaction: cast.transaction,
                    example,
                })));
        }
    }
}
