//! When events of a replay are due, and waiting for it precisely. The only place where lanes sleep for a time.

use crate::clock::now_ns;
use crate::thread_state::ThreadState;
use std::time::Duration;

/// A sleep ends so much late at most, mostly: the rest is spent looking at the clock. Measured on a busy virtual machine with a timer
/// slack of 1 ns: sleeps of 0.1, 1 and 10 ms end 6, 22 and 33 µs late in the median.
const MARGIN_NS: u64 = 50_000;

/// A lane catches up with so much at most (chosen: it is to make up for its own work and for wake-ups, not for time slices that it lost).
const MOST_BEHIND_NS: u64 = 1_000_000;

/// The pauses of a lane, however short they are: what one takes too long is taken off the next ones, so that their sum is right.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    /// When the event under way is to begin.
    planned_ns: Option<u64>,
    /// How much later than planned the last one began.
    behind_ns: u64,
    /// From when to when other lanes were waited for.
    held_up: Option<(u64, u64)>,
    /// When the first of them was done.
    kept_until: Option<u64>,
}

impl Pause {
    /// The next event has had to wait for another lane.
    pub(crate) fn hold_up(&mut self, from_ns: u64, to_ns: u64) {
        self.held_up = Some((from_ns, to_ns));
    }

    /// What kept its thread waiting is done.
    pub(crate) fn kept_until(&mut self, at_ns: u64) {
        self.kept_until = Some(at_ns);
    }

    /// When an event is to begin that comes so long after the end of the last one, and so long after what
    /// kept its thread waiting.
    #[inline]
    pub(crate) fn plan(&mut self, last_ns: u64, gap_ns: u64, after_ns: u64) -> u64 {
        let own_ns = last_ns
            .saturating_add(gap_ns)
            .saturating_sub(self.behind_ns);
        let foreign_ns = self.held_up.take().map_or(0, |(from_ns, to_ns)| {
            to_ns.saturating_sub(from_ns.max(own_ns))
        });
        let kept_ns = self.kept_until.take();
        let kept_ns = kept_ns.map_or(0, |until_ns| until_ns.saturating_add(after_ns));
        let due_ns = own_ns.saturating_add(foreign_ns).max(kept_ns);
        self.planned_ns = Some(due_ns);
        due_ns
    }

    #[inline]
    pub(crate) fn begin(&mut self, start_ns: u64) {
        if let Some(planned_ns) = self.planned_ns.take() {
            self.behind_ns = start_ns.saturating_sub(planned_ns).min(MOST_BEHIND_NS);
        }
    }
}

/// A recorded time at another speed.
#[inline]
pub(crate) fn scaled(ns: u64, speed_percent: u32) -> u64 {
    if speed_percent == 100 {
        return ns;
    }
    let scaled = u128::from(ns) * 100 / u128::from(speed_percent.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Wait until a time on the monotonic clock; false when it is over before. `idle` is called before the thread sleeps.
#[inline]
pub(crate) fn wait_until(
    deadline_ns: u64,
    thread_state: &ThreadState,
    is_over: &impl Fn() -> bool,
    idle: impl FnMut(u64),
) -> bool {
    if now_ns() >= deadline_ns {
        return true;
    }
    wait_long(deadline_ns, thread_state, is_over, idle)
}

fn wait_long(
    deadline_ns: u64,
    thread_state: &ThreadState,
    is_over: &impl Fn() -> bool,
    mut idle: impl FnMut(u64),
) -> bool {
    let mut looked_since_ns = None;
    loop {
        let now_ns = now_ns();
        let is_due = now_ns >= deadline_ns;
        if is_due || is_over() {
            thread_state.add_outside(now_ns.saturating_sub(looked_since_ns.unwrap_or(now_ns)));
            return is_due;
        }
        let left_ns = deadline_ns - now_ns;
        if left_ns > MARGIN_NS {
            idle(left_ns);
            let sleep = Duration::from_nanos(left_ns - MARGIN_NS);
            thread_state.rest(|| std::thread::park_timeout(sleep));
        } else {
            looked_since_ns.get_or_insert(now_ns);
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn twice_the_speed_is_half_the_time(ns in 0..u64::MAX / 100) {
            prop_assert_eq!(scaled(ns, 100), ns);
            prop_assert_eq!(scaled(ns, 200), ns / 2);
            prop_assert_eq!(scaled(ns, 50), ns * 2);
        }
    }

    proptest! {
        #[test]
        fn pauses_that_are_overrun_add_up_to_what_they_should(gaps in prop::collection::vec((0..5_000_u64, 0..900_u64), 1..200)) {
            let (mut pause, mut now_ns, mut owed_ns) = (Pause::default(), 1_000_000_u64, 0_u64);
            let begin_ns = now_ns;
            for (gap_ns, own_ns) in gaps {
                now_ns = pause.plan(now_ns, gap_ns, 0).max(now_ns + own_ns);
                pause.begin(now_ns);
                owed_ns += gap_ns;
                prop_assert!(now_ns - begin_ns >= owed_ns);
                prop_assert_eq!(now_ns - begin_ns - owed_ns, pause.behind_ns);
            }
            // Time to spare: nothing is owed any more.
            now_ns = pause.plan(now_ns, 1_000_000, 0).max(now_ns);
            prop_assert_eq!(now_ns - begin_ns, owed_ns + 1_000_000);
        }
    }

    #[test]
    fn nobody_catches_up_with_much_nor_with_what_others_were_late() {
        let mut pause = Pause::default();
        assert_eq!(pause.plan(1_000, 500, 0), 1_500);
        pause.begin(9_000_000);
        assert_eq!(pause.plan(10_000_000, 2_000_000, 0), 11_000_000);
        pause.begin(11_000_000);
        pause.hold_up(11_000_100, 11_400_000);
        assert_eq!(pause.plan(11_000_100, 100_000, 0), 11_400_000);
        pause.begin(11_400_020);
        assert_eq!(pause.plan(11_500_000, 100, 0), 11_500_080);
    }

    #[test]
    fn who_was_kept_waiting_computes_behind_that() {
        let mut pause = Pause::default();
        pause.kept_until(7_000);
        pause.hold_up(1_010, 8_000);
        assert_eq!(pause.plan(1_000, 500, 300), 8_000, "other waits are none");
        pause.kept_until(8_900);
        pause.hold_up(8_500, 9_000);
        assert_eq!(pause.plan(8_500, 100, 300), 9_200);
        pause.kept_until(9_001);
        pause.hold_up(9_000, 9_001);
        assert_eq!(pause.plan(9_000, 500, 300), 9_500);
        assert_eq!(pause.plan(10_000, 100, 300), 10_100);
    }

    #[test]
    fn nobody_wakes_early_and_a_cut_ends_a_long_sleep() {
        let thread_state = ThreadState::new(0);
        let deadline_ns = now_ns() + 300_000;
        assert!(wait_until(deadline_ns, &thread_state, &|| false, |_| ()));
        assert!(now_ns() >= deadline_ns);
        let far_ns = now_ns() + 3_600_000_000_000;
        std::thread::current().unpark();
        let mut naps = 0;
        let begin_ns = now_ns();
        let cut = wait_until(far_ns, &thread_state, &|| now_ns() > begin_ns, |_| {
            naps += 1;
        });
        assert!(!cut);
        assert_eq!(naps, 0);
    }

    #[test]
    fn what_is_spent_looking_at_the_clock_is_counted_and_sleep_is_not() {
        let thread_state = ThreadState::new(0);
        let begin_ns = now_ns();
        // A thread that is put aside for so long has nothing left to wait for: then once more.
        for _ in 0..1000 {
            wait_until(now_ns() + MARGIN_NS / 2, &thread_state, &|| false, |_| ());
        }
        let looked_ns = thread_state.outside_ns();
        assert!(looked_ns > 0 && looked_ns <= now_ns() - begin_ns);
        let soon_ns = now_ns() + 50_000_000;
        assert!(wait_until(soon_ns, &thread_state, &|| false, |_| ()));
        let late_ns = now_ns() - soon_ns;
        assert!(thread_state.outside_ns() - looked_ns <= MARGIN_NS + late_ns);
    }
}
