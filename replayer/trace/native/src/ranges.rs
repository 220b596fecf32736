//! Who read and wrote which bytes of a file last.

use crate::access::Access;
use crate::seat::{Seat, put};

/// Ranges kept of a file; more are taken together, which orders more than is needed and never less (chosen).
const MOST_RANGES: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    seat: Seat,
}

/// Reads and writes that later ones may have to wait for.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    writes: Vec<Range>,
    reads: Vec<Range>,
    appends: Appends,
}

/// Writes at the end, wherever that was: they do not wait for each other, but all of them decide what stands behind the first.
#[derive(Debug, Default)]
struct Appends {
    /// The last one of each thread.
    seats: Vec<Seat>,
    /// Where the first one began.
    from: Option<i64>,
}

impl Ranges {
    /// Use the bytes of a span (its end is excluded); tells whom the use has to wait for. `Add` is a write at the end.
    pub(crate) fn touch(
        &mut self,
        seat: Seat,
        span: (i64, i64),
        access: Access,
        waits_for: impl FnMut(Seat),
    ) {
        let span = (span.0, span.1.max(span.0.saturating_add(1)));
        match access {
            Access::Add => self.append(seat, span.0, waits_for),
            Access::Read | Access::Write => self.place(seat, span, access, waits_for),
        }
    }

    fn append(&mut self, seat: Seat, start: i64, mut waits_for: impl FnMut(Seat)) {
        // Who wrote the last byte made the end what it is; who saw the end saw it before.
        let writes = self.writes.iter().filter(|range| range.end >= start);
        let reads = self.reads.iter().filter(|range| range.end > start);
        for range in writes.chain(reads) {
            waits_for(range.seat);
        }
        put(&mut self.appends.seats, seat);
        let from = self.appends.from.map_or(start, |from| from.min(start));
        self.appends.from = Some(from);
    }

    fn place(
        &mut self,
        seat: Seat,
        (start, end): (i64, i64),
        access: Access,
        mut waits_for: impl FnMut(Seat),
    ) {
        let touching = |range: &&Range| range.start < end && start < range.end;
        for range in self.writes.iter().filter(touching) {
            waits_for(range.seat);
        }
        if self.appends.from.is_some_and(|from| from < end) {
            for &seat in &self.appends.seats {
                waits_for(seat);
            }
        }
        let covered = |range: &Range| start <= range.start && range.end <= end;
        if access == Access::Read {
            self.reads
                .retain(|range| !(covered(range) && range.seat.thread == seat.thread));
            append(&mut self.reads, Range { start, end, seat });
            return;
        }
        for range in self.reads.iter().filter(touching) {
            waits_for(range.seat);
        }
        if end == i64::MAX && self.appends.from.is_some_and(|from| start <= from) {
            self.appends = Appends::default();
        }
        self.writes.retain(|range| !covered(range));
        self.reads.retain(|range| !covered(range));
        append(&mut self.writes, Range { start, end, seat });
    }
}

fn append(ranges: &mut Vec<Range>, range: Range) {
    // What a thread goes on with is one range: sequential reads and writes stay small.
    if let Some(last) = ranges.last_mut()
        && last.seat.thread == range.seat.thread
        && last.end == range.start
    {
        last.end = range.end;
        last.seat = range.seat;
        return;
    }
    ranges.push(range);
    if ranges.len() > MOST_RANGES {
        let mut merged: Vec<Range> = Vec::new();
        for range in ranges.drain(..) {
            match merged
                .iter_mut()
                .find(|other| other.seat.thread == range.seat.thread)
            {
                Some(other) => {
                    other.start = other.start.min(range.start);
                    other.end = other.end.max(range.end);
                    other.seat = other.seat.max(range.seat);
                }
                None => merged.push(range),
            }
        }
        *ranges = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(
        ranges: &mut Ranges,
        row: u64,
        thread: u32,
        span: (i64, i64),
        access: Access,
    ) -> Vec<u64> {
        let mut rows = Vec::new();
        ranges.touch(Seat { row, thread }, span, access, |seat| {
            rows.push(seat.row);
        });
        rows
    }

    #[test]
    fn only_what_overlaps_waits() {
        let mut ranges = Ranges::default();
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
        let mut ranges = Ranges::default();
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
        let mut ranges = Ranges::default();
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
        assert!(ranges.writes.len() <= MOST_RANGES);
        assert!(!touch(&mut ranges, 10_000, 9, (100, 101), Access::Read).is_empty());
    }
}
