//! What each thread has waited for: vector clocks of bounded size.

use crate::order::EventRef;
use std::collections::VecDeque;
use std::rc::Rc;

/// Threads that a clock keeps; the oldest are forgotten, which costs edges and never correctness (chosen: as many as a replay has lanes).
const MOST_THREADS: usize = 1024;
/// Moments that are kept of all threads together, likewise, and what their clocks may hold (chosen: 64 MiB).
const MOST_MOMENTS: usize = 1 << 16;
const MOST_ENTRIES: usize = 1 << 22;

/// The last row of each thread that is known to have happened, by thread.
type Clock = Vec<(u32, u64)>;

#[derive(Debug, Default)]
struct ThreadClock {
    clock: Rc<Clock>,
    /// The clock as it was from a row on, oldest first.
    moments: VecDeque<(u64, Rc<Clock>)>,
}

#[derive(Debug, Default)]
pub(crate) struct VectorClocks {
    threads: Vec<ThreadClock>,
    /// Whose moments are kept, oldest first.
    noted: VecDeque<u32>,
    /// What the clocks of all moments hold.
    entries: usize,
}

impl VectorClocks {
    fn known(&mut self, thread: u32) -> Option<&mut ThreadClock> {
        let at = usize::try_from(thread).ok()?;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, ThreadClock::default);
        }
        self.threads.get_mut(at)
    }

    /// Let an event wait for another. False if it did so already.
    pub(crate) fn learn(&mut self, now: EventRef, from: EventRef) -> bool {
        let told = self.known(from.thread).and_then(|known| known.at(from.row));
        let Some(known) = self.known(now.thread) else {
            return true;
        };
        let is_newer = |at: usize| known.clock.get(at).is_some_and(|&(_, row)| row >= from.row);
        let place = known
            .clock
            .binary_search_by_key(&from.thread, |&(thread, _)| thread);
        if place.is_ok_and(is_newer) {
            return false;
        }
        let told = told.iter().flat_map(|clock| clock.iter().copied());
        let told = told.filter(|&(thread, _)| thread != now.thread && thread != from.thread);
        let mut clock = later(known.clock.iter().copied(), told);
        match clock.binary_search_by_key(&from.thread, |&(thread, _)| thread) {
            Ok(at) => {
                if let Some(one) = clock.get_mut(at) {
                    one.1 = from.row;
                }
            }
            Err(at) => clock.insert(at, (from.thread, from.row)),
        }
        forget_oldest(&mut clock);
        known.clock = Rc::new(clock);
        true
    }

    /// From this event on, whoever waits for the thread knows what it knows.
    pub(crate) fn note(&mut self, now: EventRef) {
        let Some(known) = self.known(now.thread) else {
            return;
        };
        let last = known.moments.back();
        if last.is_some_and(|(_, clock)| Rc::ptr_eq(clock, &known.clock)) {
            return;
        }
        known.moments.push_back((now.row, Rc::clone(&known.clock)));
        self.entries += known.clock.len();
        self.noted.push_back(now.thread);
        while self.noted.len() > MOST_MOMENTS || self.entries > MOST_ENTRIES {
            self.forget_moment();
        }
    }

    fn forget_moment(&mut self) {
        let oldest = self.noted.pop_front();
        let Some(known) = oldest.and_then(|thread| self.known(thread)) else {
            return;
        };
        let forgotten = known.moments.pop_front();
        if known.moments.is_empty() {
            // It has learned nothing for long, and may have ended.
            known.clock = Rc::default();
        }
        self.entries -= forgotten.map_or(0, |(_, clock)| clock.len());
    }
}

/// The later row of each thread of two clocks.
fn later(one: impl Iterator<Item = (u32, u64)>, other: impl Iterator<Item = (u32, u64)>) -> Clock {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    let mut clock = Clock::with_capacity(one.size_hint().0 + 1);
    loop {
        let next = match (one.peek(), other.peek()) {
            (None, None) => return clock,
            (Some(a), Some(b)) if a.0 == b.0 => {
                let row = a.1.max(b.1);
                one.next();
                other.next().map(|(thread, _)| (thread, row))
            }
            (Some(a), Some(b)) if a.0 > b.0 => other.next(),
            (None, Some(_)) => other.next(),
            (Some(_), _) => one.next(),
        };
        clock.extend(next);
    }
}

/// Keep the latest rows only.
fn forget_oldest(clock: &mut Clock) {
    let Some(more) = clock
        .len()
        .checked_sub(MOST_THREADS)
        .filter(|&more| more > 0)
    else {
        return;
    };
    let mut rows: Vec<u64> = clock.iter().map(|&(_, row)| row).collect();
    let oldest_kept = *rows.select_nth_unstable(more).1;
    clock.retain(|&(_, row)| row >= oldest_kept);
}

impl ThreadClock {
    fn at(&self, row: u64) -> Option<Rc<Clock>> {
        let after = self.moments.partition_point(|&(from, _)| from <= row);
        let (_, clock) = self.moments.get(after.checked_sub(1)?)?;
        Some(Rc::clone(clock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_ref(row: u64, thread: u32) -> EventRef {
        EventRef { row, thread }
    }

    #[test]
    fn what_a_thread_knows_goes_on_to_who_waits_for_it_from_then_on() {
        let mut clocks = VectorClocks::default();
        assert!(clocks.learn(event_ref(5, 1), event_ref(4, 0)));
        clocks.note(event_ref(5, 1));
        assert!(clocks.learn(event_ref(6, 2), event_ref(3, 1)));
        clocks.note(event_ref(6, 2));
        assert!(clocks.learn(event_ref(7, 2), event_ref(4, 0)));
        assert!(clocks.learn(event_ref(8, 3), event_ref(5, 1)));
        assert!(!clocks.learn(event_ref(8, 3), event_ref(4, 0)));
        assert!(!clocks.learn(event_ref(9, 3), event_ref(2, 0)));
    }

    #[test]
    fn what_is_kept_has_a_bound_however_many_threads_and_events_there_are() {
        let mut clocks = VectorClocks::default();
        let threads = 2_000_u32;
        for row in 1..8_000_u64 {
            let [from, now] =
                [row - 1, row].map(|row| event_ref(row, u32::try_from(row).unwrap() % threads));
            assert!(clocks.learn(now, from));
            clocks.note(now);
        }
        let each = clocks.threads.iter();
        let moments = each.clone().flat_map(|known| &known.moments);
        let entries: usize = moments.clone().map(|(_, clock)| clock.len()).sum();
        assert_eq!(
            (entries, moments.count()),
            (clocks.entries, clocks.noted.len())
        );
        assert!(entries <= MOST_ENTRIES && entries + MOST_THREADS > MOST_ENTRIES);
        let longest = each.map(|known| known.clock.len()).max();
        assert_eq!(longest, Some(MOST_THREADS));
        // Of the latest ones it is known.
        assert!(!clocks.learn(event_ref(8_000, 1_999), event_ref(7_998, 1_998)));
    }
}
