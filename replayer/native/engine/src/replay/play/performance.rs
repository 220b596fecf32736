//! What the lanes of one performance share.

use super::batch_queue::BatchQueue;
use super::helper_group::HelperGroup;
use super::progress::Progress;
use super::slots::Slots;
use crate::program::ReplayPace;
use crate::replay::names::Names;
use crate::replay::program::ReplayProgram;
use crate::thread_state::ThreadState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PerformanceId {
    pub(crate) user: u32,
    /// Of all that this user gave on this engine.
    pub(crate) performance: u64,
    pub(crate) trace: u16,
    pub(crate) target: u16,
    pub(crate) transaction: u16,
}

/// When its events are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) pace: ReplayPace,
    pub(crate) speed_percent: u32,
    pub(crate) begin_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Performance {
    pub(crate) replay_program: Arc<ReplayProgram>,
    pub(crate) names: Arc<Names>,
    pub(crate) id: PerformanceId,
    pub(crate) timing: Timing,
    pub(crate) progress: Progress,
    pub(crate) batch_queue: BatchQueue,
    pub(crate) slots: Slots,
    pub(super) helper_group: HelperGroup,
    /// Whether the user's own thread still plays its lane.
    owner_plays: AtomicBool,
}

impl Performance {
    /// To be made by the user's own thread.
    pub(crate) fn new(
        replay_program: &Arc<ReplayProgram>,
        names: &Arc<Names>,
        id: PerformanceId,
        timing: Timing,
    ) -> Performance {
        let lanes = usize::from(replay_program.lanes).max(1);
        Performance {
            replay_program: Arc::clone(replay_program),
            names: Arc::clone(names),
            id,
            timing,
            progress: Progress::new(lanes),
            batch_queue: BatchQueue::new(replay_program.script.play(), lanes),
            slots: Slots::new(replay_program.slots, lanes),
            helper_group: HelperGroup::new(lanes - 1),
            owner_plays: AtomicBool::new(true),
        }
    }

    pub(crate) fn lanes(&self) -> usize {
        usize::from(self.replay_program.lanes).max(1)
    }

    /// No lane may begin another event.
    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.helper_group.is_halted()
    }

    /// A lane cannot go on, so none can.
    pub(crate) fn halt(&self) {
        self.helper_group.halt();
    }

    /// Whether a lane on the thread of this thread state shall do nothing more.
    #[inline]
    pub(crate) fn is_over(&self, thread_state: &ThreadState) -> bool {
        self.is_halted() || thread_state.is_cut()
    }

    /// The lane of the user's own thread has ended.
    pub(crate) fn leave_own(&self) {
        self.owner_plays.store(false, Ordering::SeqCst);
    }

    pub(crate) fn owner_plays(&self) -> bool {
        self.owner_plays.load(Ordering::SeqCst)
    }
}
