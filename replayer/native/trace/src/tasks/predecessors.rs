//! What the next event of a task waits for, and how long the task has waited for other tasks.
//!
//! A task waits for what its parent had done when it was started, for processes that it has waited for, and for what came before the
//! bytes that it has read from pipes. A shell whose own calls are no events passes on in this way what each of its commands did.

use crate::call::Call;
use crate::order::{EdgeReason, Predecessor};
use crate::tasks::{Task, Tasks};
use std::rc::Rc;

/// Kept of a task; of more the oldest are forgotten, which costs edges (chosen: more are seldom waited for before the next is started).
const MOST: usize = 128;

/// Events that the next one waits for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Predecessors {
    /// With their numbers, in the order in which they were learned; shared with the tasks that were started since.
    known: Rc<Vec<(u64, Predecessor)>>,
    next: u64,
    /// Those with lower numbers were there when the task was started.
    own_from: u64,
    /// Who started it, and the number that it would have given to the next one.
    born: Option<(u64, u64)>,
}

/// What is left of a task that has ended, until somebody waits for it.
#[derive(Debug)]
pub(super) struct EndedTask {
    events: Vec<Predecessor>,
    /// By whom and before what it was started, if it had events: they came after what was known then.
    born: Option<(u64, u64)>,
}

impl Predecessors {
    pub(super) fn learn(&mut self, cause: Predecessor) {
        let known = Rc::make_mut(&mut self.known);
        if known.len() >= MOST {
            known.drain(..MOST / 2);
        }
        known.push((self.next, cause));
        self.next += 1;
    }

    /// What is behind a task that another one starts, whose last event is given.
    pub(super) fn of_child(&self, parent: u64, last: Option<Predecessor>) -> Self {
        let mut child = Self {
            born: Some((parent, self.next)),
            ..self.clone()
        };
        if let Some(last) = last {
            child.learn(last);
        }
        child.own_from = child.next;
        child
    }

    /// The next event is here, and waits for all of it.
    pub(crate) fn take(&mut self) -> Vec<Predecessor> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let known = std::mem::take(&mut self.known);
        known.iter().map(|&(_, cause)| cause).collect()
    }

    /// What is left of the task when it ends, if that is anything.
    pub(super) fn leave(&self, last: Option<Predecessor>) -> Option<EndedTask> {
        let own = self.known.iter().filter(|one| one.0 >= self.own_from);
        let events: Vec<Predecessor> = last.into_iter().chain(own.map(|one| one.1)).collect();
        let born = self.born.filter(|_| last.is_some());
        (!events.is_empty()).then_some(EndedTask { events, born })
    }

    /// What is behind it that no event has waited for yet, the last one first.
    pub(super) fn pending(&self) -> impl Iterator<Item = Predecessor> + '_ {
        self.known.iter().rev().map(|&(_, cause)| cause)
    }

    /// The task has waited for another one that had ended.
    pub(super) fn reap(&mut self, number: u64, left: EndedTask) {
        if let Some((parent, next)) = left.born
            && parent == number
        {
            Rc::make_mut(&mut self.known).retain(|one| one.0 >= next);
        }
        for cause in left.events {
            self.learn(Predecessor {
                reason: EdgeReason::Wait,
                ..cause
            });
        }
    }
}

/// Events that a task without own ones since passes on (chosen: as many as a filter has commands before it).
const MOST_PASSED_ON: usize = 4;

/// A call that had nothing to wait for takes less (measured with strace 6.1: polls of rsync's 20 to 50 µs).
const NO_WAIT_NS: i64 = 100_000;

/// Calls that waited until descriptors could be used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PollTime {
    time: WaitTime,
    /// When the first of them began.
    since_ns: Option<i64>,
}

/// Time in calls that waited, and what else the tracer did meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WaitTime {
    pub(crate) ns: i64,
    pub(crate) calls: u64,
}

impl WaitTime {
    fn add(&mut self, other: Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.calls = self.calls.saturating_add(other.calls);
    }

    fn of(call: &Call<'_>) -> Self {
        Self {
            ns: call.duration_ns.unwrap_or(0),
            calls: u64::from(call.meanwhile),
        }
    }
}

impl Tasks {
    /// A task has waited until a thread of its process let its number go, which threads do last: a log tells of their end soon
    /// afterwards, or before. Returns whether that thread had events, or waited for some.
    pub(crate) fn join(&mut self, number: u64, thread: u64) -> bool {
        let files = self.table.get(&number).map(|task| Rc::clone(&task.files));
        let left = match self.table.get(&thread) {
            Some(other)
                if thread != number
                    && files.is_some_and(|files| Rc::ptr_eq(&files, &other.files)) =>
            {
                other.predecessors.leave(other.cause(EdgeReason::Wait))
            }
            Some(_) => None,
            None => self.ended.remove(&thread),
        };
        self.take_on(number, left)
    }
}

impl Task {
    /// Its last event, for which others have a reason to wait.
    pub(super) fn cause(&self, reason: EdgeReason) -> Option<Predecessor> {
        let event_ref = self.last_event?;
        Some(Predecessor {
            event_ref,
            reason,
            end_ns: self.last_end_ns,
            calls: self.calls_then,
        })
    }

    /// What somebody who gets something from it waits for: of what it has to wait for itself, the last few.
    pub(crate) fn causes(&self, reason: EdgeReason) -> Vec<Predecessor> {
        let pending = self.predecessors.pending().take(MOST_PASSED_ON);
        let pending = pending.map(|cause| Predecessor { reason, ..cause });
        pending.chain(self.cause(reason)).collect()
    }

    /// A call waited until descriptors could be used.
    pub(crate) fn has_polled(&mut self, call: &Call<'_>) {
        self.polled.time.add(WaitTime::of(call));
        self.polled.since_ns = self.polled.since_ns.or(call.start_ns);
    }

    /// A call used a descriptor that is no pipe: if one was waited for, it was that.
    pub(crate) fn has_used_another(&mut self) {
        self.polled = PollTime::default();
    }

    pub(crate) fn has_waited(&mut self, call: &Call<'_>) {
        self.waited(WaitTime::of(call));
    }

    /// Its next event is over, or it has begun, after so many calls of the whole log.
    pub(crate) fn count_from(&mut self, calls: u64) {
        self.calls_then = calls;
        self.own_calls = 0;
    }

    /// So long since its last call is no pause of its own.
    pub(crate) fn was_delayed(&mut self, ns: i64) {
        self.waited(WaitTime { ns, calls: 0 });
    }

    fn waited(&mut self, time: WaitTime) {
        self.awaited.add(time);
        self.awaited_after.add(time);
    }

    /// A call has used a pipe, perhaps after another one had looked for it: for whom it waited is not told yet.
    pub(crate) fn uses_pipe(&mut self, call: &Call<'_>) {
        self.moving = std::mem::take(&mut self.polled).time;
        self.moving.add(WaitTime::of(call));
    }

    /// It was a task with events that let it use the pipe.
    pub(crate) fn was_kept_waiting(&mut self) {
        let time = std::mem::take(&mut self.moving);
        self.waited(time);
    }

    /// Since when a call that writes to a pipe may have waited for room, in it or in one that had looked for room; None where it has not.
    pub(crate) fn wants_room_since(&self, call: &Call<'_>) -> Option<i64> {
        let ns = self.polled.time.ns.saturating_add(call.duration_ns?);
        let since_ns = self.polled.since_ns.or(call.start_ns);
        since_ns.filter(|_| ns >= NO_WAIT_NS)
    }

    /// It goes on after these events.
    pub(crate) fn learn(&mut self, causes: impl IntoIterator<Item = Predecessor>) {
        self.awaited_after = WaitTime::default();
        for cause in causes {
            self.predecessors.learn(cause);
        }
    }

    /// Its next event is here: how long it has waited for other tasks since the last one, and since what is behind it.
    pub(crate) fn take_awaited(&mut self) -> (WaitTime, WaitTime) {
        self.polled = PollTime::default();
        self.moving = WaitTime::default();
        (
            std::mem::take(&mut self.awaited),
            std::mem::take(&mut self.awaited_after),
        )
    }
}
