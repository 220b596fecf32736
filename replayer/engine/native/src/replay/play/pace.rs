//! When events of a replay are due, and waiting for it precisely. The only place where lanes sleep for a time.

use crate::clock::now_ns;
use crate::pulse::Pulse;
use std::time::Duration;

/// A sleep ends so much late at most, mostly: the rest is spent looking at the clock. Measured on a busy virtual machine with a timer
/// slack of 1 ns: sleeps of 0.1, 1 and 10 ms end 6, 22 and 33 µs late in the median.
const MARGIN_NS: u64 = 50_000;

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
    pulse: &Pulse,
    is_over: &impl Fn() -> bool,
    idle: impl FnMut(u64),
) -> bool {
    if now_ns() >= deadline_ns {
        return true;
    }
    wait_long(deadline_ns, pulse, is_over, idle)
}

fn wait_long(
    deadline_ns: u64,
    pulse: &Pulse,
    is_over: &impl Fn() -> bool,
    mut idle: impl FnMut(u64),
) -> bool {
    loop {
        let now_ns = now_ns();
        if now_ns >= deadline_ns {
            return true;
        }
        if is_over() {
            return false;
        }
        let left_ns = deadline_ns - now_ns;
        if left_ns > MARGIN_NS {
            idle(left_ns);
            let sleep = Duration::from_nanos(left_ns - MARGIN_NS);
            pulse.rest(|| std::thread::park_timeout(sleep));
        } else {
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

    #[test]
    fn nobody_wakes_early_and_a_cut_ends_a_long_sleep() {
        let pulse = Pulse::new(0);
        let deadline_ns = now_ns() + 300_000;
        assert!(wait_until(deadline_ns, &pulse, &|| false, |_| ()));
        assert!(now_ns() >= deadline_ns);
        let far_ns = now_ns() + 3_600_000_000_000;
        std::thread::current().unpark();
        let mut naps = 0;
        let begin_ns = now_ns();
        let cut = wait_until(far_ns, &pulse, &|| now_ns() > begin_ns, |_| naps += 1);
        assert!(!cut);
        assert_eq!(naps, 0);
    }
}
