//! Lanes: which thread of a performance plays which threads of the trace.

use crate::replay::program::Lane;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Threads up to which each has a lane of its own.
const OWN_LANES: usize = 256;
/// Lanes at most (chosen: native threads of one user); beyond, threads that overlap share one, in the order of rows.
const MOST_LANES: usize = 1024;
/// Numbers of threads end here (chosen: bounds the table of them).
pub(crate) const MOST_THREADS: u32 = 1 << 20;

/// The rows of a thread that a replay program plays: first and last.
pub(crate) type Spans = Vec<Option<(u64, u64)>>;

/// Note that a thread has an event; false if its number is too large.
pub(crate) fn note(spans: &mut Spans, thread: u32, row: u64) -> bool {
    if thread >= MOST_THREADS {
        return false;
    }
    let at = thread as usize;
    if spans.len() <= at {
        spans.resize(at + 1, None);
    }
    if let Some(span) = spans.get_mut(at) {
        *span = Some(span.map_or((row, row), |(first, _)| (first, row)));
    }
    true
}

/// The lane of each thread, by its number.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// The lowest number of a thread.
    first: u32,
    of: Box<[Option<Lane>]>,
    pub(crate) count: Lane,
}

impl Lanes {
    /// Deal out lanes: one a thread, or first fit where there are many threads.
    pub(crate) fn deal(spans: &Spans) -> Lanes {
        let mut threads: Vec<(u64, u64, usize)> = spans
            .iter()
            .enumerate()
            .filter_map(|(thread, span)| span.map(|(first, last)| (first, last, thread)))
            .collect();
        threads.sort_unstable();
        let own = threads.len() <= OWN_LANES;
        let begin = spans.iter().take_while(|span| span.is_none()).count();
        let mut of = vec![None; spans.len() - begin];
        // Lanes by the row after which they are free.
        let mut free: BinaryHeap<Reverse<(u64, Lane)>> = BinaryHeap::new();
        let mut count: Lane = 0;
        for (first, last, thread) in threads {
            let full = usize::from(count) >= MOST_LANES;
            let fits = free
                .peek()
                .is_some_and(|Reverse((end, _))| *end < first || full);
            let taken = if fits && !own { free.pop() } else { None };
            let (end, lane) = taken.map_or((0, count), |Reverse(taken)| taken);
            count = count.max(lane + 1);
            free.push(Reverse((last.max(end), lane)));
            if let Some(place) = of.get_mut(thread - begin) {
                *place = Some(lane);
            }
        }
        Lanes {
            first: u32::try_from(begin).unwrap_or(u32::MAX),
            of: of.into_boxed_slice(),
            count,
        }
    }

    pub(crate) fn of(&self, thread: u32) -> Option<Lane> {
        let at = thread.checked_sub(self.first)?;
        self.of.get(at as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_threads_have_lanes_of_their_own() {
        let lanes = Lanes::deal(&vec![None, Some((0, 1)), None, Some((2, 3))]);
        assert_eq!(
            (lanes.of(1), lanes.of(2), lanes.of(3)),
            (Some(0), None, Some(1))
        );
        assert_eq!(lanes.count, 2);
    }

    #[test]
    fn many_threads_share_lanes_where_they_do_not_overlap() {
        let spans: Spans = (0..1000_u64)
            .map(|at| Some((at * 10, at * 10 + 25)))
            .collect();
        assert_eq!(Lanes::deal(&spans).count, 3);
    }

    #[test]
    fn there_are_never_more_lanes_than_allowed() {
        let spans: Spans = (0..5000_u64).map(|at| Some((at, 10_000))).collect();
        assert_eq!(usize::from(Lanes::deal(&spans).count), MOST_LANES);
    }

    #[test]
    fn a_thread_with_an_absurd_number_is_refused() {
        assert!(!note(&mut Vec::new(), u32::MAX, 0));
    }
}
