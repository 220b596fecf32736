//! The one clock of the engine: `CLOCK_MONOTONIC` in nanoseconds. Wall time is read once, for reports.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on `CLOCK_MONOTONIC` (through the vDSO, no system call).
#[inline]
pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

/// Wall-clock time in nanoseconds since 1970, for reports only.
pub(crate) fn epoch_ns() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}
