//! Users that do what commands say, one after the other, on a thread of their own.

use crate::clock::now_ns;
use crate::core::{Confinement, Core, OutcomeData};
use crate::crowd::Refusal;
use crate::interpreter::{Interpreter, Journal};
use crate::ops;
use crate::plan::{PATH_SLOT, TO_SLOT, Texts};
use crate::program::Timed;
use crate::pulse::{CUT, Pulse, STOP};
use crate::sys::{Guarded, Jailed, Kernel, Null};
use crate::user::{enter, spawn};
use crossbeam_queue::ArrayQueue;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// At most so many commands wait.
const COMMANDS: usize = 1024;

/// A command, ready to run.
pub(crate) enum Order {
    Begin { transaction: u16, name: Arc<str> },
    End { transaction: u16, failed: bool },
    Call { timed: Box<Timed>, texts: Texts },
}

/// The commands of a user that wait.
pub(crate) struct Inbox {
    pub(crate) target: u16,
    /// The transaction of ops outside of any.
    pub(crate) outside: u16,
    orders: ArrayQueue<(u64, Order)>,
}

impl Inbox {
    pub(crate) fn new(target: u16, outside: u16) -> Inbox {
        Inbox {
            target,
            outside,
            orders: ArrayQueue::new(COMMANDS),
        }
    }

    /// Queue an order; false when the queue is full.
    pub(crate) fn push(&self, ticket: u64, order: Order) -> bool {
        self.orders.push((ticket, order)).is_ok()
    }
}

/// Start the thread of an interactive user.
pub(crate) fn start(
    core: &Arc<Core>,
    user: u32,
    inbox: &Arc<Inbox>,
) -> io::Result<Result<(), Refusal>> {
    let inbox = Arc::clone(inbox);
    spawn(core, user, false, move |core, pulse| {
        match core.confinement {
            Confinement::Jailed => live::<Jailed>(core, pulse, &inbox),
            Confinement::Guarded => live::<Guarded>(core, pulse, &inbox),
            Confinement::Null => live::<Null>(core, pulse, &inbox),
        }
    })
}

fn live<K: Kernel>(core: &Core, pulse: &Arc<Pulse>, inbox: &Inbox) {
    let Some(kernel) = enter::<K>(core, pulse, inbox.target) else {
        return;
    };
    let setting = &core.setting;
    let shard = setting.recorder.shard_on(inbox.target);
    let recorder = Arc::clone(&setting.recorder);
    let journal = Journal::new(
        recorder,
        shard,
        Arc::clone(pulse),
        inbox.target,
        setting.begin_ns,
    );
    let mut interpreter = Interpreter::new(setting, pulse, kernel, journal, 0);
    interpreter.journal.begin(inbox.outside, now_ns(), now_ns());
    let mut open = None;
    let ending = || pulse.flags() & (STOP | CUT) != 0;
    while !ending() {
        let Some((ticket, order)) = inbox.orders.pop() else {
            interpreter.journal.flush();
            std::thread::park();
            continue;
        };
        let outcome = obey(core, pulse, inbox, (&mut interpreter, &mut open), order);
        answer(core, OutcomeData { ticket, ..outcome }, ending);
    }
    if let Some((_, name)) = open {
        finish(
            core,
            pulse,
            inbox,
            &mut interpreter,
            (&name, ops::CANCELLED),
        );
    }
    // Unexpected errors of closing are recorded by it.
    let _closed = interpreter.close_all();
    interpreter.journal.flush();
}

/// Queue an answer; while the queue is full the user waits for Python to drain it.
fn answer(core: &Core, outcome: OutcomeData, ending: impl Fn() -> bool) {
    let mut outcome = outcome;
    while let Err(back) = core.outcomes.push(outcome) {
        if ending() {
            return;
        }
        outcome = back;
        core.doorbell.ring();
        std::thread::park_timeout(Duration::from_millis(1));
    }
    core.doorbell.ring();
}

type Open = Option<(u16, Arc<str>)>;

fn obey<K: Kernel>(
    core: &Core,
    pulse: &Pulse,
    inbox: &Inbox,
    (interpreter, open): (&mut Interpreter<'_, K>, &mut Open),
    order: Order,
) -> OutcomeData {
    let mut outcome = OutcomeData {
        ticket: 0,
        value: 0,
        outcome: ops::OK,
        service_ns: 0,
    };
    match order {
        Order::Begin { transaction, name } if open.is_none() => {
            let now_ns = now_ns();
            interpreter.journal.begin(transaction, now_ns, now_ns);
            *open = Some((transaction, name));
        }
        Order::End {
            transaction,
            failed,
        } => match open.take_if(|(begun, _)| *begun == transaction) {
            Some((_, name)) => {
                let how = if failed { ops::FAILED } else { ops::OK };
                finish(core, pulse, inbox, interpreter, (&name, how));
            }
            None => outcome.outcome = refused(),
        },
        Order::Begin { .. } => outcome.outcome = refused(),
        Order::Call { timed, texts } => {
            for (slot, text) in [(PATH_SLOT, texts.path), (TO_SLOT, texts.to)] {
                if let Some(text) = text {
                    interpreter.bind_text(slot, &text);
                }
            }
            outcome.value = interpreter.call_once(&timed);
            (outcome.outcome, outcome.service_ns) = interpreter.journal.take_last();
        }
    }
    outcome
}

/// A begin inside of a transaction, or an end that fits none.
fn refused() -> u8 {
    ops::outcome_of_errno(Errno::INVAL.raw_os_error())
}

fn finish<K: Kernel>(
    core: &Core,
    pulse: &Pulse,
    inbox: &Inbox,
    interpreter: &mut Interpreter<'_, K>,
    (name, outcome): (&Arc<str>, u8),
) {
    let journal = &mut interpreter.journal;
    journal.end(outcome, now_ns());
    let failed = journal.failed.take().filter(|_| outcome != ops::OK);
    if let Some(finished) = journal.finished.take() {
        core.publish(pulse.user, inbox.target, name, finished, failed);
    }
    journal.begin(inbox.outside, now_ns(), now_ns());
}
