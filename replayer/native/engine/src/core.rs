//! What an engine's parts share: the setting, the user threads, the queues that Python drains.

use crate::interpreter::{FailedOp, Finished, Setting};
use crate::lock::hold;
use crate::ops::{op_name, outcome_name};
use crate::record::event::StuckData;
use crate::sys::{Doorbell, Folder};
use crate::thread_state::{Doing, ThreadState};
use crate::user_threads::UserThreads;
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How users' calls are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confinement {
    Jailed,
    Guarded,
    Null,
}

/// A finished transaction, for event listeners.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct TransactionData {
    pub user: u32,
    pub target: u16,
    pub name: Arc<str>,
    pub end_ns: u64,
    pub latency_ns: u64,
    pub bytes: u64,
    pub error: Option<String>,
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct OutcomeData {
    pub ticket: u64,
    pub value: u64,
    pub outcome: u8,
    pub expected: bool,
    pub service_ns: u64,
}

/// At most so many finished transactions wait to be drained.
const TRANSACTIONS: usize = 65_536;
/// At most so many answers wait to be drained.
const OUTCOMES: usize = 65_536;

pub(crate) struct Core {
    pub(crate) setting: Arc<Setting>,
    /// The names of the plan's transactions.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) targets: Vec<Vec<Arc<Folder>>>,
    pub(crate) confinement: Confinement,
    /// Whether targets are measured at the same time: users are dealt to them.
    abreast: bool,
    pub(crate) user_threads: UserThreads,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) watched: AtomicBool,
    pub(crate) transactions: ArrayQueue<TransactionData>,
    pub(crate) dropped: AtomicU64,
    pub(crate) outcomes: ArrayQueue<OutcomeData>,
    /// Users whose thread has ended; bounded by the number of users that were started since the last look.
    finished: Mutex<Vec<u32>>,
    /// Time in calls of users that have ended.
    pub(crate) in_call_ns: AtomicU64,
    /// Time of replays outside of calls of users that have ended.
    pub(crate) outside_ns: AtomicU64,
}

impl Core {
    pub(crate) fn new(
        setting: Setting,
        targets: Vec<Vec<Arc<Folder>>>,
        confinement: Confinement,
        doorbell: Arc<Doorbell>,
    ) -> Core {
        Core {
            names: setting.program.transaction_names().map(Arc::from).collect(),
            setting: Arc::new(setting),
            targets,
            confinement,
            abreast: false,
            user_threads: UserThreads::default(),
            doorbell,
            watched: AtomicBool::new(false),
            transactions: ArrayQueue::new(TRANSACTIONS),
            dropped: AtomicU64::new(0),
            outcomes: ArrayQueue::new(OUTCOMES),
            finished: Mutex::default(),
            in_call_ns: AtomicU64::new(0),
            outside_ns: AtomicU64::new(0),
        }
    }

    /// The same, with targets that are measured at the same time, or one after the other.
    pub(crate) fn abreast(self, abreast: bool) -> Core {
        Core { abreast, ..self }
    }

    /// Whether targets are measured at the same time.
    pub(crate) fn is_abreast(&self) -> bool {
        self.abreast
    }

    /// The state of a new user.
    pub(crate) fn new_user(&self, number: u32) -> ThreadState {
        match u16::try_from(self.targets.len()) {
            Ok(targets) if self.abreast => ThreadState::dealt(number, targets),
            _ => ThreadState::new(number),
        }
    }

    /// Monotonic nanoseconds since the engine's begin.
    pub(crate) fn since_begin(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.setting.begin_ns)
    }

    /// The folder of a user on a target: mount points are dealt round-robin.
    pub(crate) fn folder(&self, target: u16, user: u32) -> Option<&Arc<Folder>> {
        let mounts = self.targets.get(usize::from(target))?;
        mounts.get(user as usize % mounts.len().max(1))
    }

    /// Hand a finished transaction to whoever listens.
    pub(crate) fn publish(
        &self,
        user: u32,
        target: u16,
        name: &Arc<str>,
        finished: Finished,
        failed: Option<FailedOp>,
    ) {
        if !self.watched.load(Ordering::Relaxed) {
            return;
        }
        let error = failed.map(|failed| {
            let path = String::from_utf8_lossy(&failed.path).into_owned();
            format!(
                "{} {} {path}",
                op_name(failed.op as u8),
                outcome_name(failed.outcome)
            )
        });
        let transaction = TransactionData {
            user,
            target,
            name: Arc::clone(name),
            end_ns: self.since_begin(finished.end_ns),
            latency_ns: finished.latency_ns,
            bytes: finished.bytes,
            error,
        };
        if self.transactions.push(transaction).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.doorbell.ring();
    }

    /// Users take no further part.
    pub(crate) fn report_finished(&self, users: impl IntoIterator<Item = u32>) {
        hold(&self.finished).extend(users);
        self.doorbell.ring();
    }

    pub(crate) fn drain_finished(&self) -> Vec<u32> {
        self.doorbell.answer();
        std::mem::take(&mut *hold(&self.finished))
    }

    pub(crate) fn stuck(&self, thread_state: &ThreadState, doing: Doing, now_ns: u64) -> StuckData {
        StuckData {
            user: thread_state.number,
            target: thread_state.target(),
            op: doing.op_name(),
            path: doing.place.path(&self.setting.program, thread_state),
            age_ns: now_ns.saturating_sub(doing.since_ns),
        }
    }
}
