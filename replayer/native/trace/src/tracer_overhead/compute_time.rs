//! What a recorded program did between its calls, as its CPU time bounds it.

use serde::Deserialize;

/// The longest tick of kernels' clocks; many have one of 4 ms.
const TICK_NS: i64 = 10_000_000;
/// CPU time outside of the kernel that a stop by the tracer adds, for caches and branches are cold behind it
/// (measured with strace 6.1 on tar, cp and rsync: 500 to 800 ns a call).
const COLD_NS: i64 = 700;

/// What the recorded program did beside its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ComputeTime {
    /// CPU time outside of the kernel, of all its processes.
    pub user_ns: i64,
    /// Recorded calls meanwhile.
    pub calls: i64,
    /// Where the CPU time is that of runs without the tracer, and not of the recording.
    pub untraced: Option<Untraced>,
}

/// Runs of the program without the tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Untraced {
    /// How many.
    pub runs: i64,
    /// How long the program took, the median.
    pub elapsed_ns: i64,
    /// In so much of its time it had no CPU; not known of one that works on several.
    pub waited_ns: Option<i64>,
}

impl ComputeTime {
    /// What long times between its calls hold at most, all together, where that is known: it may have computed or waited in them.
    pub(crate) fn most_in_long_ns(self) -> Option<i64> {
        let waited_ns = self.untraced?.waited_ns?;
        Some(self.user_ns.saturating_add(waited_ns))
    }

    /// The same of the others, if so much is in long ones.
    pub(crate) fn most_beside_ns(self, gaps: i64, long_ns: i64) -> i64 {
        let most_ns = self.most_ns(gaps);
        self.most_in_long_ns().map_or(most_ns, |all_ns| {
            most_ns.min(all_ns.saturating_sub(long_ns)).max(0)
        })
    }

    /// What so many of the times between its calls hold at most.
    pub(crate) fn most_ns(self, gaps: i64) -> i64 {
        self.within(gaps, self.user_ns)
    }

    /// What they hold at least.
    pub(crate) fn least_ns(self, gaps: i64) -> i64 {
        self.within(gaps, self.at_least_ns())
    }

    /// What the program did between all its calls at least; `None` where it is known from runs without the tracer.
    pub(crate) fn proven_ns(self) -> Option<i64> {
        let proven_ns = self.least_ns(self.calls);
        self.untraced.is_none().then_some(proven_ns)
    }

    fn within(self, gaps: i64, user_ns: i64) -> i64 {
        let cold_ns = if self.untraced.is_some() { 0 } else { COLD_NS };
        let each_ns = user_ns / self.calls.max(1) - cold_ns;
        each_ns.max(0).saturating_mul(gaps)
    }

    /// What it was at least: the kernel looks what runs once a tick, and tells the sum in hundredths of a second. A mean of many runs is
    /// taken as it is.
    fn at_least_ns(self) -> i64 {
        if self.untraced.is_some() {
            return self.user_ns;
        }
        let ticks = self.user_ns / TICK_NS;
        (self.user_ns - (1 + 2 * ticks.isqrt()) * TICK_NS).max(0)
    }
}

/// What must be taken off each number so that, but for what falls below zero, so much is left in all.
pub(crate) fn leaving(mut numbers: Vec<i64>, left: i64) -> i64 {
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    let mut sum = 0_i64;
    let mut offset = 0;
    for (count, number) in (1_i64..).zip(numbers) {
        if count > 1 && number <= offset {
            break;
        }
        sum += number;
        offset = (sum - left) / count;
    }
    offset
}

/// Fewer samples of one kind prove nothing of it (chosen).
const FEWEST_SAMPLES: usize = 8;
/// So many show how far the tracer's time spreads (chosen).
pub(crate) const MANY_SAMPLES: usize = 50;
/// The tracer keeps its speed for so many gaps of a kind, and so many such pieces show which one is usual (chosen).
const WINDOW: usize = 64;
const FEWEST_WINDOWS: usize = 5;
/// The share of the smallest values that is taken for noise (chosen).
pub(crate) const QUANTILE: usize = 20;
/// Times of a kind that are kept, the first ones (chosen).
const KEPT: usize = 1 << 16;
/// A gap that is longer by so much has something else in it (measured: a tracer that has lost its CPU is back after 1.1 ms).
pub(crate) const LONG_NS: i64 = 1_200_000;

/// Times of one kind of call: the first ones, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) count: usize,
    pub(crate) gaps: Vec<i64>,
}

impl Samples {
    pub(crate) fn add(&mut self, gap_ns: i64) {
        self.count += 1;
        if self.gaps.len() < KEPT {
            self.gaps.push(gap_ns);
        }
    }

    /// The shortest gaps, but for a few, at the tracer's usual speed: it is several times as fast while it has one CPU with the program.
    pub(crate) fn low(&self) -> Option<i64> {
        let windows = self.gaps.chunks_exact(WINDOW);
        if windows.len() < FEWEST_WINDOWS {
            return low_quantile(self.gaps.clone(), FEWEST_SAMPLES);
        }
        let lows = windows.filter_map(|window| low_quantile(window.to_vec(), FEWEST_SAMPLES));
        let mut lows: Vec<i64> = lows.collect();
        lows.sort_unstable();
        lows.get(lows.len() / 2).copied()
    }

    /// The mean of those that may be the tracer's, in thousandths of the shortest.
    pub(crate) fn spread(&self) -> Option<i64> {
        let low = self.low().filter(|&low| low > 0)?;
        if self.gaps.len() < MANY_SAMPLES {
            return None;
        }
        let own = self.gaps.iter().filter(|&&gap| gap < low + LONG_NS);
        let (count, sum) = own.fold((0, 0_i64), |(count, sum), gap| (count + 1, sum + gap));
        (sum / i64::max(count, 1))
            .checked_mul(1000)
            .map(|mean| mean / low)
    }
}

/// The value that a share of them lies below; `None` where they are too few.
pub(crate) fn low_quantile(mut values: Vec<i64>, fewest: usize) -> Option<i64> {
    values.sort_unstable();
    let enough = values.len() >= fewest;
    values
        .get(values.len() / QUANTILE)
        .copied()
        .filter(|_| enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_off_leaves_what_it_should() {
        assert_eq!(leaving(vec![10, 1, 2], 7), 3);
        assert_eq!(leaving(vec![10, 1, 2], 0), 10);
        assert_eq!(leaving(vec![10, 8, 2], 8), 5);
        assert_eq!(leaving(vec![1, 1, 1], 9), -2);
        assert_eq!(leaving(Vec::new(), 9), 0);
    }
}
