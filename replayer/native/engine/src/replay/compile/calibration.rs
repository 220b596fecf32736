//! What a trace says about its own times: what tracing added to them, and how its pauses were fitted.

use super::clock::positive;
use serde_json::Value;

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

    /// How long a recorded pause is to be.
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
