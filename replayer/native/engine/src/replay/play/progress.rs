//! How far the lanes of a performance are, and waiting for one another: atomics, and a futex for those that wait long.

use crate::clock::{now_ns, since_ns};
use crate::lock::hold;
use crate::replay::program::Wait;
use crate::user_threads::NAG;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Thread, current, park_timeout};

/// Looking costs nothing to others for so long; then the thread sleeps (chosen: a few short calls of the lane that is waited for).
const SPIN_NS: u64 = 5_000;

/// Two cache lines, because they are fetched in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LaneProgress {
    /// Rows below this have ended.
    done: AtomicU64,
    /// Rows below this nobody sleeps for, less one; `u64::MAX` when nobody sleeps.
    lowest: AtomicU64,
    sleepers: Mutex<Vec<(u64, Thread)>>,
}

impl LaneProgress {
    fn new() -> LaneProgress {
        LaneProgress {
            lowest: AtomicU64::new(u64::MAX),
            ..LaneProgress::default()
        }
    }

    #[inline]
    fn has_done(&self, row: u64) -> bool {
        self.done.load(Ordering::SeqCst) > row
    }

    #[cold]
    fn wake(&self, done: u64) {
        let mut sleepers = hold(&self.sleepers);
        sleepers.retain(|(row, thread)| {
            if *row < done {
                thread.unpark();
            }
            *row >= done
        });
        self.look_at(&sleepers);
    }

    fn look_at(&self, sleepers: &[(u64, Thread)]) {
        let lowest = sleepers.iter().map(|(row, _)| *row).min();
        self.lowest
            .store(lowest.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    fn sleep(&self, row: u64, is_over: &impl Fn() -> bool) -> bool {
        let mut sleepers = hold(&self.sleepers);
        sleepers.push((row, current()));
        self.look_at(&sleepers);
        drop(sleepers);
        // Whoever has not seen the line above is seen here: both sides write before they look, in one order.
        if self.has_done(row) {
            self.leave();
            return true;
        }
        while !self.has_done(row) {
            if is_over() {
                self.leave();
                return false;
            }
            park_timeout(NAG);
        }
        true
    }

    /// Nobody else wakes this thread, or need do so.
    fn leave(&self) {
        let mut sleepers = hold(&self.sleepers);
        let own = current().id();
        sleepers.retain(|(_, thread)| thread.id() != own);
        self.look_at(&sleepers);
    }
}

/// All lanes of a performance.
#[derive(Debug)]
pub(crate) struct Progress {
    states: Box<[LaneProgress]>,
}

impl Progress {
    pub(crate) fn new(lanes: usize) -> Progress {
        Progress {
            states: (0..lanes).map(|_| LaneProgress::new()).collect(),
        }
    }

    /// The event of a row has ended: later events of other lanes may begin.
    #[inline]
    pub(crate) fn complete(&self, lane: usize, row: u64) {
        let Some(state) = self.states.get(lane) else {
            return;
        };
        state.done.swap(row + 1, Ordering::SeqCst);
        if state.lowest.load(Ordering::SeqCst) <= row {
            state.wake(row + 1);
        }
    }

    /// A lane has nothing more to play.
    pub(crate) fn finish(&self, lane: usize) {
        if let Some(state) = self.states.get(lane) {
            state.done.swap(u64::MAX, Ordering::SeqCst);
            state.wake(u64::MAX);
        }
    }

    /// Whether the event of a row has ended.
    #[inline]
    pub(crate) fn has_done(&self, wait: Wait) -> bool {
        let state = self.states.get(usize::from(wait.lane));
        state.is_none_or(|state| state.has_done(wait.row))
    }

    /// Wait until the event of a row has ended; false when the performance is over before.
    #[inline]
    pub(crate) fn wait(&self, wait: Wait, is_over: &impl Fn() -> bool) -> bool {
        match self.states.get(usize::from(wait.lane)) {
            Some(state) if !state.has_done(wait.row) => wait_long(state, wait.row, is_over),
            _ => true,
        }
    }
}

#[cold]
fn wait_long(state: &LaneProgress, row: u64, is_over: &impl Fn() -> bool) -> bool {
    let begin_ns = now_ns();
    while since_ns(begin_ns) < SPIN_NS {
        if state.done.load(Ordering::Acquire) > row {
            return true;
        }
        std::hint::spin_loop();
    }
    state.sleep(row, is_over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_sleeper_is_woken_by_the_row_it_waits_for() {
        let progress = Progress::new(2);
        let wait = Wait { lane: 0, row: 1000 };
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| progress.wait(wait, &|| false));
            for row in 0..=1000 {
                progress.complete(0, row);
                if row % 100 == 0 {
                    std::thread::yield_now();
                }
            }
            assert!(sleeper.join().unwrap());
        });
        assert_eq!(progress.states[0].lowest.load(Ordering::SeqCst), u64::MAX);
    }

    #[test]
    fn a_wait_ends_with_the_performance_and_with_the_lane() {
        let progress = Progress::new(1);
        let over = AtomicBool::new(false);
        let (progress, over) = (&progress, &over);
        std::thread::scope(|scope| {
            let wait = Wait { lane: 0, row: 5 };
            let sleeper = scope.spawn(move || progress.wait(wait, &|| over.load(Ordering::SeqCst)));
            over.store(true, Ordering::SeqCst);
            assert!(!sleeper.join().unwrap());
        });
        progress.finish(0);
        assert!(progress.wait(Wait { lane: 0, row: 5 }, &|| false));
    }
}
