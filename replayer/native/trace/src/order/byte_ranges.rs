//! Which thread read and wrote which bytes of a file last.

use crate::order::{Access, EventRef, put};
use rustc_hash::FxHashMap;

/// Ranges kept of a file; more are taken together, one for each thread, which orders more than is needed and never less (chosen).
const MOST_RANGES: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    event_ref: EventRef,
}

/// Reads and writes that later ones may have to wait for.
#[derive(Debug, Default)]
pub(crate) struct ByteRanges {
    writes: Spans,
    reads: Spans,
    appends: Appends,
}

/// Ranges that were read, or written.
#[derive(Debug, Default)]
struct Spans {
    all: Vec<Range>,
    /// How many were left when they were taken together.
    left: usize,
}

/// Writes at the end, wherever that was: they do not wait for each other, but all of them decide what stands behind the first.
#[derive(Debug, Default)]
struct Appends {
    /// The last one of each thread.
    event_refs: Vec<EventRef>,
    /// Where the first one began.
    from: Option<i64>,
}

impl ByteRanges {
    /// Use the bytes of a span (its end is excluded); tells whom the use has to wait for. `Add` is a write at the end.
    pub(crate) fn touch(
        &mut self,
        event_ref: EventRef,
        span: (i64, i64),
        access: Access,
        waits_for: impl FnMut(EventRef),
    ) {
        let span = (span.0, span.1.max(span.0.saturating_add(1)));
        match access {
            Access::Add => self.append(event_ref, span.0, waits_for),
            Access::Read | Access::Write => self.place(event_ref, span, access, waits_for),
        }
    }

    fn append(&mut self, event_ref: EventRef, start: i64, mut waits_for: impl FnMut(EventRef)) {
        // Who wrote the last byte made the end what it is; who saw the end saw it before.
        let writes = self.writes.all.iter().filter(|range| range.end >= start);
        let reads = self.reads.all.iter().filter(|range| range.end > start);
        for range in writes.chain(reads) {
            waits_for(range.event_ref);
        }
        put(&mut self.appends.event_refs, event_ref);
        let from = self.appends.from.map_or(start, |from| from.min(start));
        self.appends.from = Some(from);
    }

    fn place(
        &mut self,
        event_ref: EventRef,
        (start, end): (i64, i64),
        access: Access,
        mut waits_for: impl FnMut(EventRef),
    ) {
        let touching = |range: &&Range| range.start < end && start < range.end;
        for range in self.writes.all.iter().filter(touching) {
            waits_for(range.event_ref);
        }
        if self.appends.from.is_some_and(|from| from < end) {
            for &event_ref in &self.appends.event_refs {
                waits_for(event_ref);
            }
        }
        let covered = |range: &Range| start <= range.start && range.end <= end;
        if access == Access::Read {
            let again =
                |range: &Range| covered(range) && range.event_ref.thread == event_ref.thread;
            self.reads.replace_latest(
                again,
                Range {
                    start,
                    end,
                    event_ref,
                },
            );
            return;
        }
        for range in self.reads.all.iter().filter(touching) {
            waits_for(range.event_ref);
        }
        if end == i64::MAX && self.appends.from.is_some_and(|from| start <= from) {
            self.appends = Appends::default();
        }
        self.writes.all.retain(|range| !covered(range));
        self.reads.all.retain(|range| !covered(range));
        self.writes.append(Range {
            start,
            end,
            event_ref,
        });
    }
}

impl Spans {
    /// Add a range in the place of some of the latest ones; that older ones stay orders nothing more.
    fn replace_latest(&mut self, is_old: impl Fn(&Range) -> bool, range: Range) {
        let first = self.all.len().saturating_sub(MOST_RANGES);
        let latest = self.all.get(first..).unwrap_or_default();
        if latest.iter().any(&is_old) {
            let mut at = 0;
            self.all.retain(|range| {
                at += 1;
                at <= first || !is_old(range)
            });
        }
        self.append(range);
    }

    fn append(&mut self, range: Range) {
        // What a thread goes on with is one range: sequential reads and writes stay small.
        if let Some(last) = self.all.last_mut()
            && last.event_ref.thread == range.event_ref.thread
            && last.end == range.start
        {
            last.end = range.end;
            last.event_ref = range.event_ref;
            return;
        }
        self.all.push(range);
        // Of many threads more ranges than that are left each time: it is not done again before there are twice as many.
        if self.all.len() > MOST_RANGES.max(2 * self.left) {
            self.take_together();
        }
    }

    fn take_together(&mut self) {
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut together: Vec<Range> = Vec::new();
        for range in self.all.drain(..) {
            let place = *places
                .entry(range.event_ref.thread)
                .or_insert(together.len());
            match together.get_mut(place) {
                Some(other) => {
                    other.start = other.start.min(range.start);
                    other.end = other.end.max(range.end);
                    other.event_ref = other.event_ref.max(range.event_ref);
                }
                None => together.push(range),
            }
        }
        self.left = together.len();
        self.all = together;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(
        ranges: &mut ByteRanges,
        row: u64,
        thread: u32,
        span: (i64, i64),
        access: Access,
    ) -> Vec<u64> {
        let mut rows = Vec::new();
        ranges.touch(EventRef { row, thread }, span, access, |event_ref| {
            rows.push(event_ref.row);
        });
        rows
    }

    #[test]
    fn only_what_overlaps_waits() {
        let mut ranges = ByteRanges::default();
        assert!(touch(&mut ranges, 0, 0, (0, 100), Access::Write).is_empty());
        assert!(touch(&mut ranges, 1, 1, (200, 300), Access::Write).is_empty());
        assert_eq!(touch(&mut ranges, 2, 2, (50, 60), Access::Read), [0]);
        assert_eq!(
            touch(&mut ranges, 3, 0, (55, 250), Access::Write),
            [0, 1, 2]
        );
        assert!(touch(&mut ranges, 4, 2, (300, 400), Access::Read).is_empty());
    }

    #[test]
    fn appends_do_not_wait_for_each_other_but_who_looks_behind_them_waits_for_all() {
        let mut ranges = ByteRanges::default();
        assert!(touch(&mut ranges, 0, 0, (0, 7), Access::Write).is_empty());
        assert_eq!(touch(&mut ranges, 1, 1, (7, 9), Access::Add), [0]);
        assert_eq!(touch(&mut ranges, 2, 2, (9, 12), Access::Add), [0; 0]);
        assert_eq!(touch(&mut ranges, 3, 0, (9, 20), Access::Read), [1, 2]);
        assert_eq!(touch(&mut ranges, 4, 1, (12, 13), Access::Add), [3]);
        assert_eq!(touch(&mut ranges, 5, 0, (0, 7), Access::Read), [0]);
        let cut = touch(&mut ranges, 6, 0, (0, i64::MAX), Access::Write);
        assert!(cut.contains(&2) && cut.contains(&4));
        assert_eq!(touch(&mut ranges, 7, 1, (0, 7), Access::Read), [6]);
    }

    #[test]
    fn many_ranges_stay_few() {
        let mut ranges = ByteRanges::default();
        for row in 0..10_000_u64 {
            let start = i64::try_from(row).unwrap() * 10;
            touch(
                &mut ranges,
                row,
                u32::try_from(row % 3).unwrap(),
                (start, start + 5),
                Access::Write,
            );
        }
        assert!(ranges.writes.all.len() <= MOST_RANGES);
        assert!(!touch(&mut ranges, 10_000, 9, (100, 101), Access::Read).is_empty());
    }

    #[test]
    fn who_writes_waits_for_all_of_many_threads_that_read() {
        let mut ranges = ByteRanges::default();
        let threads = 50_000_u32;
        for row in 0..2 * threads {
            touch(
                &mut ranges,
                u64::from(row),
                row % threads,
                (0, 9),
                Access::Read,
            );
        }
        assert!(ranges.reads.all.len() <= 2 * threads as usize);
        let mut waits = touch(&mut ranges, 200_000, threads, (0, 9), Access::Write);
        waits.sort_unstable();
        waits.retain(|&row| row >= u64::from(threads));
        assert_eq!(waits.len(), threads as usize);
        assert!(ranges.reads.all.is_empty());
    }
}
