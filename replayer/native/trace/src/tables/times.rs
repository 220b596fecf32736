//! How times are written: in ticks of the log's clock, and think times only where they do not follow from the other columns.

use crate::tracer_overhead::OverheadCosts;
use crate::tracer_overhead::compute_time::LONG_NS;
use replayer_ops::Op;
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
        // To divide by a number that the compiler knows is to multiply.
        let ticks = match self.tick_ns {
            1 => time_ns,
            1_000 => time_ns / 1_000,
            tick_ns => time_ns / tick_ns,
        };
        let time = ticks * self.tick_ns;
        self.rounded += u64::from(time != time_ns);
        (ticks, time)
    }
}

/// So much of the time after an event of another thread is taken off at most besides the usual costs: more is a wait, and who waits
/// is not kept by a tracer that serves others (chosen; measured for rsync: up to 11 ms).
const MOST_MORE_NS: i64 = 10_000_000;

/// Think times as they follow from the times of a thread's events and from what the tracing added.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThinkTimes {
    costs: OverheadCosts,
    threads: FxHashMap<u32, Last>,
}

/// What a thread's last event leaves behind.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "units stand last")]
struct Last {
    end_ns: i64,
    /// What the tracer adds after it.
    added_ns: i64,
    /// How much shorter than that the gaps before were.
    owed_ns: i64,
}

/// An event, as far as the gap before it and the next one go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedEvent {
    pub(crate) thread: u32,
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: Option<i64>,
    /// Traced calls since the thread's last event.
    pub(crate) between: u32,
    pub(crate) op: Op,
    pub(crate) failed: bool,
}

/// The time between two events of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand last")]
pub(crate) struct Gap {
    /// As recorded.
    pub(crate) raw_ns: i64,
    /// What the tracer added.
    pub(crate) added_ns: i64,
    /// What is left: think time.
    pub(crate) own_ns: i64,
}

impl ThinkTimes {
    /// With what the tracing added, by call; nothing where it is not known.
    pub(crate) fn new(costs: OverheadCosts) -> Self {
        Self {
            costs,
            ..Self::default()
        }
    }

    /// The think time before an event, from the end of its thread's last one.
    pub(crate) fn follow(&mut self, seen: TimedEvent) -> Gap {
        let costs = &self.costs;
        let between_ns = costs.gap_ns.unwrap_or(0);
        let known = self.threads.contains_key(&seen.thread);
        // What came before the first one is not known well enough to owe anything.
        let most_owed_ns = if known { costs.most_owed_ns } else { 0 };
        let last = self.threads.entry(seen.thread).or_insert(Last {
            added_ns: between_ns,
            ..Last::default()
        });
        let each_ns = between_ns.saturating_add(costs.call_ns.unwrap_or(0));
        let others_ns = i64::from(seen.between).saturating_mul(each_ns);
        let raw_ns = seen.start_ns.saturating_sub(last.end_ns).max(0);
        let added_ns = last.added_ns.saturating_add(others_ns);
        let mut left_ns = raw_ns.saturating_sub(added_ns).saturating_sub(last.owed_ns);
        if left_ns >= LONG_NS {
            left_ns = left_ns.saturating_sub(costs.long_gap_ns).max(0);
        }
        *last = Last {
            end_ns: seen.start_ns.saturating_add(seen.duration_ns.unwrap_or(0)),
            added_ns: costs.after(seen.op, seen.failed),
            owed_ns: left_ns.saturating_neg().clamp(0, most_owed_ns),
        };
        Gap {
            raw_ns,
            added_ns,
            own_ns: left_ns.max(0),
        }
    }

    /// What is left of a time without what the tracing added.
    pub(crate) fn left(&self, after: AfterWait) -> i64 {
        let others = i64::from(after.others);
        let gaps = others.saturating_add(1);
        let gaps_ns = gaps.saturating_mul(self.costs.gap_ns.unwrap_or(0));
        let calls_ns = others.saturating_mul(self.costs.call_ns.unwrap_or(0));
        let waited_ns = gaps.saturating_mul(self.costs.more_ns) - MOST_MORE_NS;
        let left_ns = after
            .gap_ns
            .saturating_sub(gaps_ns)
            .saturating_sub(calls_ns);
        left_ns.saturating_add(waited_ns.max(0)).max(0)
    }

    /// The think time before a thread's last event was said: what was owed before is not any more.
    pub(crate) fn settle(&mut self, thread: u32) {
        if let Some(last) = self.threads.get_mut(&thread) {
            last.owed_ns = 0;
        }
    }
}

/// The time between two events of a thread, as recorded, without what it waited for other threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GapSample {
    /// None where the log has no clock, or nothing came before.
    pub(crate) gap_ns: Option<i64>,
    /// Traced calls in between, of this thread that are no events, and of others: the tracer serves one at a time.
    pub(crate) others: u32,
    /// The same since the last event ended that the thread was kept waiting by, if it was.
    pub(crate) after: Option<AfterWait>,
}

/// The time between the end of the event that a thread was kept waiting by and the event that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AfterWait {
    /// What it was kept waiting by.
    pub(crate) row: u64,
    pub(crate) gap_ns: i64,
    pub(crate) others: u32,
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

    fn seen(thread: u32, start_ns: i64, duration_ns: i64, between: u32) -> TimedEvent {
        TimedEvent {
            thread,
            start_ns,
            duration_ns: Some(duration_ns),
            between,
            op: Op::Stat,
            failed: false,
        }
    }

    fn costs() -> OverheadCosts {
        let mut costs = OverheadCosts {
            call_ns: Some(100),
            gap_ns: Some(1_000),
            after_ns: vec![[None; 2]; Op::ALL.len()],
            most_owed_ns: 10_000_000,
            ..OverheadCosts::default()
        };
        costs.after_ns[Op::Open as usize] = [Some(2_000), Some(500)];
        costs
    }

    #[test]
    fn a_gap_begins_where_the_threads_last_event_ended() {
        let mut gaps = ThinkTimes::new(costs());
        assert_eq!(gaps.follow(seen(0, 5_000, 500, 0)).own_ns, 4_000);
        assert_eq!(gaps.follow(seen(1, 5_500, 0, 0)).own_ns, 4_500);
        let gap = gaps.follow(seen(0, 9_000, 0, 1));
        let (raw_ns, added_ns) = (3_500, 2_000 + 100);
        let own_ns = raw_ns - added_ns;
        assert_eq!(
            gap,
            Gap {
                raw_ns,
                added_ns,
                own_ns
            }
        );
    }

    #[test]
    fn threads_of_every_number_are_followed_alike() {
        let mut gaps = ThinkTimes::new(costs());
        for thread in [0, 4095, 4096, u32::MAX] {
            assert_eq!(gaps.follow(seen(thread, 5_000, 500, 0)).own_ns, 4_000);
            assert_eq!(gaps.follow(seen(thread, 9_000, 0, 0)).raw_ns, 3_500);
        }
    }

    #[test]
    fn what_the_tracer_adds_depends_on_the_call_before() {
        let mut gaps = ThinkTimes::new(costs());
        for (op, failed, own_ns) in [
            (Op::Open, false, 8_000),
            (Op::Open, true, 9_500),
            (Op::Inherit, false, 10_000),
        ] {
            gaps.follow(TimedEvent {
                op,
                failed,
                ..seen(0, 0, 0, 0)
            });
            gaps.settle(0);
            assert_eq!(gaps.follow(seen(0, 10_000, 0, 0)).own_ns, own_ns);
            gaps.settle(0);
        }
    }

    #[test]
    fn what_is_taken_off_gaps_is_taken_off_those_after_others_events_but_for_waits() {
        let gaps = ThinkTimes::new(OverheadCosts {
            gap_ns: Some(51_000),
            more_ns: 50_000,
            ..costs()
        });
        let left = |gap_ns, others| {
            gaps.left(AfterWait {
                row: 0,
                gap_ns,
                others,
            })
        };
        assert_eq!(left(51_000, 0), 0);
        assert_eq!(left(70_000, 0), 19_000);
        assert_eq!(left(160_000, 2), 160_000 - 3 * 51_000 - 2 * 100);
        let others_ns = 101_000 + 100 * 100;
        let more_ns = 101 * 50_000;
        assert_eq!(left(400_000_000, 100), 400_000_000 - others_ns - more_ns);
        let others_ns = 1_001_000 + 1_000 * 100;
        let most_ns = others_ns + MOST_MORE_NS;
        assert_eq!(left(400_000_000, 1_000), 400_000_000 - most_ns);
    }

    #[test]
    fn what_a_gap_is_too_short_the_next_ones_make_up_for() {
        let mut gaps = ThinkTimes::new(costs());
        let own = |gaps: &mut ThinkTimes, start| gaps.follow(seen(0, start, 0, 0)).own_ns;
        assert_eq!(own(&mut gaps, 1_000), 0);
        assert_eq!(own(&mut gaps, 1_600), 0);
        assert_eq!(own(&mut gaps, 2_800), 0);
        assert_eq!(own(&mut gaps, 4_800), 800);
        assert_eq!(own(&mut gaps, 4_900), 0);
        gaps.settle(0);
        assert_eq!(own(&mut gaps, 6_900), 1_000);
        let mut alone = ThinkTimes::new(OverheadCosts {
            most_owed_ns: 0,
            ..costs()
        });
        assert_eq!(own(&mut alone, 100), 0);
        assert_eq!(own(&mut alone, 2_100), 1_000);
    }
}
