//! The watcher: reports ops that stay in the kernel for too long, and interrupts calls of users that are to end.

use crate::clock::now_ns;
use crate::core::Core;
use crate::record::event::Event;
use crate::thread_state::{CUT, Doing, ThreadState};
use crate::user_threads::NAG;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Thread};
use std::time::Duration;

pub(crate) struct Watcher {
    ended: Arc<AtomicBool>,
    thread: Thread,
}

impl Watcher {
    pub(crate) fn start(core: &Arc<Core>, stuck_after_ns: u64) -> io::Result<Watcher> {
        let ended = Arc::new(AtomicBool::new(false));
        let (core, until) = (Arc::clone(core), Arc::clone(&ended));
        let thread = Builder::new()
            .name("watcher".to_owned())
            .spawn(move || watch(&core, stuck_after_ns, &until))?;
        Ok(Watcher {
            ended,
            thread: thread.thread().clone(),
        })
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Look at least so often, and a few times within the limit.
const LOOK: Duration = Duration::from_millis(100);

fn watch(core: &Core, stuck_after_ns: u64, ended: &AtomicBool) {
    let look = LOOK
        .min(Duration::from_nanos(stuck_after_ns / 4))
        .max(Duration::from_millis(1));
    let mut stalls = HashMap::new();
    while !ended.load(Ordering::SeqCst) {
        let thread_states = core.user_threads.threads();
        let cut = nag(&thread_states);
        report_stalls(core, &thread_states, &mut stalls, stuck_after_ns);
        std::thread::park_timeout(if cut { NAG.min(look) } else { look });
    }
}

/// Interrupt waiting calls of users that are cut; a signal that came just before the call was lost.
fn nag(thread_states: &[Arc<ThreadState>]) -> bool {
    let mut any = false;
    for thread_state in thread_states
        .iter()
        .filter(|thread_state| thread_state.flags() & CUT != 0)
    {
        any = true;
        thread_state.interrupt();
    }
    any
}

/// Ops over the limit, by user and lane: what was said to be stalled.
type Stalls = HashMap<(u32, u32), (Doing, Arc<ThreadState>)>;

fn report_stalls(
    core: &Core,
    thread_states: &[Arc<ThreadState>],
    stalls: &mut Stalls,
    stuck_after_ns: u64,
) {
    let now_ns = now_ns();
    stalls.retain(|_, (stalled, thread_state)| {
        let goes_on = thread_state
            .doing()
            .is_some_and(|doing| doing.since_ns == stalled.since_ns);
        if !goes_on {
            log(core, thread_state, *stalled, now_ns, true);
        }
        goes_on
    });
    for thread_state in thread_states {
        let Some(doing) = thread_state.doing() else {
            continue;
        };
        let is_long = now_ns.saturating_sub(doing.since_ns) > stuck_after_ns;
        if is_long && !stalls.contains_key(&(thread_state.number, thread_state.lane)) {
            log(core, thread_state, doing, now_ns, false);
            stalls.insert(
                (thread_state.number, thread_state.lane),
                (doing, Arc::clone(thread_state)),
            );
        }
    }
}

fn log(core: &Core, thread_state: &ThreadState, doing: Doing, now_ns: u64, over: bool) {
    let event = if over { Event::StallOver } else { Event::Stall };
    let stuck = core.stuck(thread_state, doing, now_ns);
    let event = event(core.since_begin(now_ns), stuck);
    core.setting.recorder.log(&event);
}
