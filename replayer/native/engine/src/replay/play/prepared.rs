//! What a thread is that works for a user beside the user's own: prepared, confined, watched and counted as that is.

use crate::clock::now_ns;
use crate::interpreter::{Halt, Journal, Setting};
use crate::ops::Op;
use crate::record::event::Event;
use crate::sys::{Folder, Kernel, own_folder_state, prepare_thread, thread_id};
use crate::thread_state::{Place, ThreadState};
use rustix::io::Errno;
use std::sync::Arc;

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
        self.thread_state.clear_thread();
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
            prepared.setting.recorder.log(&Event::Broken {
                t_ns: now_ns().saturating_sub(prepared.setting.begin_ns),
                user: prepared.thread_state.user,
                message: format!("lane {} cannot enter the run's folder: {errno}", duty.lane),
            });
            Err(Halt::Failed)
        }
    }
}
