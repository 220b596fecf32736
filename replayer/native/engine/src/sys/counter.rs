//! The processor's time stamp counter, where the kernel itself keeps time by it: half the price of asking the kernel's clock.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "rdtsc has no safe form")
)]

#[cfg(target_arch = "x86_64")]
use rustix::fs::{CWD, Mode, OFlags};

/// Whether the counter may be believed: the kernel has chosen it as its clock, so it has found it constant and the same on all CPUs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn counter_is_the_clock() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let mut name = [0_u8; 16];
    let file = rustix::fs::openat(CWD, SOURCE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let read = file.and_then(|file| rustix::io::read(&file, &mut name));
    read.is_ok_and(|read| name.get(..read) == Some(b"tsc\n"))
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn counter_is_the_clock() -> bool {
    false
}

/// The counter. Entering and leaving the kernel keeps the order of the two reads around a system call; the form that waits for
/// what comes before it costs 8 ns more.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn counter() -> u64 {
    // SAFETY: reads a register that every x86-64 has; where the kernel forbids it, it has not chosen it as its clock.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn counter() -> u64 {
    0
}
