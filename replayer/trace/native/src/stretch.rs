//! What tracing added to the recorded times: measured from the trace itself, and taken off the gaps.
//!
//! strace stops a program at the entry and at the exit of each traced call. What it adds between the two lines of `-T`
//! makes calls look longer, what it adds outside makes the time between two calls look longer. Both are constants of a
//! capture, in good approximation: the smallest values of many calls that cost next to nothing show them.

use crate::op::Op;

/// The time between two events of a thread, as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sample {
    /// None where the log has no clock, or nothing came before.
    pub(crate) gap_ns: Option<i64>,
    /// Traced calls in between that are no events: each was stretched as well.
    pub(crate) others: u32,
}

/// Constants of one capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Added to each call's duration.
    pub call_ns: Option<i64>,
    /// Added to each time between two calls.
    pub gap_ns: Option<i64>,
    /// Where the numbers come from, for people; of those that a user gives: how they were measured.
    pub method: String,
}

/// Calls that cost about 100 ns untraced on any machine, without touching a file system.
const CHEAP: [Op; 3] = [Op::Lseek, Op::Fcntl, Op::Fstat];
/// What such a call and the loop around it cost untraced (measured: 60 to 300 ns).
const CHEAP_CALL_NS: i64 = 150;
/// Fewer samples prove nothing (chosen).
const FEWEST_SAMPLES: usize = 20;
/// The share of the smallest values that is taken for noise (chosen).
const QUANTILE: usize = 20;
/// More than this was not the tracer: a bound on estimates (chosen; strace 6.1 adds 3 and 6 to 9 µs).
const MOST_NS: i64 = 30_000;

impl Stretch {
    /// What is known when nothing was asked for.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            call_ns: None,
            gap_ns: None,
            method: String::new(),
        }
    }

    /// Fill in what was not said, from events of the trace.
    pub(crate) fn estimate(
        &self,
        samples: impl Iterator<Item = (Op, Option<i64>, Sample)>,
    ) -> Self {
        let mut calls = Vec::new();
        let mut gaps = Vec::new();
        for (op, duration, sample) in samples {
            if let Some(duration) = duration.filter(|_| CHEAP.contains(&op)) {
                calls.push(duration);
            }
            if let Some(gap) = sample.gap_ns.filter(|&gap| sample.others == 0 && gap > 0) {
                gaps.push(gap);
            }
        }
        let mut method = Vec::new();
        let mut constant = |asked: Option<i64>, values: Vec<i64>, what: &str| match asked {
            Some(asked) => {
                let from = if self.method.is_empty() {
                    "given"
                } else {
                    &self.method
                };
                method.push(format!("{what}: {from}"));
                Some(asked)
            }
            None => match low_quantile(values) {
                (count, Some(low)) => {
                    method.push(format!(
                        "{what}: the 5 % quantile of {count} in this trace, less {CHEAP_CALL_NS} ns"
                    ));
                    Some((low - CHEAP_CALL_NS).clamp(0, MOST_NS))
                }
                (count, None) => {
                    method.push(format!(
                        "{what}: not known, {count} samples are too few; nothing is subtracted"
                    ));
                    None
                }
            },
        };
        let call_ns = constant(self.call_ns, calls, "durations of lseek, fcntl and fstat");
        let gap_ns = constant(self.gap_ns, gaps, "times between two calls");
        Self {
            call_ns,
            gap_ns,
            method: method.join("; "),
        }
    }

    /// Think time: a recorded gap without what the tracer added to it.
    pub(crate) fn gap(&self, sample: Sample) -> i64 {
        let Some(gap) = sample.gap_ns else {
            return 0;
        };
        let others = i64::from(sample.others);
        let added = (others + 1).saturating_mul(self.gap_ns.unwrap_or(0));
        let inside = others.saturating_mul(self.call_ns.unwrap_or(0));
        gap.saturating_sub(added).saturating_sub(inside).max(0)
    }
}

fn low_quantile(mut values: Vec<i64>) -> (usize, Option<i64>) {
    values.sort_unstable();
    let count = values.len();
    let enough = count >= FEWEST_SAMPLES;
    (
        count,
        values.get(count / QUANTILE).copied().filter(|_| enough),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(gap_ns: i64, others: u32) -> Sample {
        Sample {
            gap_ns: Some(gap_ns),
            others,
        }
    }

    #[test]
    fn the_smallest_values_are_the_tracers() {
        let samples = (0..100).map(|at| {
            (
                Op::Lseek,
                Some(3_000 + at * 100),
                sample(8_000 + at * 1_000, 0),
            )
        });
        let stretch = Stretch::unknown().estimate(samples);
        assert_eq!(stretch.call_ns, Some(3_350));
        assert_eq!(stretch.gap_ns, Some(12_850));
        assert_eq!(stretch.gap(sample(12_850 + 70_000, 0)), 70_000);
        assert_eq!(stretch.gap(sample(2 * 12_850 + 3_350 + 5, 1)), 5);
        assert_eq!(stretch.gap(sample(10, 0)), 0);
    }

    #[test]
    fn what_was_given_is_kept_and_too_few_samples_prove_nothing() {
        let asked = Stretch {
            call_ns: Some(2_700),
            ..Stretch::unknown()
        };
        let stretch = asked.estimate(std::iter::once((Op::Lseek, Some(9), sample(9, 0))));
        assert_eq!((stretch.call_ns, stretch.gap_ns), (Some(2_700), None));
        assert_eq!(stretch.gap(sample(9, 0)), 9);
    }
}
