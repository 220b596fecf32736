//! What each thread is known to have waited for: vector clocks, with a bound on what they take.

use crate::seat::Seat;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// Threads that a clock keeps; the oldest are forgotten, which costs edges and never correctness (chosen).
const MOST_THREADS: usize = 256;
/// Moments of a thread that are kept, likewise.
const MOST_MOMENTS: usize = 1024;

/// By thread: the last row of it that is known to have happened.
type Clock = FxHashMap<u32, u64>;

#[derive(Debug, Default)]
struct Known {
    clock: Rc<Clock>,
    /// The clock as it was from a row on, oldest first.
    moments: VecDeque<(u64, Rc<Clock>)>,
}

/// The clocks of all threads.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    threads: Vec<Known>,
}

impl Knowledge {
    fn known(&mut self, thread: u32) -> Option<&mut Known> {
        let at = usize::try_from(thread).ok()?;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Known::default);
        }
        self.threads.get_mut(at)
    }

    /// Let an event wait for another. False if it did so already.
    pub(crate) fn learn(&mut self, now: Seat, from: Seat) -> bool {
        let told = self.known(from.thread).and_then(|known| known.at(from.row));
        let Some(known) = self.known(now.thread) else {
            return true;
        };
        if known
            .clock
            .get(&from.thread)
            .is_some_and(|&row| row >= from.row)
        {
            return false;
        }
        let clock = Rc::make_mut(&mut known.clock);
        clock.insert(from.thread, from.row);
        for (&thread, &row) in told.iter().flat_map(|clock| clock.iter()) {
            if thread != now.thread {
                let known = clock.entry(thread).or_insert(row);
                *known = (*known).max(row);
            }
        }
        while clock.len() > MOST_THREADS {
            let oldest = clock
                .iter()
                .min_by_key(|&(_, row)| row)
                .map(|(&thread, _)| thread);
            let Some(oldest) = oldest else { break };
            clock.remove(&oldest);
        }
        true
    }

    /// From this event on, whoever waits for the thread knows what it knows.
    pub(crate) fn note(&mut self, now: Seat) {
        if let Some(known) = self.known(now.thread) {
            if known
                .moments
                .back()
                .is_some_and(|(_, clock)| Rc::ptr_eq(clock, &known.clock))
            {
                return;
            }
            if known.moments.len() >= MOST_MOMENTS {
                known.moments.pop_front();
            }
            known.moments.push_back((now.row, Rc::clone(&known.clock)));
        }
    }
}

impl Known {
    /// The clock as it was at a row.
    fn at(&self, row: u64) -> Option<Rc<Clock>> {
        let after = self.moments.partition_point(|&(from, _)| from <= row);
        let (_, clock) = self.moments.get(after.checked_sub(1)?)?;
        Some(Rc::clone(clock))
    }
}
