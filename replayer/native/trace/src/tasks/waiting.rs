//! How tasks wait for each other: what of the time before an event was no computing, and for whom.

use super::{Task, Tasks};
use crate::call::Call;
use crate::cause::{Cause, Reason};

/// Events that a task without own ones since passes on (chosen: as many as a filter has commands before it).
const MOST_PASSED_ON: usize = 4;

/// A call that had nothing to wait for takes less (measured with strace 6.1: polls of rsync's 20 to 50 µs).
const NO_WAIT_NS: i64 = 100_000;

/// Calls that waited until descriptors could be used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Polled {
    time: Awaited,
    /// When the first of them began.
    since_ns: Option<i64>,
}

/// Time in calls that waited, and what else the tracer did meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Awaited {
    pub(crate) ns: i64,
    pub(crate) calls: u64,
}

impl Awaited {
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
        let files = self.living.get(number).map(|task| task.files);
        let left = match self.living.get(thread) {
            Some(other) if thread != number && Some(other.files) == files => {
                other.behind.leave(other.cause(Reason::Wait))
            }
            Some(_) => None,
            None => self.ended.remove(&thread),
        };
        self.take_on(number, left)
    }
}

impl Task {
    /// Its last event, for which others have a reason to wait.
    pub(super) fn cause(&self, reason: Reason) -> Option<Cause> {
        let seat = self.last_event?;
        Some(Cause {
            seat,
            reason,
            end_ns: self.last_end_ns,
            calls: self.calls_then,
        })
    }

    /// What somebody who gets something from it waits for: of what it has to wait for itself, the last few.
    pub(crate) fn causes(&self, reason: Reason) -> Vec<Cause> {
        let pending = self.behind.pending().take(MOST_PASSED_ON);
        let pending = pending.map(|cause| Cause { reason, ..cause });
        pending.chain(self.cause(reason)).collect()
    }

    /// A call waited until descriptors could be used.
    pub(crate) fn has_polled(&mut self, call: &Call<'_>) {
        self.polled.time.add(Awaited::of(call));
        self.polled.since_ns = self.polled.since_ns.or(call.start_ns);
    }

    /// A call used a descriptor that is no pipe: if one was waited for, it was that.
    pub(crate) fn has_used_another(&mut self) {
        self.polled = Polled::default();
    }

    /// A call waited for another task.
    pub(crate) fn has_waited(&mut self, call: &Call<'_>) {
        self.waited(Awaited::of(call));
    }

    fn waited(&mut self, time: Awaited) {
        self.awaited.add(time);
        self.awaited_after.add(time);
    }

    /// A call has used a pipe, perhaps after another one had looked for it: for whom it waited is not told yet.
    pub(crate) fn uses_pipe(&mut self, call: &Call<'_>) {
        self.moving = std::mem::take(&mut self.polled).time;
        self.moving.add(Awaited::of(call));
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
    pub(crate) fn learn(&mut self, causes: impl IntoIterator<Item = Cause>) {
        self.awaited_after = Awaited::default();
        for cause in causes {
            self.behind.learn(cause);
        }
    }

    /// Its next event is here: how long it has waited for other tasks since the last one, and since what is behind it.
    pub(crate) fn take_awaited(&mut self) -> (Awaited, Awaited) {
        self.polled = Polled::default();
        self.moving = Awaited::default();
        (
            std::mem::take(&mut self.awaited),
            std::mem::take(&mut self.awaited_after),
        )
    }
}
