//! The life of a user's thread: wait for a segment, run transactions at their pace, wait again.

use crate::clock::now_ns;
use crate::core::{Confinement, Core};
use crate::interpreter::Interpreter;
use crate::program::Pace;
use crate::replay::play::{LaneThreads, PreparedThread};
use crate::segment::Segment;
use crate::sys::{Guarded, Jailed, Kernel, Null};
use crate::thread_state::ThreadState;
use crate::user_segment::UserSegment;
use crate::user_threads::Refusal;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Builder;

/// The stack of a user's thread. Steps nest at most 16 deep; measured: less than 24 KiB are used, and 16 KiB by a vectored call of a replay.
const STACK: usize = 128 << 10;

/// Start the thread of a user that runs the plan.
pub(crate) fn start(core: &Arc<Core>, number: u32) -> io::Result<Result<(), Refusal>> {
    spawn(
        core,
        core.new_user(number),
        true,
        |core, thread_state| match core.confinement {
            Confinement::Jailed => live::<Jailed>(core, thread_state),
            Confinement::Guarded => live::<Guarded>(core, thread_state),
            Confinement::Null => live::<Null>(core, thread_state),
        },
    )
}

pub(crate) fn spawn(
    core: &Arc<Core>,
    thread_state: ThreadState,
    paced: bool,
    live: impl FnOnce(&Arc<Core>, &Arc<ThreadState>) + Send + 'static,
) -> io::Result<Result<(), Refusal>> {
    let number = thread_state.number;
    let thread_state = Arc::new(thread_state);
    let (of_thread, core_of_thread) = (Arc::clone(&thread_state), Arc::clone(core));
    core.user_threads.add(&thread_state, paced, || {
        let body = move || {
            let Ending { core, thread_state } = &Ending {
                core: core_of_thread,
                thread_state: of_thread,
            };
            let _prepared = PreparedThread::new(&core.setting, thread_state);
            live(core, thread_state);
        };
        let thread = Builder::new()
            .name(format!("user-{number}"))
            .stack_size(STACK)
            .spawn(body)?;
        Ok(thread.thread().clone())
    })
}

/// Says that a thread has ended, whatever ended it.
struct Ending {
    core: Arc<Core>,
    thread_state: Arc<ThreadState>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.core
            .in_call_ns
            .fetch_add(self.thread_state.in_call_ns(), Ordering::Relaxed);
        self.core
            .outside_ns
            .fetch_add(self.thread_state.outside_ns(), Ordering::Relaxed);
        let report = || self.core.report_finished([self.thread_state.number]);
        self.core.user_threads.leave(&self.thread_state, report);
    }
}

fn live<K: Kernel>(core: &Core, thread_state: &Arc<ThreadState>) {
    let ready_ns = now_ns();
    let mut lane_threads = LaneThreads::new(&core.setting, thread_state);
    let mut segment = None;
    while let Some(next) = core
        .user_threads
        .wait(thread_state, segment.as_ref(), || core.doorbell.ring())
    {
        run_segment::<K>(core, &mut lane_threads, &next, ready_ns);
        segment = Some(next);
    }
}

fn run_segment<K: Kernel>(
    core: &Core,
    lane_threads: &mut LaneThreads,
    segment: &Segment,
    ready_ns: u64,
) {
    let thread_state = &lane_threads.thread_state();
    let Some(folder) = core.folder(segment.target, thread_state.user) else {
        return;
    };
    thread_state.set_target(segment.target);
    let setting = &core.setting;
    let shard = setting
        .recorder
        .shard_at(thread_state.home, thread_state.user);
    let journal = setting.journal(shard, thread_state, segment.target);
    let is_closed = matches!(setting.program.pace, Pace::Closed(_));
    let mut journal = journal.on_schedule(!is_closed);
    let mut user_segment = UserSegment::new(core, thread_state, segment, ready_ns);
    let Some(kernel) = user_segment.enter::<K>(folder, &mut journal) else {
        journal.flush();
        return;
    };
    lane_threads.enter(segment.target, folder);
    let interpreter = Interpreter::new(setting, thread_state, kernel, journal, segment.round);
    let mut interpreter = interpreter
        .with_lane_threads(lane_threads)
        .in_segment(segment);
    user_segment.work(&mut interpreter);
    interpreter.journal.flush();
}
