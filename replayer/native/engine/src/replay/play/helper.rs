//! Helpers: threads that wait for tasks of their user, and are confined, watched and counted as the user's own; they play lanes.

use super::helper_group::{Leaving, Outcome};
use super::lane_replay::{LaneContext, LaneReplay, Tools};
use super::line::{self, Post};
use super::log::open_log;
use super::performance::Performance;
use crate::interpreter::{Halt, Journal, Setting};
use crate::ops::Op;
use crate::sys::{Folder, Kernel, own_folder_state, prepare_thread, thread_id};
use crate::thread_state::{ABANDONED, Mate, Place, ThreadState};
use crate::user_threads::{NAG, interrupt};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle, park_timeout};

pub(super) enum Task {
    Lane(Role),
    Stage(Post),
}

/// The stack of a helper: one vectored call takes 16 KiB (chosen: pages that are not touched cost nothing).
const STACK: usize = 256 << 10;

/// A helper as its user sees it.
pub(super) struct HelperThread {
    /// There are no more tasks once it is dropped.
    tasks: Sender<Task>,
    pub(super) thread: JoinHandle<()>,
}

impl HelperThread {
    /// Start the thread of this number, from 1, of a user.
    pub(super) fn start<K: Kernel>(
        setting: &Arc<Setting>,
        user: &ThreadState,
        lane: usize,
    ) -> io::Result<HelperThread> {
        let number = u32::try_from(lane).unwrap_or(u32::MAX);
        let thread_state = Arc::new(user.lane(number));
        let (tasks, waiting) = channel();
        let (setting, of_thread) = (Arc::clone(setting), Arc::clone(&thread_state));
        let thread = Builder::new()
            .name(format!("user-{}-{lane}", user.user))
            .stack_size(STACK)
            .spawn(move || {
                let prepared = PreparedThread::new(&setting, &of_thread);
                live::<K>(&prepared, &waiting);
            })?;
        user.add_mate(Mate {
            thread_state,
            thread: thread.thread().clone(),
        });
        Ok(HelperThread { tasks, thread })
    }

    pub(super) fn give(&self, task: Task) {
        // One that has ended by a panic of its own takes none.
        let _taken = self.tasks.send(task);
    }
}

/// Do what comes, until nothing comes any more.
fn live<K: Kernel>(prepared: &PreparedThread, tasks: &Receiver<Task>) {
    let mut tools = Tools::default();
    let mut confined = None;
    for task in tasks {
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

/// A thread of a user, from its begin to its end.
pub(crate) struct PreparedThread {
    pub(super) setting: Arc<Setting>,
    pub(super) thread_state: Arc<ThreadState>,
}

impl PreparedThread {
    pub(crate) fn new(setting: &Arc<Setting>, thread_state: &Arc<ThreadState>) -> PreparedThread {
        prepare_thread();
        // Where that is not permitted the confinement is `guarded`, which does not need it; the umask is the process's then.
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
        let user = self.thread_state.user.wrapping_add(lane);
        let shard = recorder.shard_at(self.thread_state.home, user);
        let journal = (self.setting).journal(shard, &self.thread_state, duty.target);
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
