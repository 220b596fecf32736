//! How tasks wait for each other: what of the time before an event was no computing, and for whom.

use super::Task;
use crate::call::Call;
use crate::cause::Cause;
use crate::order::Reason;

/// Events that a task without own ones since passes on (chosen: as many as a filter has commands before it).
const MOST_PASSED_ON: usize = 4;

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
        self.polled.add(Awaited::of(call));
    }

    /// A call waited for another task, and so did what looked for its descriptor before.
    pub(crate) fn has_waited(&mut self, call: &Call<'_>) {
        let mut waited = std::mem::take(&mut self.polled);
        waited.add(Awaited::of(call));
        self.awaited.add(waited);
        self.awaited_after.add(waited);
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
        self.polled = Awaited::default();
        (
            std::mem::take(&mut self.awaited),
            std::mem::take(&mut self.awaited_after),
        )
    }
}
