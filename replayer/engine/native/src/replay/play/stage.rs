//! What the lanes of one performance share.

use super::feed::Feed;
use super::progress::Progress;
use super::slots::Slots;
use crate::interpreter::{FailedOp, Halt};
use crate::lock::hold;
use crate::program::ReplayPace;
use crate::pulse::Pulse;
use crate::replay::names::Names;
use crate::replay::reel::Reel;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Thread, current};

/// Which performance it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub(crate) user: u32,
    /// Of all that this user gave on this engine.
    pub(crate) performance: u64,
    pub(crate) trace: u16,
    pub(crate) target: u16,
    pub(crate) transaction: u16,
}

/// When its events are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tempo {
    pub(crate) pace: ReplayPace,
    pub(crate) speed_percent: u32,
    /// When the performance begins.
    pub(crate) begin_ns: u64,
}

/// What became of the lanes that have ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) bytes: u64,
    pub(crate) latest_ns: u64,
    pub(crate) failed: Option<FailedOp>,
    pub(crate) result: Result<(), Halt>,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome {
            bytes: 0,
            latest_ns: 0,
            failed: None,
            result: Ok(()),
        }
    }
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.bytes += other.bytes;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.failed = self.failed.take().or(other.failed);
        self.result = match (self.result, other.result) {
            (Err(Halt::Failed | Halt::Unmet), _) | (_, Err(Halt::Failed | Halt::Unmet)) => {
                Err(Halt::Failed)
            }
            (Err(Halt::Cut), _) | (_, Err(Halt::Cut)) => Err(Halt::Cut),
            (Ok(()), Ok(())) => Ok(()),
        };
    }
}

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) reel: Arc<Reel>,
    pub(crate) names: Arc<Names>,
    pub(crate) cast: Cast,
    pub(crate) tempo: Tempo,
    pub(crate) progress: Progress,
    pub(crate) feed: Feed,
    pub(crate) slots: Slots,
    halted: AtomicBool,
    /// Lanes on threads of their own that have not ended.
    remaining: AtomicUsize,
    outcome: Mutex<Outcome>,
    /// The user's own thread, and whether it still plays its lane.
    owner: Thread,
    owner_plays: AtomicBool,
}

impl Stage {
    /// To be made by the user's own thread.
    pub(crate) fn new(reel: &Arc<Reel>, names: &Arc<Names>, cast: Cast, tempo: Tempo) -> Stage {
        let lanes = usize::from(reel.lanes).max(1);
        Stage {
            reel: Arc::clone(reel),
            names: Arc::clone(names),
            cast,
            tempo,
            progress: Progress::new(lanes),
            feed: Feed::new(reel.script.play(), lanes),
            slots: Slots::new(reel.slots, lanes),
            halted: AtomicBool::new(false),
            remaining: AtomicUsize::new(lanes - 1),
            outcome: Mutex::default(),
            owner: current(),
            owner_plays: AtomicBool::new(true),
        }
    }

    pub(crate) fn lanes(&self) -> usize {
        usize::from(self.reel.lanes).max(1)
    }

    /// No lane may begin another event.
    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed)
    }

    /// A lane cannot go on, so none can.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
    }

    /// Whether a lane on the thread of this pulse shall do nothing more.
    #[inline]
    pub(crate) fn is_over(&self, pulse: &Pulse) -> bool {
        self.is_halted() || pulse.is_cut()
    }

    /// A lane on a thread of its own has ended. Called once for each, also for one that could not begin.
    pub(crate) fn leave(&self, outcome: Outcome) {
        hold(&self.outcome).add(outcome);
        self.remaining.fetch_sub(1, Ordering::SeqCst);
        self.owner.unpark();
    }

    /// The lane of the user's own thread has ended.
    pub(crate) fn leave_own(&self) {
        self.owner_plays.store(false, Ordering::SeqCst);
    }

    pub(crate) fn owner(&self) -> &Thread {
        &self.owner
    }

    pub(crate) fn owner_plays(&self) -> bool {
        self.owner_plays.load(Ordering::SeqCst)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.remaining.load(Ordering::SeqCst)
    }

    /// What became of all lanes but the user's own.
    pub(crate) fn outcome(&self) -> Outcome {
        std::mem::take(&mut *hold(&self.outcome))
    }
}
