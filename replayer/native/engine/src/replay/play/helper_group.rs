//! What the threads of a user that work on one thing share: whether they go on, and what became of those that have ended.

use crate::interpreter::{FailedOp, Halt, Journal};
use crate::lock::hold;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Thread, current};

/// What became of the threads that have ended.
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
    /// What a thread has recorded whose work is over.
    pub(super) fn take(&mut self, mut journal: Journal) {
        (self.bytes, self.latest_ns) = journal.part();
        self.failed = journal.failed.take();
        journal.flush();
    }

    /// Of a thread that has not come to its end.
    pub(crate) fn unknown() -> Outcome {
        Outcome {
            result: Err(Halt::Failed),
            ..Outcome::default()
        }
    }

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
pub(crate) struct HelperGroup {
    halted: AtomicBool,
    /// Helpers that have not ended.
    remaining: AtomicUsize,
    outcome: Mutex<Outcome>,
    /// The user's own thread.
    owner: Thread,
}

impl HelperGroup {
    /// Of so many helpers; to be made by the user's own thread.
    pub(crate) fn new(helpers: usize) -> HelperGroup {
        HelperGroup {
            halted: AtomicBool::new(false),
            remaining: AtomicUsize::new(helpers),
            outcome: Mutex::default(),
            owner: current(),
        }
    }

    /// Nobody may begin anything more.
    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Relaxed)
    }

    /// One cannot go on, so none can.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
    }

    /// A helper has ended. Called once for each, also for one that could not begin.
    pub(crate) fn leave(&self, outcome: Outcome) {
        hold(&self.outcome).add(outcome);
        self.remaining.fetch_sub(1, Ordering::SeqCst);
        self.owner.unpark();
    }

    pub(crate) fn owner(&self) -> &Thread {
        &self.owner
    }

    pub(crate) fn remaining(&self) -> usize {
        self.remaining.load(Ordering::SeqCst)
    }

    /// What became of all helpers.
    pub(crate) fn outcome(&self) -> Outcome {
        std::mem::take(&mut *hold(&self.outcome))
    }
}

/// Says that a helper has ended, whatever ended it.
pub(super) struct Leaving<'a> {
    helper_group: &'a HelperGroup,
    pub(super) outcome: Outcome,
}

impl<'a> Leaving<'a> {
    pub(super) fn new(helper_group: &'a HelperGroup) -> Leaving<'a> {
        Leaving {
            helper_group,
            outcome: Outcome::unknown(),
        }
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.helper_group.halt();
        }
        self.helper_group.leave(std::mem::take(&mut self.outcome));
    }
}
