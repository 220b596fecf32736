//! The harness's own health: how long the users' threads waited for a CPU while they had work to do.
//!
//! A thread that wakes from its think time waits for a CPU too; that wait is the lag of its next transaction and no part of any call, so it is taken off.

use crate::lock::hold;
use crate::sys::below;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Threads that are looked at (contract); the sum is scaled up to all.
const SAMPLED: usize = 64;

/// The waiting time of one thread, read through a descriptor that works in any confinement.
#[derive(Debug)]
pub(crate) struct Waiting {
    schedstat: OwnedFd,
    /// The last value of a thread that has ended.
    last_ns: AtomicU64,
    resting_ns: AtomicU64,
}

impl Waiting {
    fn of_thread(tid: i32) -> Option<Waiting> {
        let schedstat = below::open_file(&format!("/proc/self/task/{tid}/schedstat")).ok()?;
        Some(Waiting {
            schedstat,
            last_ns: AtomicU64::new(0),
            resting_ns: AtomicU64::new(0),
        })
    }

    /// Time on a run queue since the thread began: the second number of schedstat
    /// (Documentation/scheduler/sched-stats.rst).
    fn read_ns(&self) -> u64 {
        let mut text = [0; 96];
        let read = below::read_from(&self.schedstat, &mut text).unwrap_or(0);
        let text = std::str::from_utf8(text.get(..read).unwrap_or_default()).unwrap_or("");
        if let Some(delay_ns) = text
            .split_ascii_whitespace()
            .nth(1)
            .and_then(|delay| delay.parse().ok())
        {
            self.last_ns.store(delay_ns, Ordering::Relaxed);
        }
        self.last_ns.load(Ordering::Relaxed)
    }

    /// Sleep: what the thread waits for a CPU when it wakes does not count.
    pub(crate) fn rest<R>(&self, sleep: impl FnOnce() -> R) -> R {
        let before_ns = self.read_ns();
        let slept = sleep();
        let waited_ns = self.read_ns().saturating_sub(before_ns);
        self.resting_ns.fetch_add(waited_ns, Ordering::Relaxed);
        slept
    }

    fn working_ns(&self) -> u64 {
        // What rests under way have cost is not known yet: the reading can be a little too high, never too low.
        let resting_ns = self.resting_ns.load(Ordering::Relaxed);
        self.read_ns().saturating_sub(resting_ns)
    }
}

#[derive(Default)]
struct Threads {
    sampled: Vec<Arc<Waiting>>,
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
    /// A user's thread has started; it is given its waiting time when it is one of those looked at.
    pub(crate) fn enter(&self, tid: i32) -> Option<Arc<Waiting>> {
        let mut threads = hold(&self.threads);
        threads.ever += 1;
        if threads.sampled.len() >= SAMPLED {
            return None;
        }
        let waiting = Arc::new(Waiting::of_thread(tid)?);
        threads.ever_sampled += 1;
        threads.sampled.push(Arc::clone(&waiting));
        Some(waiting)
    }

    /// It is about to end: called by itself, so that its last value is not lost.
    pub(crate) fn leave(&self, waiting: &Arc<Waiting>) {
        let mut threads = hold(&self.threads);
        threads.sampled.retain(|each| !Arc::ptr_eq(each, waiting));
        threads.ended_ns += waiting.working_ns();
    }

    /// Delay of all users' threads since the begin, scaled up from those that were looked at.
    pub(crate) fn delay_ns(&self) -> u64 {
        let threads = hold(&self.threads);
        let running: u64 = threads.sampled.iter().map(|each| each.working_ns()).sum();
        let scaled = u128::from(threads.ended_ns + running) * u128::from(threads.ever)
            / u128::from(threads.ever_sampled.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::gettid;
    use std::time::{Duration, Instant};

    fn own() -> i32 {
        gettid().as_raw_nonzero().get()
    }

    fn spin(milliseconds: u64) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(milliseconds) {
            std::hint::spin_loop();
        }
    }

    /// What a thread does while too many are at work beside it.
    fn in_a_user_threads<R: Send>(alone: impl FnOnce() -> R + Send) -> R {
        let threads = 4 * std::thread::available_parallelism().unwrap().get();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| spin(100));
            }
            scope.spawn(alone).join().unwrap()
        })
    }

    #[test]
    fn delays_of_ended_threads_are_scaled_to_those_that_nobody_looked_at() {
        let queue = RunQueue {
            threads: Mutex::new(Threads {
                sampled: Vec::new(),
                ended_ns: 100,
                ever_sampled: 50,
                ever: 200,
            }),
        };
        assert_eq!(queue.delay_ns(), 400);
        assert_eq!(RunQueue::default().delay_ns(), 0);
    }

    #[test]
    fn so_many_threads_are_looked_at_and_others_in_the_place_of_those_that_end() {
        let queue = RunQueue::default();
        let entered: Vec<_> = (0..200).map(|_| queue.enter(own())).collect();
        assert_eq!(entered.iter().flatten().count(), SAMPLED);
        queue.leave(entered[0].as_ref().unwrap());
        assert!(queue.enter(own()).is_some());
        assert!(queue.enter(own()).is_none());
        let threads = hold(&queue.threads);
        assert_eq!(threads.sampled.len(), SAMPLED);
        assert_eq!((threads.ever_sampled, threads.ever), (65, 202));
    }

    #[test]
    fn what_a_thread_has_waited_is_kept_when_it_ends() {
        let queue = RunQueue::default();
        let left_ns = in_a_user_threads(|| {
            let waiting = queue.enter(own()).unwrap();
            spin(50);
            queue.leave(&waiting);
            waiting.last_ns.load(Ordering::Relaxed)
        });
        assert!(left_ns > 0);
        assert_eq!(queue.delay_ns(), left_ns);
    }

    #[test]
    fn threads_that_user_threads_a_cpu_wait_while_they_work() {
        let queue = RunQueue::default();
        let threads = 4 * std::thread::available_parallelism().unwrap().get();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let waiting = queue.enter(own()).unwrap();
                    spin(100);
                    queue.leave(&waiting);
                });
            }
        });
        assert!(queue.delay_ns() > 100_000_000);
    }

    /// What counts of the waits of a thread whose rest ends where too many are at work.
    fn counted_of_a_crowded_rest() -> u64 {
        let queue = RunQueue::default();
        let waiting = queue.enter(own()).unwrap();
        let before = (waiting.read_ns(), waiting.working_ns());
        waiting.rest(|| {
            std::thread::scope(|scope| {
                for _ in 0..4 * std::thread::available_parallelism().unwrap().get() {
                    scope.spawn(|| spin(50));
                }
                spin(50);
            });
        });
        assert!(waiting.read_ns() > before.0);
        waiting.working_ns() - before.1
    }

    #[test]
    fn a_wait_after_a_rest_does_not_count() {
        // Another process may take the processor just before the rest or after it: not every time.
        assert!((0..20).any(|_| counted_of_a_crowded_rest() == 0));
    }

    #[test]
    fn a_thread_that_ended_unseen_keeps_its_last_value() {
        let queue = RunQueue::default();
        let (tid, seen_ns) = in_a_user_threads(|| {
            let waiting = queue.enter(own()).unwrap();
            spin(50);
            (own(), waiting.working_ns())
        });
        // Its parent may know of its end before /proc does.
        let task = format!("/proc/self/task/{tid}");
        while std::path::Path::new(&task).exists() {
            std::thread::yield_now();
        }
        assert!(seen_ns > 0);
        assert_eq!(queue.delay_ns(), seen_ns);
    }
}
