//! How times are written: in ticks of the log's clock, and think times only where they do not follow from the other columns.

use rustc_hash::FxHashMap;

/// Steps that clocks of logs have, the longest first.
const TICKS_NS: [i64; 3] = [1_000_000_000, 1_000_000, 1_000];

/// Nanoseconds as multiples of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) tick_ns: i64,
    /// Times that were no multiple.
    pub(crate) rounded: u64,
}

impl Ticks {
    /// The longest tick that all times are multiples of.
    pub(crate) fn fitting(times_ns: &(impl Iterator<Item = i64> + Clone)) -> Self {
        let told = times_ns.clone().any(|time| time != 0);
        let fits = |&tick: &i64| told && times_ns.clone().all(|time| time % tick == 0);
        let tick_ns = TICKS_NS.into_iter().find(fits).unwrap_or(1);
        Self {
            tick_ns,
            rounded: 0,
        }
    }

    /// A time in ticks, and the time that these are.
    pub(crate) fn count(&mut self, time_ns: i64) -> (i64, i64) {
        let ticks = time_ns / self.tick_ns;
        let time = ticks * self.tick_ns;
        self.rounded += u64::from(time != time_ns);
        (ticks, time)
    }
}

/// Think times as they follow from the times of a thread's events and from what the tracing added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gaps {
    call_ns: i64,
    gap_ns: i64,
    ends: FxHashMap<u32, i64>,
}

impl Gaps {
    /// With what the tracing added to each call and to each time between two; nothing where it is not known.
    pub(crate) fn new(call_ns: Option<i64>, gap_ns: Option<i64>) -> Self {
        Self {
            call_ns: call_ns.unwrap_or(0),
            gap_ns: gap_ns.unwrap_or(0),
            ends: FxHashMap::default(),
        }
    }

    /// The think time before an event, from the end of its thread's last one; `between`: traced calls that are no events.
    pub(crate) fn follow(
        &mut self,
        thread: u32,
        start_ns: i64,
        duration_ns: Option<i64>,
        between: u32,
    ) -> i64 {
        let end = start_ns.saturating_add(duration_ns.unwrap_or(0));
        let before = self.ends.insert(thread, end).unwrap_or(0);
        let others = i64::from(between);
        start_ns
            .saturating_sub(before)
            .max(0)
            .saturating_sub((others + 1).saturating_mul(self.gap_ns))
            .saturating_sub(others.saturating_mul(self.call_ns))
            .max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_tick_that_fits_is_taken() {
        let tick = |times: &[i64]| Ticks::fitting(&times.iter().copied()).tick_ns;
        assert_eq!(tick(&[0, 5_000, 7_001_000]), 1_000);
        assert_eq!(tick(&[0, 5_000, 7]), 1);
        assert_eq!(tick(&[2_000_000_000]), 1_000_000_000);
        assert_eq!(tick(&[0, 0]), 1);
        let mut ticks = Ticks::fitting(&[2_000].into_iter());
        assert_eq!(ticks.count(4_500), (4, 4_000));
        assert_eq!(ticks.rounded, 1);
    }

    #[test]
    fn a_gap_begins_where_the_threads_last_event_ended() {
        let mut gaps = Gaps::new(Some(100), Some(1_000));
        assert_eq!(gaps.follow(0, 5_000, Some(500), 0), 4_000);
        assert_eq!(gaps.follow(1, 5_500, None, 0), 4_500);
        assert_eq!(gaps.follow(0, 9_000, None, 1), 3_500 - 2_000 - 100);
        assert_eq!(gaps.follow(0, 9_000, None, 0), 0);
    }
}
