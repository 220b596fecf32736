//! Pipelines: each stage has an interpreter of its own, on a thread of its own.

use super::{Halt, Interpreter, Journal};
use crate::clock::now_ns;
use crate::ops::Op;
use crate::program::{Pipeline, STAGES};
use crate::replay::play::LineStage;
use crate::sys::Kernel;
use std::sync::Arc;

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
