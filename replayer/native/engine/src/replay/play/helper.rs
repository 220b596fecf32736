//! Helpers: threads that wait for tasks of their user, and are confined, watched and counted as the user's own; they play lanes.

use super::helper_group::{Leaving, Outcome};
use super::lane_replay::{LaneContext, LaneReplay, Tools};
use super::line::{self, Post};
use super::log::open_log;
use super::performance::Performance;
use crate::interpreter::{Halt, Journal, Setting};
use crate::lock::hold;
use crate::ops::Op;
use crate::sys::{Folder, Kernel, own_folder_state, prepare_thread, thread_id};
use crate::thread_state::{ABANDONED, Mate, Place, ThreadState};
use crate::user_threads::{NAG, interrupt};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, park, park_timeout};

pub(super) enum Task {
    Lane(Role),
    Stage(Post),
}

/// The stack of a helper: one vectored call takes 16 KiB (chosen: pages that are not touched cost nothing).
const STACK: usize = 256 << 10;

/// A helper as its user sees it.
pub(super) struct HelperThread {
    inbox: Arc<Inbox>,
    thread: JoinHandle<()>,
}

impl HelperThread {
    /// Start the thread of this number, from 1, of a user.
    pub(super) fn start<K: Kernel>(
        setting: &Arc<Setting>,
        user: &ThreadState,
        lane: usize,
    ) -> io::Result<HelperThread> {
        let number = u32::try_from(lane).unwrap_or(u32::MAX);
        let thread_state = Arc::new(ThreadState::of_lane(user.user, number));
        let inbox = Arc::new(Inbox::default());
        let setting = Arc::clone(setting);
        let (of_thread, tasks) = (Arc::clone(&thread_state), Arc::clone(&inbox));
        let thread = Builder::new()
            .name(format!("user-{}-{lane}", user.user))
            .stack_size(STACK)
            .spawn(move || {
                let prepared = PreparedThread::new(&setting, &of_thread);
                live::<K>(&prepared, &tasks);
            })?;
        user.add_mate(Mate {
            thread_state,
            thread: thread.thread().clone(),
        });
        Ok(HelperThread { inbox, thread })
    }

    pub(super) fn give(&self, task: Task) {
        self.inbox.give(task);
        self.thread.thread().unpark();
    }

    /// There will be no more tasks.
    pub(super) fn end(&self) {
        self.inbox.end();
        self.thread.thread().unpark();
    }

    pub(super) fn join(self) -> std::thread::Result<()> {
        self.thread.join()
    }
}

/// Where a helper finds its next task.
#[derive(Default)]
struct Inbox {
    task: Mutex<Option<Task>>,
    ended: AtomicBool,
}

impl Inbox {
    /// Who gives unparks the thread afterwards.
    fn give(&self, task: Task) {
        *hold(&self.task) = Some(task);
    }

    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Wait for a task; `None` when there will be none.
    fn wait(&self) -> Option<Task> {
        loop {
            if let Some(task) = hold(&self.task).take() {
                return Some(task);
            }
            if self.ended.load(Ordering::SeqCst) {
                return None;
            }
            park();
        }
    }
}

/// Do what comes, until nothing comes any more.
fn live<K: Kernel>(prepared: &PreparedThread, inbox: &Inbox) {
    let mut tools = Tools::default();
    let mut confined = None;
    while let Some(task) = inbox.wait() {
        match task {
            Task::Lane(role) => play::<K>(prepared, &role, (&mut confined, &mut tools)),
            Task::Stage(post) => line::man::<K>(prepared, &post, &mut confined),
        }
    }
}

/// For whom, and where.
pub(super) struct Duty {
    /// Which of the user's threads it is on.
    pub(super) lane: usize,
    pub(super) target: u16,
    pub(super) folder: Arc<Folder>,
    pub(super) transaction: u16,
    /// When the transaction began, and whether it came by a schedule.
    pub(super) began: (u64, bool),
}

/// A helper's thread, from its begin to its end.
pub(super) struct PreparedThread {
    pub(super) setting: Arc<Setting>,
    pub(super) thread_state: Arc<ThreadState>,
}

impl PreparedThread {
    pub(super) fn new(setting: &Arc<Setting>, thread_state: &Arc<ThreadState>) -> PreparedThread {
        prepare_thread();
        // As for a user's own thread.
        own_folder_state();
        let thread = thread_id();
        if let Some(waiting) = setting.run_queue.enter(thread) {
            thread_state.set_waiting(waiting);
        }
        thread_state.set_thread(thread);
        PreparedThread {
            setting: Arc::clone(setting),
            thread_state: Arc::clone(thread_state),
        }
    }

    /// What is recorded of a task.
    pub(super) fn journal(&self, duty: &Duty) -> Journal {
        let recorder = &self.setting.recorder;
        let lane = u32::try_from(duty.lane).unwrap_or(0);
        let journal = Journal::new(
            Arc::clone(recorder),
            recorder.shard(self.thread_state.user.wrapping_add(lane)),
            Arc::clone(&self.thread_state),
            duty.target,
            self.setting.begin_ns,
        );
        let (start_ns, scheduled) = duty.began;
        let mut journal = journal.on_schedule(scheduled);
        journal.begin(duty.transaction, start_ns, start_ns);
        journal
    }
}

impl Drop for PreparedThread {
    fn drop(&mut self) {
        self.thread_state.set_thread(0);
        if let Some(waiting) = self.thread_state.waiting() {
            self.setting.run_queue.leave(waiting);
        }
    }
}

/// Where a helper is confined to: a target, and the calls that may be made there.
pub(super) type Confined<K> = Option<(u16, K)>;

/// Confine this thread to where its task is done, unless it is; a failure is told.
pub(super) fn confine<K: Kernel>(
    prepared: &PreparedThread,
    duty: &Duty,
    confined: Confined<K>,
    is_over: impl Fn() -> bool,
) -> Result<(u16, K), Halt> {
    prepared.thread_state.set_target(duty.target);
    if let Some(confined) = confined.filter(|(target, _)| *target == duty.target) {
        return Ok(confined);
    }
    let enter = || K::enter(&duty.folder);
    match prepared.thread_state.show(Op::Chdir, Place::FOLDER, enter) {
        Ok(kernel) => Ok((duty.target, kernel)),
        Err(Errno::INTR) if is_over() => Err(Halt::Cut),
        Err(errno) => {
            let message = format!("lane {} cannot enter the run's folder: {errno}", duty.lane);
            prepared.setting.warn(prepared.thread_state.user, message);
            Err(Halt::Failed)
        }
    }
}

/// A helper's part in a performance.
pub(super) struct Role {
    pub(super) performance: Arc<Performance>,
    pub(super) user: Arc<ThreadState>,
    pub(super) duty: Duty,
}

/// Play a lane to its end.
pub(super) fn play<K: Kernel>(
    prepared: &PreparedThread,
    role: &Role,
    (confined, tools): (&mut Confined<K>, &mut Tools),
) {
    let performance = &role.performance;
    let mut leaving = Leaving::new(&performance.helper_group);
    perform::<K>(prepared, role, (confined, tools), &mut leaving.outcome);
    let failed = leaving.outcome.result.is_err();
    drop(leaving);
    if failed && performance.is_halted() {
        // The user's own thread may be in a call that waits.
        let user = &role.user;
        while performance.owner_plays() && user.flags() & ABANDONED == 0 {
            interrupt(user, performance.helper_group.owner());
            park_timeout(NAG);
        }
    }
}

fn perform<K: Kernel>(
    prepared: &PreparedThread,
    role: &Role,
    (confined, tools): (&mut Confined<K>, &mut Tools),
    outcome: &mut Outcome,
) {
    let (setting, thread_state, performance) =
        (&prepared.setting, &prepared.thread_state, &role.performance);
    thread_state.set_names(&performance.names);
    let is_over = || performance.is_over(thread_state);
    let kernel = match confine(prepared, &role.duty, confined.take(), is_over) {
        Ok(found) => &confined.insert(found).1,
        Err(halt) => {
            outcome.result = Err(halt);
            performance.halt();
            return;
        }
    };
    tools.log = open_log(setting, performance.id, role.duty.lane);
    let mut journal = prepared.journal(&role.duty);
    let context = LaneContext {
        setting,
        kernel,
        thread_state,
        journal: &mut journal,
        tools,
    };
    outcome.result = LaneReplay::new(context, performance, role.duty.lane).play();
    outcome.take(journal);
}
