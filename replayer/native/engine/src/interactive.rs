//! Users that do what commands say, one after the other, on a thread of their own.

use crate::clock::now_ns;
use crate::core::{Confinement, Core, OutcomeData};
use crate::interpreter::{Halt, Interpreter, Journal};
use crate::ops::{self, Op};
use crate::plan::{PATH_SLOT, TO_SLOT, Texts};
use crate::program::Timed;
use crate::sys::{Folder, Guarded, Jailed, Kernel, Null};
use crate::thread_state::{CUT, STOP, ThreadState};
use crate::user::spawn;
use crate::user_segment::enter;
use crate::user_threads::Refusal;
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

pub(crate) fn start(
    core: &Arc<Core>,
    user: u32,
    inbox: &Arc<Inbox>,
) -> io::Result<Result<(), Refusal>> {
    let inbox = Arc::clone(inbox);
    spawn(
        core,
        ThreadState::new(user),
        false,
        move |core, thread_state| match core.confinement {
            Confinement::Jailed => live::<Jailed>(core, thread_state, &inbox),
            Confinement::Guarded => live::<Guarded>(core, thread_state, &inbox),
            Confinement::Null => live::<Null>(core, thread_state, &inbox),
        },
    )
}

fn live<K: Kernel>(core: &Core, thread_state: &Arc<ThreadState>, inbox: &Inbox) {
    let Some(folder) = core.folder(inbox.target, thread_state.user) else {
        return;
    };
    thread_state.set_target(inbox.target);
    let setting = &core.setting;
    let shard = setting.recorder.shard_on(inbox.target);
    let mut journal = setting.journal(shard, thread_state, inbox.target);
    journal.begin_outside(inbox.outside);
    let mut service = Service {
        core,
        thread_state,
        inbox,
        open: None,
    };
    let Some((kernel, mut first)) = service.enter::<K>(folder, &mut journal) else {
        service.leave(&mut journal);
        journal.flush();
        return;
    };
    let mut interpreter = Interpreter::new(setting, thread_state, kernel, journal, 0);
    while let Some((ticket, order)) = first
        .take()
        .or_else(|| service.next(&mut interpreter.journal))
    {
        let outcome = service.obey(&mut interpreter, order);
        service.answer(OutcomeData { ticket, ..outcome });
    }
    service.leave(&mut interpreter.journal);
    // Unexpected errors of closing are recorded by it.
    let _closed = interpreter.close_all();
    interpreter.journal.flush();
}

/// Doing what comes, and answering it.
struct Service<'a> {
    core: &'a Core,
    thread_state: &'a ThreadState,
    inbox: &'a Inbox,
    /// The transaction that is open.
    open: Option<(u16, Arc<str>)>,
}

impl Service<'_> {
    fn is_ending(&self) -> bool {
        self.thread_state.flags() & (STOP | CUT) != 0
    }

    /// Wait for the next order; `None` when no more are obeyed.
    fn next(&self, journal: &mut Journal) -> Option<(u64, Order)> {
        while !self.is_ending() {
            if let Some(order) = self.inbox.orders.pop() {
                return Some(order);
            }
            journal.flush();
            std::thread::park();
        }
        None
    }

    /// Confine this thread to the user's folder. While that fails, so do calls: it is tried again for each. Returns the first
    /// order that can be obeyed, if one waits; `None` when no more are obeyed.
    fn enter<K: Kernel>(
        &mut self,
        folder: &Arc<Folder>,
        journal: &mut Journal,
    ) -> Option<(K, Option<(u64, Order)>)> {
        if let Ok(kernel) = enter(self.thread_state, folder) {
            return Some((kernel, None));
        }
        loop {
            let (ticket, order) = self.next(journal)?;
            let outcome = match order {
                Order::Begin { transaction, name } => self.begin(journal, transaction, name),
                Order::End {
                    transaction,
                    failed,
                } => self.end(journal, transaction, failed),
                call @ Order::Call { .. } => {
                    let start_ns = now_ns();
                    match enter(self.thread_state, folder) {
                        Ok(kernel) => return Some((kernel, Some((ticket, call)))),
                        Err(errno) => refuse(journal, errno, start_ns),
                    }
                }
            };
            self.answer(OutcomeData { ticket, ..outcome });
        }
    }

    /// No more orders are obeyed: a transaction that is open is broken off.
    fn leave(&mut self, journal: &mut Journal) {
        if let Some((_, name)) = self.open.take() {
            self.finish(journal, &name, ops::CANCELLED);
        }
    }

    /// Queue an answer; while the queue is full the user waits for Python to drain it.
    fn answer(&self, outcome: OutcomeData) {
        let mut outcome = outcome;
        while let Err(back) = self.core.outcomes.push(outcome) {
            if self.is_ending() {
                return;
            }
            outcome = back;
            self.core.doorbell.ring();
            std::thread::park_timeout(Duration::from_millis(1));
        }
        self.core.doorbell.ring();
    }

    fn obey<K: Kernel>(
        &mut self,
        interpreter: &mut Interpreter<'_, K>,
        order: Order,
    ) -> OutcomeData {
        match order {
            Order::Begin { transaction, name } => {
                self.begin(&mut interpreter.journal, transaction, name)
            }
            Order::End {
                transaction,
                failed,
            } => self.end(&mut interpreter.journal, transaction, failed),
            Order::Call { timed, texts } => {
                for (slot, text) in [(PATH_SLOT, texts.path), (TO_SLOT, texts.to)] {
                    if let Some(text) = text {
                        interpreter.bind_text(slot, &text);
                    }
                }
                let done = interpreter.call_once(&timed);
                let (last, service_ns) = interpreter.journal.take_last();
                // Of one that was broken off, its last part may have gone well, or there was none.
                let outcome = match done {
                    Err(Halt::Cut) => ops::CANCELLED,
                    _ => last,
                };
                OutcomeData {
                    value: done.unwrap_or(0),
                    outcome,
                    expected: done.is_ok(),
                    service_ns,
                    ..OutcomeData::default()
                }
            }
        }
    }

    fn begin(&mut self, journal: &mut Journal, transaction: u16, name: Arc<str>) -> OutcomeData {
        if self.open.is_some() {
            return told(refused());
        }
        let now_ns = now_ns();
        journal.begin(transaction, now_ns, now_ns);
        self.open = Some((transaction, name));
        told(ops::OK)
    }

    fn end(&mut self, journal: &mut Journal, transaction: u16, failed: bool) -> OutcomeData {
        match self.open.take_if(|(begun, _)| *begun == transaction) {
            Some((_, name)) => {
                let how = if failed { ops::FAILED } else { ops::OK };
                self.finish(journal, &name, how);
                told(ops::OK)
            }
            None => told(refused()),
        }
    }

    fn finish(&self, journal: &mut Journal, name: &Arc<str>, outcome: u8) {
        journal.end(outcome, now_ns());
        let failed = journal.failed.take().filter(|_| outcome != ops::OK);
        if let Some(finished) = journal.finished.take() {
            let (user, target) = (self.thread_state.user, self.inbox.target);
            self.core.publish(user, target, name, finished, failed);
        }
        journal.begin_outside(self.inbox.outside);
    }
}

/// A call that is not made: its user could not be confined.
fn refuse(journal: &mut Journal, errno: Errno, start_ns: u64) -> OutcomeData {
    journal.record_refusal(Op::Chdir, errno, start_ns);
    let (outcome, service_ns) = journal.take_last();
    OutcomeData {
        service_ns,
        ..told(outcome)
    }
}

/// An answer without a value.
fn told(outcome: u8) -> OutcomeData {
    OutcomeData {
        outcome,
        expected: outcome == ops::OK,
        ..OutcomeData::default()
    }
}

/// A begin inside of a transaction, or an end that fits none.
fn refused() -> u8 {
    ops::outcome_of_errno(Errno::INVAL.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overhead::{PLAN, setting};
    use crate::plan::{Command, parse_command};
    use crate::sys::Doorbell;

    fn stat() -> Order {
        let command = br#"{"do": "call", "op": "stat", "path": "x", "expect": ["ok"]}"#;
        match parse_command(command, 1, 1).unwrap() {
            Command::Call { timed, texts } => Order::Call { timed, texts },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_order_that_is_broken_off_is_answered_as_cancelled() {
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let setting = setting(PLAN).unwrap();
        let core = Core::new(setting, vec![Vec::new()], Confinement::Null, doorbell);
        let (thread_state, inbox) = (Arc::new(ThreadState::new(9)), Inbox::new(0, 0));
        let recorder = &core.setting.recorder;
        let journal = Journal::new(
            Arc::clone(recorder),
            recorder.shard_on(0),
            Arc::clone(&thread_state),
            0,
            core.setting.begin_ns,
        );
        let mut interpreter = Interpreter::new(&core.setting, &thread_state, Null, journal, 0);
        let mut service = Service {
            core: &core,
            thread_state: &thread_state,
            inbox: &inbox,
            open: None,
        };
        let mut outcome = || service.obey(&mut interpreter, stat()).outcome;
        assert_eq!(outcome(), ops::OK);
        thread_state.raise(CUT);
        assert_eq!(outcome(), ops::CANCELLED);
    }
}
