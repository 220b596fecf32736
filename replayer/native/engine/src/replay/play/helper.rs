//! Helpers: threads that wait for tasks of their user.

use super::lane::{self, Role};
use super::lane_replay::Tools;
use super::line::{self, Post};
use super::prepared::PreparedThread;
use crate::interpreter::Setting;
use crate::lock::hold;
use crate::sys::Kernel;
use crate::thread_state::{Mate, ThreadState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, park};

/// What a helper is to do.
pub(super) enum Task {
    /// A lane of a performance.
    Lane(Role),
    /// A performance of a pipeline.
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
            Task::Lane(role) => lane::play::<K>(prepared, &role, (&mut confined, &mut tools)),
            Task::Stage(post) => line::man::<K>(prepared, &post, &mut confined),
        }
    }
}
