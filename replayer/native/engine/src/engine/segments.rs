//! Segments of an engine: their begin, their end, and what is told of who was left behind.

use super::{Engine, PATIENCE};
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::pace::Arrivals;
use crate::record::Phase;
use crate::record::event::{Event, StuckData};
use crate::segment::{Segment, Term};
use crate::user_threads::GivenUp;
use std::time::Duration;

/// How a segment goes.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// From 0.
    pub round: u16,
    /// Not measured, at its begin.
    pub warm_up_ns: u64,
    /// How long is measured; `None`: until somebody ends it.
    pub measured_ns: Option<u64>,
    /// What follows the warm-up.
    pub phase: Phase,
}

impl Engine {
    /// Begin a round of a target, or of several at the same time; with no warm-up its measured time begins at once.
    ///
    /// # Errors
    /// A target is none, there are several where users are not dealt to targets, or a segment is open.
    pub fn begin_segment(&self, targets: &[u16], course: &Course) -> Result<()> {
        targets
            .iter()
            .try_for_each(|target| self.check_target(*target))?;
        if targets.len() != 1 && !self.core.is_abreast() {
            return Err(Error::value(format!(
                "a segment must have one target, got {}",
                targets.len()
            )));
        }
        let Course {
            round,
            warm_up_ns,
            measured_ns,
            phase,
        } = *course;
        let term = |target: &u16| Term {
            target: *target,
            round,
            phase,
            measured_ns,
            measured_since_ns: self.recorder().measured_since_ns(),
        };
        let first = targets.first().copied().unwrap_or(0);
        let program = &self.core.setting.program;
        let verification = self.core.setting.verification.as_ref();
        let opened = self.core.user_threads.open(
            || {
                for target in targets {
                    verification.inspect(|all| all.begin(*target));
                }
                self.recorder()
                    .begin_phase((first, round), warm_up_ns, phase);
            },
            targets.iter().map(term).collect(),
            |begin_ns| Arrivals::new(&program.pace, program.draws, round, begin_ns, self.turn),
        );
        if !opened {
            return Err(Error::state("a segment is open, or the engine is closed"));
        }
        Ok(())
    }

    /// Begin the measured time.
    pub fn measure(&self) {
        self.recorder().measure();
    }

    /// End the round; transactions have `grace_ns` to end, and what is still in the kernel is returned.
    pub fn end_segment(&self, grace_ns: u64) -> Vec<StuckData> {
        let user_threads = &self.core.user_threads;
        let open = user_threads.open_segments();
        // Who led the users has noticed later that they were done: no time in which they could have done more.
        let rested_ns = user_threads.rested_ns();
        let given_up = user_threads.stop(Duration::from_nanos(grace_ns), PATIENCE);
        let is_counted = |segment: &&Segment| segment.phase() == Phase::Measured;
        for segment in open.iter().filter(is_counted) {
            self.log_ending(segment, rested_ns);
        }
        // What hangs is counted before its segment closes.
        let stuck = self.report(given_up);
        self.recorder().end_segment(rested_ns);
        stuck
    }

    /// Log until when transactions began in a segment, and how many were due that did not.
    fn log_ending(&self, segment: &Segment, rested_ns: Option<u64>) {
        let end_ns = segment.end_ns().min(rested_ns.unwrap_or(u64::MAX));
        self.recorder().log(&Event::Ending {
            t_ns: self.core.since_begin(end_ns),
            target: segment.target,
            round: segment.round,
            unbegun: segment.unbegun(&self.core.setting.program, end_ns),
        });
    }

    /// Log users that were given up on, and record what they did not finish; they count as finished.
    pub(super) fn report(&self, given_up: Vec<GivenUp>) -> Vec<StuckData> {
        let now_ns = now_ns();
        let core = &self.core;
        core.report_finished(given_up.iter().map(|given_up| given_up.thread_state.number));
        for left in &given_up {
            self.recorder()
                .record_unfinished(&left.thread_state, left.doing, now_ns);
        }
        let stuck = |left: GivenUp| {
            let Some(doing) = left.doing else {
                return StuckData {
                    user: left.thread_state.number,
                    target: left.thread_state.target(),
                    op: "-",
                    path: Vec::new(),
                    age_ns: 0,
                };
            };
            let stuck = core.stuck(&left.thread_state, doing, now_ns);
            let event = Event::Abandoned(core.since_begin(now_ns), stuck.clone());
            self.recorder().log(&event);
            stuck
        };
        given_up.into_iter().map(stuck).collect()
    }
}
