//! Time between calls, and how much of it the recorder may have added.

use crate::reader::Trace;
use crate::tables::schema::Event;
use serde_json::{Value, json};

/// A recorder that waits for a CPU has it again after so long (chosen: with four busy programs on two CPUs strace waited up to 15 ms).
const LONGEST_WAIT_NS: i64 = 20_000_000;
/// Formats of logs whose recorder stops the program at each call.
const STOPPING: [&str; 1] = ["strace"];

/// Sums over events: over all, and over those that are asked for.
#[derive(Debug)]
pub(super) struct ThinkTime {
    /// What the recorder added to each call.
    call_ns: i64,
    /// CPU time that the program had between its calls at least; `None`: its pauses are not the recorder's.
    proven_ns: Option<i64>,
    all: Sums,
    chosen: Sums,
}

impl ThinkTime {
    /// Of a trace whose events are to come.
    pub(super) fn of(trace: &Trace) -> Self {
        let told = |pointer| trace.told().pointer(pointer);
        let number = |pointer| told(pointer).and_then(Value::as_i64).unwrap_or(0);
        let format = told("/origin/format").and_then(Value::as_str);
        let stops = format.is_some_and(|format| STOPPING.contains(&format));
        let known = ["/calibration/untraced", "/calibration/fit"]
            .iter()
            .any(|pointer| told(pointer).is_some_and(|value| !value.is_null()));
        Self {
            call_ns: number("/calibration/call_ns"),
            proven_ns: (stops && !known).then(|| number("/calibration/proven_ns")),
            all: Sums::default(),
            chosen: Sums::default(),
        }
    }

    /// Every event comes here.
    pub(super) fn follow(&mut self, event: &Event) {
        self.all.add(0, pause_ns(event));
    }

    /// It is one of those asked for; no more than `most_ns` before it is a pause.
    pub(super) fn choose(&mut self, event: &Event, most_ns: i64) {
        let took_ns = event.duration_ns.unwrap_or(0);
        let call_ns = took_ns.saturating_sub(self.call_ns);
        self.chosen.add(call_ns, pause_ns(event).min(most_ns));
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "calls_ns": self.chosen.calls_ns,
            "pauses_ns": self.chosen.pauses_ns,
            "recorder_ns": self.recorder_ns(),
        })
    }

    /// How much of the pauses asked for the recorder may have made at most: its part of what it may have made of all.
    fn recorder_ns(&self) -> Option<i64> {
        let rest_ns = self.all.pauses_ns.saturating_sub(self.proven_ns?.max(0));
        let doubtful_ns = self.all.short_ns.min(rest_ns).max(0);
        let part = i128::from(doubtful_ns) * i128::from(self.chosen.short_ns)
            / i128::from(self.all.short_ns.max(1));
        i64::try_from(part).ok()
    }
}

/// The time before an event that a replay with pauses keeps.
fn pause_ns(event: &Event) -> i64 {
    event.gap_ns.max(event.after_ns.unwrap_or(0))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand last")]
struct Sums {
    calls_ns: i64,
    pauses_ns: i64,
    /// Of these, what is no longer than a recorder waits.
    short_ns: i64,
}

impl Sums {
    fn add(&mut self, call_ns: i64, pause_ns: i64) {
        let pause_ns = pause_ns.max(0);
        let short_ns = pause_ns.min(LONGEST_WAIT_NS);
        self.calls_ns = self.calls_ns.saturating_add(call_ns.max(0));
        self.pauses_ns = self.pauses_ns.saturating_add(pause_ns);
        self.short_ns = self.short_ns.saturating_add(short_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pauses_ns: &[i64]) -> Sums {
        let mut sums = Sums::default();
        for pause_ns in pauses_ns {
            sums.add(2_000, *pause_ns);
        }
        sums
    }

    fn made_ns(chosen: Sums, all: Sums, proven_ns: Option<i64>) -> Option<i64> {
        let pauses = ThinkTime {
            call_ns: 0,
            proven_ns,
            all,
            chosen,
        };
        pauses.recorder_ns()
    }

    #[test]
    fn a_recorder_may_have_made_short_pauses_and_as_much_of_long_ones() {
        let all = sums(&[5_000, 1_000_000, 3_000_000_000]);
        assert_eq!(made_ns(all, all, Some(0)), Some(21_005_000));
        assert_eq!((all.calls_ns, all.pauses_ns), (6_000, 3_001_005_000));
    }

    #[test]
    fn what_the_program_has_computed_the_recorder_has_not_made() {
        let (all, part) = (sums(&[1_000_000; 100]), sums(&[1_000_000; 10]));
        assert_eq!(made_ns(all, all, Some(70_000_000)), Some(30_000_000));
        assert_eq!(made_ns(part, all, Some(70_000_000)), Some(3_000_000));
        assert_eq!(made_ns(all, all, Some(i64::MAX)), Some(0));
        assert_eq!(made_ns(all, all, None), None);
    }

    #[test]
    fn absurd_pauses_stay_within_bounds() {
        let all = sums(&[i64::MAX, i64::MIN, i64::MAX]);
        assert_eq!(made_ns(all, all, Some(0)), Some(2 * LONGEST_WAIT_NS));
        assert_eq!(made_ns(all, all, Some(i64::MIN)), Some(2 * LONGEST_WAIT_NS));
    }
}
