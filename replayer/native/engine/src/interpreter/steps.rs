//! Steps that hold others, and thinking. Each stage of a pipeline has an interpreter of its own, on a thread of its own.
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

use super::{Halt, Interpreter, Journal};
use crate::clock::now_ns;
use crate::ops::{self, Op};
use crate::program::{Each, Entry, EntryKind, Pipeline, Replay, STAGES, Step};
use crate::replay::play::{LineStage, wait_until};
use crate::sleep::sleep_until;
use crate::sys::Kernel;
use std::sync::Arc;

/// Thinking for no longer than this is computing (chosen: what waiting at the clock's hand is cheap and exact for).
const COMPUTED_NS: u64 = 50_000;

impl<'a, K: Kernel> Interpreter<'a, K> {
    /// Run the next transaction of the mix, which was intended at a time.
    pub(crate) fn transact(&mut self, intended_ns: u64) {
        let mix = self.program.mix_of(self.thread_state.user);
        let index = mix.pick(&mut self.stream);
        let Some(transaction) = self.program.transactions.get(index) else {
            return;
        };
        let start_ns = now_ns();
        let intended_ns = self.journal.intended_without_aside(intended_ns, start_ns);
        self.journal
            .begin(u16::try_from(index).unwrap_or(0), intended_ns, start_ns);
        self.spare_look(start_ns);
        let ran = self.steps(&transaction.steps);
        let closed = self.close_all();
        self.forget();
        self.seq += 1;
        let outcome = match ran.and(closed) {
            Ok(()) => ops::OK,
            Err(Halt::Failed | Halt::Unmet) => ops::FAILED,
            Err(Halt::Cut) => {
                // It was broken off now, however long ago its last call ended.
                self.journal.pass(now_ns());
                ops::CANCELLED
            }
        };
        self.verified_end();
        self.journal.take_off_aside();
        self.journal.end(outcome, self.journal.latest_ns());
    }

    /// Run steps in order until one fails. Nesting is bounded by the plan's parser.
    #[inline(always)]
    pub(crate) fn steps(&mut self, steps: &[Step]) -> Result<(), Halt> {
        for step in steps {
            // The usual ones first: a compare each, where a table of jumps would be mispredicted after every call.
            if let Step::Call(timed) = step {
                self.call(timed)?;
            } else if let Step::Pick { slot, picker } = step {
                self.pick(*slot, usize::from(*picker));
            } else {
                self.step(step)?;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn step(&mut self, step: &Step) -> Result<(), Halt> {
        match step {
            Step::Call(timed) => self.call(timed),
            Step::Pick { .. } | Step::Name { .. } | Step::Root { .. } => {
                self.bind(step);
                Ok(())
            }
            Step::Repeat { times, steps } => {
                let times = self.draw(*times);
                self.repeat(times, steps)
            }
            Step::Choose { weights, branches } => {
                let branch = weights.pick(&mut self.stream);
                branches
                    .get(branch)
                    .map_or(Ok(()), |steps| self.steps(steps))
            }
            Step::Each(each) => self.each(each),
            Step::Pipeline(pipeline) => self.pipeline(pipeline),
            Step::Think(time) => {
                let time_ns = self.draw(*time);
                self.think(time_ns)
            }
            Step::Replay(replay) => self.replay(replay),
            Step::Signal(signal) => {
                self.give(*signal);
                Ok(())
            }
            Step::Await(step) => self.wait_for(step),
            Step::Until(step) => self.until(step),
        }
    }

    /// Give one performance of a trace, or of one of its requests.
    fn replay(&mut self, replay: &Replay) -> Result<(), Halt> {
        self.looked_ns = None; // time passes, also when it is broken off
        let replay_programs = self.program.replays.replay_programs(replay);
        let index = match replay.request {
            None => 0,
            Some(_) => self.stream.below(replay_programs.len() as u64),
        };
        let replay_program = usize::try_from(index)
            .ok()
            .and_then(|index| replay_programs.get(index));
        let (Some(replay_program), Some(lane_threads)) =
            (replay_program, self.lane_threads.as_deref_mut())
        else {
            return Err(Halt::Failed);
        };
        lane_threads.perform(&self.kernel, &mut self.journal, replay, replay_program)
    }

    #[inline(never)]
    fn repeat(&mut self, times: u64, steps: &[Step]) -> Result<(), Halt> {
        for turn in 0..times {
            // Calls notice a cut by themselves; steps without calls would not.
            if turn % 256 == 0 && self.thread_state.is_cut() {
                return Err(Halt::Cut);
            }
            self.steps(steps)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn each(&mut self, each: &Each) -> Result<(), Halt> {
        for turn in 0..self.entries_of(each).len() {
            self.entry(each, turn)?;
        }
        Ok(())
    }

    pub(super) fn entries_of(&self, each: &Each) -> &'a [Entry] {
        let dataset = self.program.datasets.get(usize::from(each.dataset));
        dataset.map_or(&[][..], |dataset| &dataset.entries)
    }

    /// Do the steps of an entry, by its place in their order.
    #[inline]
    pub(super) fn entry(&mut self, each: &Each, turn: usize) -> Result<(), Halt> {
        let entries = self.entries_of(each);
        let index = if each.reverse {
            entries.len() - 1 - turn
        } else {
            turn
        };
        let steps = match entries.get(index).map(|entry| entry.kind) {
            Some(EntryKind::File) => &each.file,
            Some(EntryKind::Directory) => &each.directory,
            Some(EntryKind::Link) => &each.link,
            None => return Ok(()),
        };
        self.bind_entry(each.slot.0, each.dataset, u32::try_from(index).unwrap_or(0));
        self.steps(steps)
    }

    /// Use the CPU for a short time, as the program does that is meant: a sleep would end tens of microseconds late.
    fn compute(&mut self, time_ns: u64) -> Result<(), Halt> {
        let thread_state = self.thread_state;
        let deadline_ns = now_ns().saturating_add(time_ns);
        if wait_until(deadline_ns, thread_state, &|| thread_state.is_cut(), |_| ()) {
            self.pass();
            return Ok(());
        }
        Err(Halt::Cut)
    }

    fn think(&mut self, time_ns: u64) -> Result<(), Halt> {
        self.looked_ns = None; // time passes, also when it is broken off
        if time_ns == 0 {
            return Ok(());
        }
        if time_ns <= COMPUTED_NS {
            return self.compute(time_ns);
        }
        self.journal.flush();
        let thread_state = self.thread_state;
        let deadline_ns = now_ns().saturating_add(time_ns);
        if thread_state.rest(|| sleep_until(deadline_ns, || thread_state.is_cut())) {
            self.pass();
            return Ok(());
        }
        Err(Halt::Cut)
    }

    /// Time has passed without a call.
    fn pass(&mut self) {
        let now_ns = now_ns();
        self.journal.pass(now_ns);
        self.spare_look(now_ns);
    }
}

/// What stages know of the user that they work for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    /// The transaction's number in the segment.
    seq: u64,
    /// The pipeline's number among those of the user in the segment.
    pipeline: u64,
}

impl<K: Kernel> Interpreter<'_, K> {
    /// Have a pipeline done by helpers.
    pub(super) fn pipeline(&mut self, pipeline: &Arc<Pipeline>) -> Result<(), Halt> {
        self.looked_ns = None; // time passes, also when it is broken off
        let shift = Shift {
            seq: self.seq,
            pipeline: self.pipelines,
        };
        self.pipelines += 1;
        let (Some(lane_threads), Some(segment)) = (self.lane_threads.as_deref_mut(), self.segment)
        else {
            return Err(Halt::Failed);
        };
        self.journal.flush();
        lane_threads.man::<K>(&mut self.journal, pipeline, shift, segment)
    }

    /// The same interpreter, for a stage: what it draws and writes depends on nothing but its numbers.
    pub(crate) fn on_shift(mut self, shift: Shift, stage: usize) -> Self {
        let stage = stage as u64;
        self.seq = shift.seq;
        self.stream = self.stream.of_stage(shift.pipeline, stage);
        self.writes = (shift.pipeline * STAGES + stage + 1) << 32;
        self
    }

    /// Do a stage of a pipeline: every entry, once the stage before has done with it.
    pub(crate) fn stage(&mut self, stage: &LineStage<'_>) -> Result<(), Halt> {
        let begin_ns = now_ns();
        if let Err(errno) = self.verify(self.thread_state.target()) {
            // Buffers are mapped.
            self.journal.record_refusal(Op::Mmap, errno, begin_ns);
            return Err(Halt::Failed);
        }
        let gone = self.go_through(stage);
        let closed = self.close_all();
        self.forget();
        self.verified_end();
        gone.and(closed)
    }

    fn go_through(&mut self, stage: &LineStage<'_>) -> Result<(), Halt> {
        let Some(each) = stage.each() else {
            return Ok(());
        };
        let entries = self.entries_of(each).len();
        for turn in 0..entries {
            let row = turn as u64;
            let awaited = stage.last_of_batch(row, entries as u64);
            if !stage.may_begin(awaited) {
                self.looked_ns = None;
                self.journal.flush();
                stage.wait(awaited)?;
            }
            self.entry(each, turn)?;
            stage.complete(row);
        }
        Ok(())
    }

    /// What is left of it when its work is done.
    pub(crate) fn leave(self) -> (K, Journal) {
        (self.kernel, self.journal)
    }
}
