//! The harness's own health: how long the users' threads waited for a CPU.

use crate::lock::hold;
use crate::sys_layout;
use std::sync::Mutex;

/// Threads that are looked at (contract); the sum is scaled up to all.
const SAMPLED: usize = 64;

/// Delays in nanoseconds, by thread.
#[derive(Default)]
struct Threads {
    /// Last value of each thread that is looked at.
    sampled: Vec<(i32, u64)>,
    /// Sum over the threads that were looked at and have ended.
    ended_ns: u64,
    ever_sampled: u64,
    ever: u64,
}

/// Run-queue delay of the users' threads, sampled over at most 64 of them.
#[derive(Default)]
pub(crate) struct RunQueue {
    threads: Mutex<Threads>,
}

impl RunQueue {
    /// A user's thread has started.
    pub(crate) fn enter(&self, tid: i32) {
        let mut threads = hold(&self.threads);
        threads.ever += 1;
        if threads.sampled.len() < SAMPLED {
            threads.ever_sampled += 1;
            threads.sampled.push((tid, 0));
        }
    }

    /// It is about to end: called by itself, so that its last value is not lost.
    pub(crate) fn leave(&self, tid: i32) {
        let mut threads = hold(&self.threads);
        if let Some(place) = threads
            .sampled
            .iter()
            .position(|(sampled, _)| *sampled == tid)
        {
            let (_, last) = threads.sampled.swap_remove(place);
            threads.ended_ns += read_delay(tid).unwrap_or(last);
        }
    }

    /// Look at the threads; one that has ended keeps its last value.
    pub(crate) fn sample(&self) {
        let mut threads = hold(&self.threads);
        let mut ended_ns = 0;
        threads.sampled.retain_mut(|(tid, last)| {
            let delay = read_delay(*tid);
            ended_ns += if delay.is_none() { *last } else { 0 };
            *last = delay.unwrap_or(*last);
            delay.is_some()
        });
        threads.ended_ns += ended_ns;
    }

    /// Delay of all users' threads since the begin, scaled up from those that were looked at.
    pub(crate) fn delay_ns(&self) -> u64 {
        self.sample();
        let threads = hold(&self.threads);
        let running: u64 = threads.sampled.iter().map(|(_, last)| last).sum();
        let scaled = u128::from(threads.ended_ns + running) * u128::from(threads.ever)
            / u128::from(threads.ever_sampled.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The second number of schedstat: nanoseconds spent waiting on a run queue (Documentation/scheduler/sched-stats.rst).
fn read_delay(tid: i32) -> Option<u64> {
    let mut text = [0; 96];
    let read =
        sys_layout::read_file(&format!("/proc/self/task/{tid}/schedstat"), &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..read)?).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::gettid;

    #[test]
    fn delays_of_ended_threads_are_kept_and_scaled() {
        let queue = RunQueue::default();
        std::thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| {
                    let tid = gettid().as_raw_nonzero().get();
                    queue.enter(tid);
                    std::thread::yield_now();
                    queue.leave(tid);
                });
            }
        });
        let after = queue.delay_ns();
        assert!(hold(&queue.threads).sampled.is_empty());
        assert_eq!(queue.delay_ns(), after);
    }

    #[test]
    fn threads_that_ended_unseen_keep_their_last_value() {
        let queue = RunQueue::default();
        queue.enter(i32::MAX);
        hold(&queue.threads).sampled = vec![(i32::MAX, 77)];
        assert_eq!(queue.delay_ns(), 77);
        assert_eq!(queue.delay_ns(), 77);
    }
}
