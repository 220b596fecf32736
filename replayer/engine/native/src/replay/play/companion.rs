//! A thread that works for a user beside the user's own: prepared, confined, watched and counted as that is.

use super::lane::{self, Role};
use super::line::{self, Post};
use super::player::Tools;
use crate::clock::now_ns;
use crate::interpreter::{Halt, Journal, Setting};
use crate::lock::hold;
use crate::ops::Op;
use crate::pulse::{Mate, Place, Pulse};
use crate::record::event::Event;
use crate::sys::{Folder, Places, own_folder_state, prepare_thread, thread_id};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, park};

/// What a companion is to do.
pub(super) enum Task {
    /// A lane of a performance.
    Lane(Role),
    /// A stage of a pipeline.
    Stage(Post),
}

/// For whom, and where.
pub(super) struct Duty {
    /// Which of the user's threads it is on.
    pub(super) lane: usize,
    pub(super) target: u16,
    pub(super) folder: Arc<Folder>,
    pub(super) user: Arc<Pulse>,
    pub(super) transaction: u16,
    /// When the transaction began, and whether it came by a schedule.
    pub(super) began: (u64, bool),
}

/// The stack of a companion: one vectored call takes 16 KiB (chosen: pages that are not touched cost nothing).
const STACK: usize = 256 << 10;

/// A companion as its user sees it.
pub(super) struct Companion {
    inbox: Arc<Inbox>,
    thread: JoinHandle<()>,
}

impl Companion {
    /// Start the thread of this number, from 1, of a user.
    pub(super) fn start<K: Places>(
        setting: &Arc<Setting>,
        user: &Pulse,
        lane: usize,
    ) -> io::Result<Companion> {
        let number = u32::try_from(lane).unwrap_or(u32::MAX);
        let pulse = Arc::new(Pulse::of_lane(user.user, number));
        let inbox = Arc::new(Inbox::default());
        let setting = Arc::clone(setting);
        let (of_thread, tasks) = (Arc::clone(&pulse), Arc::clone(&inbox));
        let thread = Builder::new()
            .name(format!("user-{}-{lane}", user.user))
            .stack_size(STACK)
            .spawn(move || {
                let living = Living::new(&setting, &of_thread);
                live::<K>(&living, &tasks);
            })?;
        user.add_mate(Mate {
            pulse,
            thread: thread.thread().clone(),
        });
        Ok(Companion { inbox, thread })
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

/// Where a companion finds its next task.
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

/// A companion's thread, from its begin to its end.
pub(super) struct Living {
    pub(super) setting: Arc<Setting>,
    pub(super) pulse: Arc<Pulse>,
}

impl Living {
    fn new(setting: &Arc<Setting>, pulse: &Arc<Pulse>) -> Living {
        prepare_thread();
        // As for a user's own thread.
        own_folder_state();
        let thread = thread_id();
        if let Some(waiting) = setting.run_queue.enter(thread) {
            pulse.set_waiting(waiting);
        }
        pulse.set_thread(thread);
        Living {
            setting: Arc::clone(setting),
            pulse: Arc::clone(pulse),
        }
    }

    /// What is recorded of a task.
    pub(super) fn journal(&self, duty: &Duty) -> Journal {
        let recorder = &self.setting.recorder;
        let lane = u32::try_from(duty.lane).unwrap_or(0);
        let journal = Journal::new(
            Arc::clone(recorder),
            recorder.shard(self.pulse.user.wrapping_add(lane)),
            Arc::clone(&self.pulse),
            duty.target,
            self.setting.begin_ns,
        );
        let (start_ns, scheduled) = duty.began;
        let mut journal = journal.on_schedule(scheduled);
        journal.begin(duty.transaction, start_ns, start_ns);
        journal
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.pulse.clear_thread();
        if let Some(waiting) = self.pulse.waiting() {
            self.setting.run_queue.leave(waiting);
        }
    }
}

/// Where a companion is confined to: a target, and the calls that may be made there.
pub(super) type Confined<K> = Option<(u16, K)>;

/// Do what comes, until nothing comes any more.
fn live<K: Places>(living: &Living, inbox: &Inbox) {
    let mut tools = Tools::default();
    let mut confined = None;
    while let Some(task) = inbox.wait() {
        match task {
            Task::Lane(role) => lane::play::<K>(living, &role, (&mut confined, &mut tools)),
            Task::Stage(post) => line::man::<K>(living, &post, &mut confined),
        }
    }
}

/// Confine this thread to where its task is done, unless it is; a failure is told.
pub(super) fn confine<K: Places>(
    living: &Living,
    duty: &Duty,
    confined: Confined<K>,
    is_over: impl Fn() -> bool,
) -> Result<(u16, K), Halt> {
    living.pulse.set_target(duty.target);
    if let Some(confined) = confined.filter(|(target, _)| *target == duty.target) {
        return Ok(confined);
    }
    let enter = || K::enter(&duty.folder);
    match living.pulse.show(Op::Chdir, Place::FOLDER, enter) {
        Ok(kernel) => Ok((duty.target, kernel)),
        Err(Errno::INTR) if is_over() => Err(Halt::Cut),
        Err(errno) => {
            living.setting.recorder.log(&Event::Broken {
                t_ns: now_ns().saturating_sub(living.setting.begin_ns),
                user: living.pulse.user,
                message: format!("lane {} cannot enter the run's folder: {errno}", duty.lane),
            });
            Err(Halt::Failed)
        }
    }
}
