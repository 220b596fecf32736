//! The watcher: reports ops that stay in the kernel for too long, and interrupts calls of users that are to end.

use crate::clock::now_ns;
use crate::core::Core;
use crate::crowd::NAG;
use crate::pulse::{CUT, Doing, Pulse};
use crate::record::event::Event;
use crate::sys::wake_thread;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Thread};
use std::time::Duration;

/// The watcher's thread.
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
        let pulses = core.crowd.threads();
        let cut = nag(&pulses);
        report_stalls(core, &pulses, &mut stalls, stuck_after_ns);
        std::thread::park_timeout(if cut { NAG.min(look) } else { look });
    }
}

/// Interrupt waiting calls of users that are cut; a signal that came just before the call was lost.
fn nag(pulses: &[Arc<Pulse>]) -> bool {
    let mut any = false;
    for pulse in pulses.iter().filter(|pulse| pulse.flags() & CUT != 0) {
        any = true;
        if let (Some(thread), Some(_)) = (pulse.thread(), pulse.doing()) {
            wake_thread(thread);
        }
    }
    any
}

/// Ops over the limit, by user and lane: what was said to be stalled.
type Stalls = HashMap<(u32, u32), (Doing, Arc<Pulse>)>;

fn report_stalls(core: &Core, pulses: &[Arc<Pulse>], stalls: &mut Stalls, stuck_after_ns: u64) {
    let now_ns = now_ns();
    stalls.retain(|_, (stalled, pulse)| {
        let goes_on = pulse
            .doing()
            .is_some_and(|doing| doing.since_ns == stalled.since_ns);
        if !goes_on {
            log(core, pulse, *stalled, now_ns, true);
        }
        goes_on
    });
    for pulse in pulses {
        let Some(doing) = pulse.doing() else {
            continue;
        };
        let is_long = now_ns.saturating_sub(doing.since_ns) > stuck_after_ns;
        if is_long && !stalls.contains_key(&(pulse.user, pulse.lane)) {
            log(core, pulse, doing, now_ns, false);
            stalls.insert((pulse.user, pulse.lane), (doing, Arc::clone(pulse)));
        }
    }
}

fn log(core: &Core, pulse: &Pulse, doing: Doing, now_ns: u64, over: bool) {
    let stuck = core.stuck(pulse, doing, now_ns);
    let hang = core.hang(&stuck, doing.op, now_ns);
    core.setting.recorder.log(&if over {
        Event::StallOver(hang)
    } else {
        Event::Stall(hang)
    });
}
