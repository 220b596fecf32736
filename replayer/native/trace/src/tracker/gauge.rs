//! What calls show of the tracer's own cost, told to the gauge until it knows enough. No event depends on it.

use crate::call::Call;
use crate::stretch::{Class, LastCall};
use crate::tracker::{Fate, Tracker};

impl Tracker {
    /// The gap before a call shows what the tracer needs after the one before.
    pub(crate) fn gauge_before(&mut self, call: &Call<'_>) {
        let Some(gauge) = self.events.gauge() else {
            return;
        };
        let last = self
            .tasks
            .get_mut(call.task)
            .and_then(|task| task.last_call.take());
        // Where others' calls came between, the tracer may have been busy with these.
        let calls = self
            .counts
            .calls
            .saturating_sub(u64::from(call.meanwhile) + 1);
        if let (Some(last), Some(start_ns)) =
            (last.filter(|last| last.calls == calls), call.start_ns)
        {
            gauge.after(last.class, start_ns.saturating_sub(last.end_ns));
        }
    }

    pub(crate) fn gauge_after(&mut self, call: &Call<'_>, fate: Fate) {
        let Some(gauge) = self.events.gauge() else {
            return;
        };
        let Some(task) = self.tasks.get_mut(call.task) else {
            return;
        };
        let class = match (fate, task.last_op) {
            (Fate::Event, Some(op)) => {
                gauge.took(op, call.duration_ns);
                Class::of_event(op, !call.outcome.is_ok())
            }
            _ => gauge.class_of_other(call.name),
        };
        task.last_call = call.end_ns().map(|end_ns| LastCall {
            class,
            end_ns,
            calls: self.counts.calls,
        });
    }
}
