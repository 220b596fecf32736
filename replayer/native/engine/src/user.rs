//! The life of a user's thread: wait for a segment, run transactions at their pace, wait again.

use crate::clock::now_ns;
use crate::core::{Confinement, Core};
use crate::crowd::Refusal;
use crate::interpreter::{Interpreter, Journal};
use crate::program::Pace;
use crate::pulse::Pulse;
use crate::replay::play::Band;
use crate::segment::Segment;
use crate::stint::Stint;
use crate::sys::{Guarded, Jailed, Null, Places, own_folder_state, prepare_thread, thread_id};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Builder;

/// The stack of a user's thread. Steps nest at most 16 deep; measured: less than 24 KiB are used, and 16 KiB by a vectored call of a replay.
const STACK: usize = 128 << 10;

/// Start the thread of a user that runs the plan.
pub(crate) fn start(core: &Arc<Core>, user: u32) -> io::Result<Result<(), Refusal>> {
    spawn(core, user, true, |core, pulse| match core.confinement {
        Confinement::Jailed => live::<Jailed>(core, pulse),
        Confinement::Guarded => live::<Guarded>(core, pulse),
        Confinement::Null => live::<Null>(core, pulse),
    })
}

/// Start a thread for a user and add it to the crowd.
pub(crate) fn spawn(
    core: &Arc<Core>,
    user: u32,
    paced: bool,
    live: impl FnOnce(&Arc<Core>, &Arc<Pulse>) + Send + 'static,
) -> io::Result<Result<(), Refusal>> {
    let pulse = Arc::new(Pulse::new(user));
    let (thread_core, thread_pulse) = (Arc::clone(core), Arc::clone(&pulse));
    core.crowd.add(&pulse, paced, || {
        let body = move || {
            let _ending = Ending::new(&thread_core, &thread_pulse);
            live(&thread_core, &thread_pulse);
        };
        let thread = Builder::new()
            .name(format!("user-{user}"))
            .stack_size(STACK)
            .spawn(body)?;
        Ok(thread.thread().clone())
    })
}

/// Prepares a thread, and says that it has ended, whatever ended it.
struct Ending {
    core: Arc<Core>,
    pulse: Arc<Pulse>,
}

impl Ending {
    fn new(core: &Arc<Core>, pulse: &Arc<Pulse>) -> Ending {
        prepare_thread();
        // Where that is not permitted the confinement is `guarded`, which does not need it; the umask is the process's then.
        own_folder_state();
        let thread = thread_id();
        if let Some(waiting) = core.setting.run_queue.enter(thread) {
            pulse.set_waiting(waiting);
        }
        pulse.set_thread(thread);
        Ending {
            core: Arc::clone(core),
            pulse: Arc::clone(pulse),
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.pulse.clear_thread();
        if let Some(waiting) = self.pulse.waiting() {
            self.core.setting.run_queue.leave(waiting);
        }
        self.core
            .in_call_ns
            .fetch_add(self.pulse.in_call_ns(), Ordering::Relaxed);
        self.core
            .outside_ns
            .fetch_add(self.pulse.outside_ns(), Ordering::Relaxed);
        let report = || self.core.report_finished([self.pulse.user]);
        self.core.crowd.leave(&self.pulse, report);
    }
}

fn live<K: Places>(core: &Core, pulse: &Arc<Pulse>) {
    let ready_ns = now_ns();
    let mut band = Band::new(&core.setting, pulse);
    let mut segment = None;
    while let Some(next) = core
        .crowd
        .wait(pulse, segment.as_ref(), || core.doorbell.ring())
    {
        run_segment::<K>(core, &mut band, &next, ready_ns);
        segment = Some(next);
    }
}

fn journal_of(core: &Core, pulse: &Arc<Pulse>, segment: &Segment) -> Journal {
    let recorder = &core.setting.recorder;
    let journal = Journal::new(
        Arc::clone(recorder),
        recorder.shard(pulse.user),
        Arc::clone(pulse),
        segment.target,
        core.setting.begin_ns,
    );
    journal.on_schedule(!matches!(core.setting.program.pace, Pace::Closed(_)))
}

fn run_segment<K: Places>(core: &Core, band: &mut Band, segment: &Segment, ready_ns: u64) {
    let pulse = &band.pulse();
    let Some(folder) = core.folder(segment.target, pulse.user) else {
        return;
    };
    pulse.set_target(segment.target);
    let mut journal = journal_of(core, pulse, segment);
    let mut stint = Stint::new(core, pulse, segment, ready_ns);
    let Some(kernel) = stint.enter::<K>(folder, &mut journal) else {
        journal.flush();
        return;
    };
    band.enter(segment.target, folder);
    let interpreter = Interpreter::new(&core.setting, pulse, kernel, journal, segment.round);
    let mut interpreter = interpreter.with_band(band).in_segment(segment);
    stint.work(&mut interpreter);
    interpreter.journal.flush();
}
