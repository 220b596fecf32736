//! A pipeline of a plan: stages that go through the entries of a dataset side by side, each on a helper.

use super::helper::{Confined, Duty, PreparedThread, confine};
use super::helper_group::{HelperGroup, Leaving, Outcome};
use super::progress::Progress;
use crate::interpreter::{Halt, Interpreter, Shift};
use crate::program::{Each, Pipeline};
use crate::replay::program::Wait;
use crate::segment::Segment;
use crate::sys::Kernel;
use crate::thread_state::ThreadState;
use std::sync::Arc;

/// A pipeline under way.
#[derive(Debug)]
pub(crate) struct Line {
    pipeline: Arc<Pipeline>,
    /// How far its stages are, in entries.
    progress: Progress,
    pub(super) helper_group: HelperGroup,
}

impl Line {
    /// To be made by the user's own thread.
    pub(super) fn new(pipeline: &Arc<Pipeline>) -> Line {
        let stages = pipeline.stages.len();
        Line {
            pipeline: Arc::clone(pipeline),
            progress: Progress::new(stages),
            helper_group: HelperGroup::new(stages),
        }
    }

    /// Whether a stage on the thread of this thread state shall do nothing more.
    fn is_over(&self, thread_state: &ThreadState) -> bool {
        self.helper_group.is_halted() || thread_state.is_cut()
    }
}

/// A stage as its thread sees it: what it does, and when it may.
pub(crate) struct LineStage<'a> {
    line: &'a Line,
    number: usize,
    thread_state: &'a ThreadState,
}

impl LineStage<'_> {
    pub(crate) fn each(&self) -> Option<&Each> {
        self.line.pipeline.stages.get(self.number)
    }

    /// The last one of the entries that the stage before hands on together with one.
    #[inline]
    pub(crate) fn last_of_batch(&self, turn: u64, entries: u64) -> u64 {
        let before = self.before().map(usize::from);
        let batch = before.and_then(|before| self.line.pipeline.batches.get(before));
        let batch = batch.copied().unwrap_or(1);
        let end = (turn / batch + 1).saturating_mul(batch);
        end.min(entries).saturating_sub(1)
    }

    /// Whether the stage before has done with an entry.
    #[inline]
    pub(crate) fn may_begin(&self, turn: u64) -> bool {
        match self.before() {
            Some(lane) => self.line.progress.has_done(Wait { lane, row: turn }),
            None => true,
        }
    }

    /// Wait for that.
    ///
    /// # Errors
    /// The pipeline is over before.
    pub(crate) fn wait(&self, turn: u64) -> Result<(), Halt> {
        let is_over = || self.line.is_over(self.thread_state);
        let done = self.before().is_none_or(|lane| {
            let wait = Wait { lane, row: turn };
            self.line.progress.wait(wait, &is_over)
        });
        if done { Ok(()) } else { Err(Halt::Cut) }
    }

    /// It has done with an entry.
    #[inline]
    pub(crate) fn complete(&self, turn: u64) {
        self.line.progress.complete(self.number, turn);
    }

    fn before(&self) -> Option<u16> {
        let before = self.number.checked_sub(1)?;
        u16::try_from(before).ok()
    }
}

/// A helper's place in a line.
pub(super) struct Post {
    pub(super) line: Arc<Line>,
    pub(super) number: usize,
    pub(super) duty: Duty,
    pub(super) shift: Shift,
    pub(super) segment: Segment,
}

/// Do a stage to its end.
pub(super) fn man<K: Kernel>(prepared: &PreparedThread, post: &Post, confined: &mut Confined<K>) {
    let helper_group = &post.line.helper_group;
    let mut leaving = Leaving::new(helper_group);
    let result = work(prepared, post, confined, &mut leaving.outcome);
    if result.is_err() {
        helper_group.halt();
    }
    leaving.outcome.result = result;
}

fn work<K: Kernel>(
    prepared: &PreparedThread,
    post: &Post,
    confined: &mut Confined<K>,
    outcome: &mut Outcome,
) -> Result<(), Halt> {
    let (line, thread_state) = (&*post.line, &*prepared.thread_state);
    let is_over = || line.is_over(thread_state);
    let (target, kernel) = confine(prepared, &post.duty, confined.take(), is_over)?;
    let journal = prepared.journal(&post.duty);
    let round = post.segment.round;
    let interpreter = Interpreter::new(&prepared.setting, thread_state, kernel, journal, round);
    let mut interpreter = interpreter
        .in_segment(&post.segment)
        .on_shift(post.shift, post.number);
    let stage = LineStage {
        line,
        number: post.number,
        thread_state,
    };
    let result = interpreter.stage(&stage);
    let (kernel, journal) = interpreter.leave();
    outcome.take(journal);
    *confined = Some((target, kernel));
    result
}
