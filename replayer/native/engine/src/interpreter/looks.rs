//! Waiting for others: looking until something is seen, and signals between users.

use super::{Halt, Interpreter};
use crate::clock::now_ns;
use crate::ops::{OK, Op, UNMET};
use crate::program::{Await, Expect, SLOTS, SignalId, Until};
use crate::segment::Segment;
use crate::signals::Signal;
use crate::sleep::sleep_until;
use crate::sys::Kernel;
use crate::thread_state::Place;

impl<K: Kernel> Interpreter<'_, K> {
    /// Tell the others that this transaction has come so far.
    pub(super) fn give(&self, number: SignalId) {
        self.setting.signals.give(self.signal_of(number));
    }

    /// Wait for the signal of another user's transaction with the same number.
    pub(super) fn wait_for(&mut self, step: &Await) -> Result<(), Halt> {
        self.looked_ns = None; // time passes, also when it is broken off
        let limit_ns = self.draw(step.limit);
        self.journal.flush();
        let (thread_state, segment, begin_ns) = (self.thread_state, self.segment, now_ns());
        let signal = self.signal_of(step.signal);
        let woken = || thread_state.is_cut() || segment.is_some_and(Segment::is_stopping);
        let deadline_ns = begin_ns.saturating_add(limit_ns);
        let given = thread_state.rest(|| self.setting.signals.wait(signal, deadline_ns, woken));
        let end_ns = now_ns();
        self.journal.pass(end_ns);
        if !given && woken() {
            return Err(Halt::Cut);
        }
        let outcome = if given { OK } else { UNMET };
        let waited = (outcome, end_ns.saturating_sub(begin_ns));
        self.conclude((Op::Await, Place::NOWHERE), step.expect, waited)
    }

    /// Repeat steps until all their calls come out as they should.
    pub(super) fn until(&mut self, step: &Until) -> Result<(), Halt> {
        let (every_ns, limit_ns) = (self.draw(step.every), self.draw(step.limit));
        let begin_ns = now_ns();
        let last_ns = begin_ns.saturating_add(limit_ns);
        let (stream, open) = (self.stream.clone(), self.open_files());
        let mut look_ns = begin_ns;
        let mut aside_ns = self.journal.aside_ns();
        let mut is_awaited = step.since.is_some();
        let unmet = loop {
            // Not asked again once it was given: all users share what is asked.
            is_awaited = is_awaited
                && step
                    .since
                    .is_some_and(|number| self.given_ns(number).is_none());
            if is_awaited {
                // The time begins with the signal.
                aside_ns = self.journal.aside_ns();
            }
            let unmet = self.look(step, open)?;
            self.stream = stream.clone();
            if unmet.is_none() {
                break None;
            }
            look_ns = look_ns.saturating_add(every_ns).max(now_ns());
            if look_ns > last_ns {
                break unmet;
            }
            self.rest_until(look_ns)?;
        };
        let end_ns = self.journal.latest_ns();
        let since_ns = step
            .since
            // What is seen before that is seen at once.
            .map_or(begin_ns, |number| self.given_ns(number).unwrap_or(end_ns));
        // What was done beside looking is no part of it.
        let aside_ns = self
            .journal
            .aside_before_latest_ns()
            .saturating_sub(aside_ns);
        let ns = end_ns.saturating_sub(since_ns).saturating_sub(aside_ns);
        let outcome = unmet.map_or(OK, |_| UNMET);
        let place = unmet.unwrap_or(Place::NOWHERE);
        self.conclude((Op::Until, place), step.expect, (outcome, ns))
    }

    /// When a signal was given, if it was.
    fn given_ns(&self, number: SignalId) -> Option<u64> {
        self.setting.signals.time_of(self.signal_of(number))
    }

    /// One turn; where it was not as it should be, if so.
    fn look(&mut self, step: &Until, open: u32) -> Result<Option<Place>, Halt> {
        self.unmet = Some(Place::NOWHERE);
        let looked = self.steps(&step.steps);
        let unmet = self.unmet.take();
        match looked {
            Err(Halt::Unmet) => self.close_others(open).map(|()| unmet),
            other => other.map(|()| None),
        }
    }

    fn rest_until(&mut self, time_ns: u64) -> Result<(), Halt> {
        if time_ns <= now_ns() {
            return Ok(());
        }
        self.looked_ns = None;
        self.journal.flush();
        let thread_state = self.thread_state;
        if thread_state.rest(|| sleep_until(time_ns, || thread_state.is_cut())) {
            return Ok(());
        }
        Err(Halt::Cut)
    }

    /// Record how long was waited, and fail the transaction if that was in vain.
    fn conclude(
        &mut self,
        (op, place): (Op, Place),
        expect: Expect,
        (outcome, ns): (u8, u64),
    ) -> Result<(), Halt> {
        let expected = expect.allows(outcome);
        self.journal.record_wait(op, (outcome, expected), ns);
        if expected {
            return Ok(());
        }
        self.journal.report_error(op, outcome, now_ns(), || {
            place.path(self.program, self.thread_state)
        });
        Err(Halt::Failed)
    }

    /// The slots that hold a descriptor, a bit each.
    fn open_files(&self) -> u32 {
        (0_u8..)
            .take(SLOTS)
            .filter(|slot| self.file(*slot).is_some())
            .fold(0, |open, slot| open | 1 << slot)
    }

    /// Close the descriptors of other slots than these.
    fn close_others(&mut self, open: u32) -> Result<(), Halt> {
        for slot in (0_u8..).take(SLOTS) {
            if open & 1 << slot == 0 && self.file(slot).is_some() {
                self.close(slot, &Expect::OK)?;
            }
        }
        Ok(())
    }

    fn signal_of(&self, number: SignalId) -> Signal {
        Signal {
            number: number.0,
            segment_ns: self.segment.map_or(0, |segment| segment.begin_ns),
            seq: self.seq,
        }
    }
}
