//! A lane of a performance, played by a helper.

use super::helper_group::{Leaving, Outcome};
use super::lane_replay::{LaneContext, LaneReplay, Tools};
use super::log::open_log;
use super::performance::Performance;
use super::prepared::{Confined, Duty, PreparedThread, confine};
use crate::sys::Kernel;
use crate::thread_state::{ABANDONED, ThreadState};
use crate::user_threads::{NAG, interrupt};
use std::sync::Arc;
use std::thread::park_timeout;

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
    (outcome.bytes, outcome.latest_ns) = journal.part();
    outcome.failed = journal.failed.take();
    journal.flush();
}
