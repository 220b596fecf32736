//! Times of one kind of call, and what the shortest of them tell.

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

/// The first ones, and how many there were.
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
