//! A thread that plays lanes for a user beside the user's own: prepared, confined, watched and counted as that is.

use super::log::open_log;
use super::player::{Player, Seat, Tools};
use super::stage::{Outcome, Stage};
use crate::clock::now_ns;
use crate::crowd::{NAG, interrupt};
use crate::interpreter::{Halt, Journal, Setting};
use crate::lock::hold;
use crate::ops::Op;
use crate::pulse::{ABANDONED, Place, Pulse};
use crate::record::event::Event;
use crate::sys::{Folder, Places, own_folder_state, prepare_thread, thread_id};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{park, park_timeout};

/// What a companion is to play.
pub(super) struct Task {
    pub(super) stage: Arc<Stage>,
    pub(super) lane: usize,
    pub(super) folder: Arc<Folder>,
    pub(super) user: Arc<Pulse>,
    /// When the transaction began that the performance is part of, and whether it came by a schedule.
    pub(super) began: (u64, bool),
}

/// Where a companion finds its next task.
#[derive(Default)]
pub(super) struct Inbox {
    task: Mutex<Option<Task>>,
    ended: AtomicBool,
}

impl Inbox {
    /// Who gives unparks the thread afterwards.
    pub(super) fn give(&self, task: Task) {
        *hold(&self.task) = Some(task);
    }

    /// There will be no more tasks.
    pub(super) fn end(&self) {
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
    setting: Arc<Setting>,
    pulse: Arc<Pulse>,
}

impl Living {
    pub(super) fn new(setting: &Arc<Setting>, pulse: &Arc<Pulse>) -> Living {
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
}

impl Drop for Living {
    fn drop(&mut self) {
        self.pulse.clear_thread();
        if let Some(waiting) = self.pulse.waiting() {
            self.setting.run_queue.leave(waiting);
        }
    }
}

/// Play what comes, until nothing comes any more.
pub(super) fn live<K: Places>(living: &Living, inbox: &Inbox) {
    let mut tools = Tools::default();
    let mut kernel = None;
    while let Some(task) = inbox.wait() {
        let mut leaving = Leaving {
            stage: Arc::clone(&task.stage),
            outcome: Outcome {
                result: Err(Halt::Failed),
                ..Outcome::default()
            },
        };
        play::<K>(
            living,
            &task,
            (&mut kernel, &mut tools),
            &mut leaving.outcome,
        );
        if leaving.outcome.result.is_err() && task.stage.is_halted() {
            // The user's own thread may be in a call that waits.
            while task.stage.owner_plays() && task.user.flags() & ABANDONED == 0 {
                interrupt(&task.user, task.stage.owner());
                park_timeout(NAG);
            }
        }
    }
}

/// Confine this thread to where the performance is given; one that cannot be is told.
fn confine<K: Places>(living: &Living, task: &Task) -> Result<(u16, K), Halt> {
    let enter = || K::enter(&task.folder);
    match living.pulse.show(Op::Chdir, Place::FOLDER, enter) {
        Ok(kernel) => Ok((task.stage.cast.target, kernel)),
        Err(Errno::INTR) if task.stage.is_over(&living.pulse) => Err(Halt::Cut),
        Err(errno) => {
            living.setting.recorder.log(&Event::Broken {
                t_ns: now_ns().saturating_sub(living.setting.begin_ns),
                user: living.pulse.user,
                message: format!("lane {} cannot enter the run's folder: {errno}", task.lane),
            });
            Err(Halt::Failed)
        }
    }
}

/// Says that a lane has ended, whatever ended it.
struct Leaving {
    stage: Arc<Stage>,
    outcome: Outcome,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stage.halt();
        }
        self.stage.leave(std::mem::take(&mut self.outcome));
    }
}

fn play<K: Places>(
    living: &Living,
    task: &Task,
    (kernel, tools): (&mut Option<(u16, K)>, &mut Tools),
    outcome: &mut Outcome,
) {
    let (setting, pulse, stage) = (&living.setting, &living.pulse, &task.stage);
    let cast = stage.cast;
    pulse.set_target(cast.target);
    pulse.set_names(&stage.names);
    let is_there = |(target, _): &(u16, K)| *target == cast.target;
    let confined = match kernel.take().filter(is_there) {
        Some(confined) => Ok(confined),
        None => confine(living, task),
    };
    let kernel = match confined {
        Ok(confined) => &kernel.insert(confined).1,
        Err(halt) => {
            outcome.result = Err(halt);
            stage.halt();
            return;
        }
    };
    tools.log = open_log(setting, cast, task.lane);
    let recorder = &setting.recorder;
    let lane = u32::try_from(task.lane).unwrap_or(0);
    let shard = recorder.shard(cast.user.wrapping_add(lane));
    let mut journal = Journal::new(
        Arc::clone(recorder),
        shard,
        Arc::clone(pulse),
        cast.target,
        setting.begin_ns,
    );
    let (start_ns, scheduled) = task.began;
    journal = journal.on_schedule(scheduled);
    journal.begin(cast.transaction, start_ns, start_ns);
    let seat = Seat {
        setting,
        kernel,
        pulse,
        journal: &mut journal,
        tools,
    };
    outcome.result = Player::new(seat, stage, task.lane).play();
    (outcome.bytes, outcome.latest_ns) = journal.part();
    outcome.failed = journal.failed.take();
    journal.flush();
}
