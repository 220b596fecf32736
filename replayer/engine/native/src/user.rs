//! The life of a user's thread: wait for a segment, run transactions at their pace, wait again.

use crate::clock::now_ns;
use crate::core::{Confinement, Core};
use crate::crowd::Refusal;
use crate::interpreter::{Interpreter, Journal};
use crate::lock::hold;
use crate::ops::{Op, outcome_of_errno};
use crate::pace::{Paced, Pacer};
use crate::program::Pace;
use crate::pulse::{CUT, Place, Pulse, STOP};
use crate::record::event::Event;
use crate::replay::play::Band;
use crate::segment::Segment;
use crate::sleep::sleep_until;
use crate::sys::{
    Guarded, Jailed, Kernel, Null, Places, own_folder_state, prepare_thread, thread_id,
};
use rustix::io::Errno;
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

/// Confine this thread to a target; a user that cannot is logged and ends.
pub(crate) fn enter<K: Kernel>(core: &Core, pulse: &Pulse, target: u16) -> Option<K> {
    pulse.set_target(target);
    let folder = core.folder(target, pulse.user)?;
    match pulse.show(Op::Chdir, Place::FOLDER, || K::enter(folder)) {
        Ok(kernel) => Some(kernel),
        Err(errno) => {
            refuse(core, pulse, target, errno);
            None
        }
    }
}

/// A user cannot work: that is logged, and it ends.
fn refuse(core: &Core, pulse: &Pulse, target: u16, errno: Errno) {
    core.setting.recorder.log(&Event::Error {
        t_ns: core.since_begin(now_ns()),
        user: pulse.user,
        target,
        transaction: 0,
        op: Op::Open as u8,
        outcome: outcome_of_errno(errno.raw_os_error()),
        path: b".".to_vec(),
    });
    pulse.raise(STOP);
}

/// When transactions are intended: by the user's own pacer, or by the schedule of all.
enum Intent<'a> {
    Own(Pacer),
    Shared(&'a Segment),
}

impl Intent<'_> {
    fn next(&mut self, core: &Core, end_ns: u64) -> Option<u64> {
        let tables = &core.setting.program.tables;
        match self {
            Intent::Own(pacer) => Some(pacer.next(tables, end_ns)),
            Intent::Shared(segment) => segment
                .arrivals
                .as_ref()
                .map(|arrivals| hold(arrivals).take(tables)),
        }
    }

    /// No more begin, not even the one that was intended at this time: count those that were due.
    fn leave(&mut self, core: &Core, segment: &Segment, intended_ns: u64) {
        let tables = &core.setting.program.tables;
        let unbegun = match self {
            Intent::Own(Pacer::Closed { .. }) => 0,
            Intent::Own(pacer) => {
                // A user that leaves sooner than others owes nothing afterwards.
                let end_ns = segment.end_ns().min(now_ns());
                if intended_ns < end_ns {
                    1 + pacer.due(tables, end_ns)
                } else {
                    0
                }
            }
            // Nobody else takes this arrival any more; those after it are still there.
            Intent::Shared(_) => u64::from(intended_ns < segment.end_ns()),
        };
        segment.add_unbegun(unbegun);
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

/// Wait for a transaction that is intended at a time, of a user that is free at another; false when it shall not begin any more.
fn comes_to_begin(
    segment: &Segment,
    pulse: &Pulse,
    journal: &mut Journal,
    (intended_ns, free_ns): (u64, u64),
) -> bool {
    let woken = || segment.is_stopping() || pulse.flags() & (STOP | CUT) != 0;
    if intended_ns > free_ns {
        journal.flush();
        // Not longer than transactions begin; whoever ends them sooner wakes this thread.
        pulse.rest(|| sleep_until(intended_ns.min(segment.end_ns()), woken));
    }
    // Who was to begin before the end does, though it was woken after it.
    pulse.flags() & (STOP | CUT) == 0 && intended_ns.max(free_ns) < segment.end_ns()
}

fn run_segment<K: Places>(core: &Core, band: &mut Band, segment: &Segment, ready_ns: u64) {
    let pulse = &band.pulse();
    let Some(kernel) = enter::<K>(core, pulse, segment.target) else {
        return;
    };
    let (setting, program) = (&core.setting, &*core.setting.program);
    if let Some(folder) = core.folder(segment.target, pulse.user) {
        band.enter(segment.target, folder);
    }
    let journal = journal_of(core, pulse, segment);
    let interpreter = Interpreter::new(setting, pulse, kernel, journal, segment.round);
    let mut interpreter = interpreter.with_band(band).in_segment(segment);
    if let Err(errno) = interpreter.verify(segment.target) {
        refuse(core, pulse, segment.target, errno);
        return;
    }
    let mut end_ns = segment.begin_ns.max(ready_ns);
    let paced = Paced {
        seed: program.seed,
        round: segment.round,
        user: pulse.user,
        users: program.users,
        begin_ns: end_ns,
    };
    let mut intent = Pacer::new(&program.pace, paced).map_or(Intent::Shared(segment), Intent::Own);
    let mut rest = program.transactions_per_user.unwrap_or(u64::MAX);
    while rest > 0 {
        let Some(intended_ns) = intent.next(core, end_ns) else {
            break;
        };
        if !comes_to_begin(
            segment,
            pulse,
            &mut interpreter.journal,
            (intended_ns, end_ns),
        ) {
            intent.leave(core, segment, intended_ns);
            break;
        }
        interpreter.transact(intended_ns);
        if let Some(finished) = interpreter.journal.finished.take() {
            end_ns = finished.free_ns;
            if let Some(name) = core.names.get(usize::from(finished.transaction)) {
                core.publish(
                    pulse.user,
                    segment.target,
                    name,
                    finished,
                    interpreter.journal.failed.take(),
                );
            }
        }
        rest -= 1;
    }
    interpreter.journal.flush();
}
