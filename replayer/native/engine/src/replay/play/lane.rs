//! A lane of a performance, played by a helper.

use super::gathering::{Leaving, Outcome};
use super::living::{Confined, Duty, Living, confine};
use super::log::open_log;
use super::player::{Player, Seat, Tools};
use super::stage::Stage;
use crate::sys::Kernel;
use crate::thread_state::{ABANDONED, ThreadState};
use crate::user_threads::{NAG, interrupt};
use std::sync::Arc;
use std::thread::park_timeout;

/// A helper's part in a performance.
pub(super) struct Role {
    pub(super) stage: Arc<Stage>,
    pub(super) user: Arc<ThreadState>,
    pub(super) duty: Duty,
}

/// Play a lane to its end.
pub(super) fn play<K: Kernel>(
    living: &Living,
    role: &Role,
    (confined, tools): (&mut Confined<K>, &mut Tools),
) {
    let stage = &role.stage;
    let mut leaving = Leaving::new(&stage.gathering);
    perform::<K>(living, role, (confined, tools), &mut leaving.outcome);
    let failed = leaving.outcome.result.is_err();
    drop(leaving);
    if failed && stage.is_halted() {
        // The user's own thread may be in a call that waits.
        let user = &role.user;
        while stage.owner_plays() && user.flags() & ABANDONED == 0 {
            interrupt(user, stage.gathering.owner());
            park_timeout(NAG);
        }
    }
}

fn perform<K: Kernel>(
    living: &Living,
    role: &Role,
    (confined, tools): (&mut Confined<K>, &mut Tools),
    outcome: &mut Outcome,
) {
    let (setting, thread_state, stage) = (&living.setting, &living.thread_state, &role.stage);
    thread_state.set_names(&stage.names);
    let is_over = || stage.is_over(thread_state);
    let kernel = match confine(living, &role.duty, confined.take(), is_over) {
        Ok(found) => &confined.insert(found).1,
        Err(halt) => {
            outcome.result = Err(halt);
            stage.halt();
            return;
        }
    };
    tools.log = open_log(setting, stage.cast, role.duty.lane);
    let mut journal = living.journal(&role.duty);
    let seat = Seat {
        setting,
        kernel,
        thread_state,
        journal: &mut journal,
        tools,
    };
    outcome.result = Player::new(seat, stage, role.duty.lane).play();
    (outcome.bytes, outcome.latest_ns) = journal.part();
    outcome.failed = journal.failed.take();
    journal.flush();
}
