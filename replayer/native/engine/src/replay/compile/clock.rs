//! When events would have been made without the tracing: each thread's own time, put together from its calls and gaps. What a trace says
//! about its own times is a `Calibration`.

use super::lanes::MOST_THREADS;
use serde_json::Value;

/// Times of a replay program.
#[derive(Debug)]
pub(crate) struct Clock {
    /// What the tracing added to each call.
    call_ns: u64,
    /// When the replay program begins, as recorded.
    begin_ns: i64,
    /// How much earlier than recorded the last event was: threads that appear go on from there.
    shift_ns: i64,
    /// When the last event of each thread ends.
    ends: Vec<Option<u64>>,
}

/// An event as it was recorded, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) start: i64,
    pub(crate) duration: Option<i64>,
    pub(crate) gap: u64,
    /// When that has ended which kept its thread waiting, since the begin of the replay program, with the think time since.
    pub(crate) kept_until: Option<u64>,
}

/// When an event is made, since the begin of the replay program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Whether it is the first one of its thread.
    pub(crate) is_first: bool,
}

impl Clock {
    pub(crate) fn new(begin_ns: i64, call_ns: u64) -> Clock {
        Clock {
            call_ns,
            begin_ns,
            shift_ns: 0,
            ends: Vec::new(),
        }
    }

    /// When a thread's next event is made, since the begin of the replay program.
    pub(crate) fn time(&mut self, thread: u32, stamp: Stamp) -> Timed {
        let recorded = stamp.start.saturating_sub(self.begin_ns);
        let at = thread.min(MOST_THREADS) as usize;
        if self.ends.len() <= at {
            self.ends.resize(at + 1, None);
        }
        let Some(last_ns) = self.ends.get_mut(at) else {
            return Timed::default();
        };
        let is_first = last_ns.is_none();
        let start = match (*last_ns, stamp.kept_until) {
            (Some(end_ns), kept) => end_ns.saturating_add(stamp.gap).max(kept.unwrap_or(0)),
            (None, Some(kept)) => kept,
            (None, None) => positive(recorded.saturating_sub(self.shift_ns)),
        };
        let took = positive(stamp.duration.unwrap_or(0)).saturating_sub(self.call_ns);
        let end_ns = start.saturating_add(took);
        *last_ns = Some(end_ns);
        let start_signed = i64::try_from(start).unwrap_or(i64::MAX);
        self.shift_ns = recorded.saturating_sub(start_signed);
        Timed {
            start_ns: start,
            end_ns,
            is_first,
        }
    }
}

pub(crate) fn positive(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

/// No pause is made longer than so many per cent (as who fits them has it).
const MOST_PERCENT: u64 = 10_000;
/// Pauses as they were recorded.
const AS_RECORDED: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// What the tracing added to each call, as far as that is known.
    pub(crate) call_ns: u64,
    pauses_percent: u64,
}

impl Calibration {
    /// Read it from the text of a trace.json.
    pub(crate) fn of(document: &str) -> Calibration {
        let document: Value = serde_json::from_str(document).unwrap_or_default();
        let percent = document.pointer("/calibration/fit/pauses_percent");
        let percent = percent.and_then(Value::as_u64).unwrap_or(AS_RECORDED);
        Calibration {
            call_ns: call_ns(&document),
            pauses_percent: percent.clamp(1, MOST_PERCENT),
        }
    }

    #[inline]
    pub(crate) fn pause(self, recorded_ns: u64) -> u64 {
        if self.pauses_percent == AS_RECORDED {
            return recorded_ns;
        }
        let fitted = u128::from(recorded_ns) * u128::from(self.pauses_percent);
        u64::try_from(fitted / u128::from(AS_RECORDED)).unwrap_or(u64::MAX)
    }
}

fn call_ns(document: &Value) -> u64 {
    let cost = document.pointer("/calibration/call_ns");
    let cost = cost.and_then(Value::as_f64).unwrap_or(0.0);
    // A conversion of floats saturates; nobody's tracing adds a second.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, and is bounded below"
    )]
    let cost = cost as i64;
    positive(cost).min(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(start: i64, duration: i64, gap: u64) -> Stamp {
        Stamp {
            start,
            duration: Some(duration),
            gap,
            kept_until: None,
        }
    }

    #[test]
    fn what_the_tracing_added_is_taken_out_and_new_threads_follow() {
        let mut clock = Clock::new(1000, 100);
        assert_eq!(clock.time(0, stamp(1000, 150, 0)).start_ns, 0);
        // It was made 250 after the begin: 50 of the call, 20 of the gap are the program's.
        assert_eq!(clock.time(0, stamp(1250, 150, 20)).start_ns, 70);
        assert_eq!(clock.time(1, stamp(1260, 100, 0)).start_ns, 80);
        assert_eq!(clock.time(1, stamp(1500, 100, 10)).start_ns, 90);
    }

    #[test]
    fn a_thread_that_was_kept_waiting_goes_on_after_that() {
        let mut clock = Clock::new(0, 0);
        clock.time(0, stamp(0, 10, 0));
        let after = |start, kept| Stamp {
            kept_until: Some(kept),
            ..stamp(start, 10, 5)
        };
        assert_eq!(clock.time(0, after(900, 107)).start_ns, 107);
        assert_eq!(clock.time(0, after(950, 107)).start_ns, 122);
        assert_eq!(clock.time(1, after(980, 203)).start_ns, 203);
    }

    #[test]
    fn absurd_times_stay_within_bounds() {
        let mut clock = Clock::new(i64::MIN, u64::MAX);
        clock.time(0, stamp(i64::MAX, i64::MIN, u64::MAX));
        clock.time(u32::MAX, stamp(i64::MIN, i64::MAX, 0));
        assert_eq!(clock.time(0, stamp(0, 0, u64::MAX)).start_ns, u64::MAX);
    }

    #[test]
    fn pauses_are_as_recorded_unless_they_were_fitted() {
        let calibration = Calibration::of(r#"{"calibration": {"call_ns": 2627}}"#);
        assert_eq!(calibration.call_ns, 2_627);
        assert_eq!(calibration.pause(1_234), 1_234);
        assert_eq!(
            calibration,
            Calibration::of(r#"{"calibration": {"call_ns": 2627, "fit": null}}"#)
        );
        let fitted = Calibration::of(r#"{"calibration": {"fit": {"pauses_percent": 250}}}"#);
        assert_eq!(fitted.call_ns, 0);
        assert_eq!(fitted.pause(1_000), 2_500);
        assert_eq!(fitted.pause(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_is_no_calibration_changes_nothing_and_what_is_too_much_is_cut() {
        for text in [
            "",
            "{}",
            r#"{"calibration": {"fit": {"pauses_percent": "250"}}}"#,
        ] {
            assert_eq!(Calibration::of(text).pause(77), 77, "{text}");
        }
        let much = Calibration::of(r#"{"calibration": {"fit": {"pauses_percent": 99999999}}}"#);
        assert_eq!(much.pause(10), 1_000);
        let none = Calibration::of(r#"{"calibration": {"fit": {"pauses_percent": 0}}}"#);
        assert_eq!(none.pause(1_000), 10);
    }
}
