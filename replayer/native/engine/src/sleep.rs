//! The one place where users' threads wait for a time.

use crate::clock::now_ns;
use std::time::Duration;

/// Sleep until a time on the monotonic clock; false when it was woken for a reason before.
///
/// Whoever changes the reason unparks the thread afterwards.
pub(crate) fn sleep_until(deadline_ns: u64, woken: impl Fn() -> bool) -> bool {
    loop {
        if woken() {
            return false;
        }
        let now_ns = now_ns();
        if now_ns >= deadline_ns {
            return true;
        }
        std::thread::park_timeout(Duration::from_nanos(deadline_ns - now_ns));
    }
}
