//! Who read and wrote which bytes of a file last.

use crate::seat::Seat;

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
}

impl Ranges {
    /// Use the bytes of a span (its end is excluded); tells whom the use has to wait for.
    pub(crate) fn touch(
        &mut self,
        seat: Seat,
        span: (i64, i64),
        writes: bool,
        mut waits_for: impl FnMut(Seat),
    ) {
        let (start, end) = (span.0, span.1.max(span.0.saturating_add(1)));
        let touching = |range: &&Range| range.start < end && start < range.end;
        for range in self.writes.iter().filter(touching) {
            waits_for(range.seat);
        }
        let covered = |range: &Range| start <= range.start && range.end <= end;
        if writes {
            for range in self.reads.iter().filter(touching) {
                waits_for(range.seat);
            }
            self.writes.retain(|range| !covered(range));
            self.reads.retain(|range| !covered(range));
            append(&mut self.writes, Range { start, end, seat });
        } else {
            self.reads
                .retain(|range| !(covered(range) && range.seat.thread == seat.thread));
            append(&mut self.reads, Range { start, end, seat });
        }
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
        writes: bool,
    ) -> Vec<u64> {
        let mut rows = Vec::new();
        ranges.touch(Seat { row, thread }, span, writes, |seat| {
            rows.push(seat.row);
        });
        rows
    }

    #[test]
    fn only_what_overlaps_waits() {
        let mut ranges = Ranges::default();
        assert!(touch(&mut ranges, 0, 0, (0, 100), true).is_empty());
        assert!(touch(&mut ranges, 1, 1, (200, 300), true).is_empty());
        assert_eq!(touch(&mut ranges, 2, 2, (50, 60), false), [0]);
        assert_eq!(touch(&mut ranges, 3, 0, (55, 250), true), [0, 1, 2]);
        assert!(touch(&mut ranges, 4, 2, (300, 400), false).is_empty());
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
                true,
            );
        }
        assert!(ranges.writes.len() <= MOST_RANGES);
        assert!(!touch(&mut ranges, 10_000, 9, (100, 101), false).is_empty());
    }
}
