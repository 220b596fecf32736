//! The one clock of the engine, in nanoseconds: `CLOCK_MONOTONIC`, or the counter that the kernel makes it of. Wall time is
//! read once, for reports.
//!
//! An op's two looks at the kernel's clock cost 70 to 90 ns on the machine where this was measured, two reads of the counter 40 ns.

use crate::sys::{counter, counter_is_the_clock};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Two pairs of readings this far apart say how long a tick is (chosen: 30 ns of error make 2 millionths).
const BASELINE: Duration = Duration::from_millis(15);
/// Of so many readings the one that was disturbed least is taken (chosen).
const READINGS: usize = 64;
/// Ticks are multiplied by a number of 2^-32 nanoseconds.
const SHIFT: u32 = 32;
/// What a look costs is the least of so many means (chosen: 2 ms where one is a system call of 12 µs).
const MEANS: u32 = 16;
/// Of so many looks each.
const LOOKS: u32 = 8;
/// A dearer look is worth saving (chosen: ten times one in user space; a system call takes longer).
const SLOW_NS: f64 = 500.0;

/// How the counter's ticks become nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// 2^-32 nanoseconds a tick.
    scale: u64,
    /// What the kernel's clock is ahead.
    offset_ns: u64,
}

/// The scale of the ticks in use; 0: the kernel's clock is asked.
static SCALE: AtomicU64 = AtomicU64::new(0);
/// Set before the scale.
static OFFSET_NS: AtomicU64 = AtomicU64::new(0);
static PREPARED: Once = Once::new();
static IS_SLOW: AtomicBool = AtomicBool::new(false);

/// Find out how to read the clock fast, or that this cannot be. Takes 15 ms the first time; until then the kernel's clock is asked.
pub fn prepare() {
    PREPARED.call_once(|| {
        if let Some(ticks) = counter_is_the_clock().then(Ticks::measured).flatten() {
            OFFSET_NS.store(ticks.offset_ns, Ordering::Relaxed);
            SCALE.store(ticks.scale, Ordering::Release);
        }
        IS_SLOW.store(look_ns() > SLOW_NS, Ordering::Relaxed);
    });
}

/// Whether a look at the clock takes longer than what lies between two ops.
pub(crate) fn is_slow() -> bool {
    IS_SLOW.load(Ordering::Relaxed)
}

/// What a look at the clock costs, in nanoseconds; the least of several, as others may disturb it.
#[must_use]
pub fn look_ns() -> f64 {
    let means = (0..MEANS).map(|_| {
        let begin_ns = now_ns();
        let end_ns = (0..LOOKS).fold(begin_ns, |_, _| now_ns());
        Duration::from_nanos(end_ns.saturating_sub(begin_ns)).as_secs_f64() * 1e9 / f64::from(LOOKS)
    });
    means.fold(f64::MAX, f64::min)
}

/// Nanoseconds on the monotonic clock (no system call either way).
#[inline]
pub(crate) fn now_ns() -> u64 {
    let scale = SCALE.load(Ordering::Acquire);
    if scale == 0 {
        return monotonic_ns();
    }
    let offset_ns = OFFSET_NS.load(Ordering::Relaxed);
    Ticks { scale, offset_ns }.nanoseconds(counter())
}

/// Nanoseconds since a time on this clock; none where the counter has stepped back (a virtual machine that was moved to another host).
#[inline]
pub(crate) fn since_ns(begin_ns: u64) -> u64 {
    now_ns().saturating_sub(begin_ns)
}

/// The kernel's clock; out of the way of the other one.
#[cold]
fn monotonic_ns() -> u64 {
    kernel_ns(ClockId::Monotonic)
}

/// Wall-clock time in nanoseconds since 1970, for reports only.
pub(crate) fn epoch_ns() -> u64 {
    kernel_ns(ClockId::Realtime)
}

#[inline]
fn kernel_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

impl Ticks {
    fn measured() -> Option<Ticks> {
        let (base, base_ns) = reading();
        std::thread::park_timeout(BASELINE);
        while kernel_ns(ClockId::Monotonic).saturating_sub(base_ns) < ns(BASELINE) {
            std::thread::yield_now();
        }
        let (end, end_ns) = reading();
        let scale = (u128::from(end_ns.checked_sub(base_ns)?) << SHIFT)
            .checked_div(u128::from(end.checked_sub(base)?))?;
        let unmoved = Ticks {
            scale: u64::try_from(scale).ok().filter(|scale| *scale > 0)?,
            offset_ns: 0,
        };
        Some(Ticks {
            offset_ns: base_ns.wrapping_sub(unmoved.nanoseconds(base)),
            ..unmoved
        })
    }

    #[inline]
    fn nanoseconds(self, counter: u64) -> u64 {
        let passed = (u128::from(counter) * u128::from(self.scale)) >> SHIFT;
        #[expect(clippy::cast_possible_truncation, reason = "584 years")]
        let passed_ns = passed as u64;
        passed_ns.wrapping_add(self.offset_ns)
    }
}

pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The counter and the kernel's clock at the same moment: the pair, of many, with the least time in between.
fn reading() -> (u64, u64) {
    let readings = (0..READINGS).map(|_| {
        let before_ns = kernel_ns(ClockId::Monotonic);
        let ticks = counter();
        let after_ns = kernel_ns(ClockId::Monotonic);
        let between_ns = after_ns.saturating_sub(before_ns);
        (between_ns, ticks, before_ns + between_ns / 2)
    });
    readings
        .min()
        .map_or((0, 0), |(_, ticks, time_ns)| (ticks, time_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_keeps_the_kernels_time() {
        let Some(ticks) = counter_is_the_clock().then(Ticks::measured).flatten() else {
            return;
        };
        std::thread::park_timeout(Duration::from_millis(100));
        let (counter, time_ns) = reading();
        // 100 millionths of 100 ms and more: far above the error, far below what would matter.
        let off_ns = ticks.nanoseconds(counter).abs_diff(time_ns);
        assert!(off_ns < 20_000, "{off_ns} ns after 100 ms");
    }

    #[test]
    fn a_look_costs_something_and_less_than_a_page_read_from_a_disk() {
        prepare();
        let look_ns = look_ns();
        assert!(look_ns > 1.0 && look_ns < 1e6, "{look_ns}");
    }

    #[test]
    fn no_time_has_passed_since_what_is_to_come() {
        prepare();
        assert!(since_ns(now_ns() - 1000) >= 1000);
        assert_eq!(since_ns(now_ns() + 1_000_000_000), 0);
    }

    #[test]
    fn time_never_goes_back() {
        prepare();
        let mut last_ns = now_ns();
        for _ in 0..100_000 {
            let next_ns = now_ns();
            assert!(next_ns >= last_ns);
            last_ns = next_ns;
        }
    }
}
