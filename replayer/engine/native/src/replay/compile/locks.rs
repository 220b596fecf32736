//! The locks of ranges that each file of the trace has: who is refused another one keeps them.

use std::collections::HashMap;

/// Ranges of one file at most (chosen); what is locked beyond is not kept.
const MOST_RANGES: usize = 1024;
/// `F_UNLCK`.
pub(super) const UNLOCKED: u32 = 2;

/// From its first byte to behind its last one.
type Span = (i64, i64);

/// Ranges by file, apart from each other, each with its kind (`F_RDLCK` or `F_WRLCK`).
#[derive(Debug, Default)]
pub(super) struct Locks(HashMap<u32, Vec<(Span, u32)>>);

/// The bytes that a lock is for, if its offset counts from the begin of the file (fcntl(2): of no size goes on for ever).
pub(super) fn span(whence: u32, offset: i64, size: i64) -> Option<Span> {
    let end = match size {
        0 => i64::MAX,
        size => offset.saturating_add(size),
    };
    let span = (offset.min(end), offset.max(end));
    (whence == 0 && span.0 >= 0).then_some(span)
}

fn meets(one: Span, other: Span) -> bool {
    one.0 < other.1 && other.0 < one.1
}

impl Locks {
    /// A range is locked, or unlocked.
    pub(super) fn set(&mut self, file: u32, span: Span, kind: u32) {
        let ranges = self.0.entry(file).or_default();
        let met: Vec<_> = ranges.extract_if(.., |held| meets(held.0, span)).collect();
        for ((start, end), kind) in met {
            let rest = [(start, span.0), (span.1, end)];
            let rest = rest.into_iter().filter(|(start, end)| start < end);
            ranges.extend(rest.map(|rest| (rest, kind)));
        }
        if kind != UNLOCKED && ranges.len() < MOST_RANGES {
            ranges.push((span, kind));
        }
        if ranges.is_empty() {
            self.0.remove(&file);
        }
    }

    /// The kind of lock that a range has as a whole; unlocked where its parts differ.
    pub(super) fn of(&self, file: u32, span: Span) -> u32 {
        let ranges = self.0.get(&file).into_iter().flatten();
        let mut met = ranges.filter(|held| meets(held.0, span)).peekable();
        let kind = met.peek().map_or(UNLOCKED, |held| held.1);
        let mut covered = 0;
        for ((start, end), other) in met {
            if *other != kind {
                return UNLOCKED;
            }
            covered += end.min(&span.1) - start.max(&span.0);
        }
        if covered == span.1 - span.0 {
            kind
        } else {
            UNLOCKED
        }
    }

    /// A file is closed.
    pub(super) fn forget(&mut self, file: u32) {
        self.0.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_lock_that_it_was_given_last() {
        let mut locks = Locks::default();
        let all = span(0, 0, 0).unwrap();
        assert_eq!(locks.of(7, all), UNLOCKED);
        locks.set(7, (10, 20), 0);
        locks.set(7, (20, 30), 0);
        assert_eq!([locks.of(7, (10, 30)), locks.of(7, (9, 30))], [0, UNLOCKED]);
        locks.set(7, (15, 16), 1);
        assert_eq!([locks.of(7, (15, 16)), locks.of(7, (16, 30))], [1, 0]);
        assert_eq!(locks.of(7, (10, 20)), UNLOCKED);
        locks.set(7, all, UNLOCKED);
        assert_eq!(locks.of(7, (16, 30)), UNLOCKED);
        locks.set(7, all, 1);
        locks.forget(7);
        assert_eq!(locks.of(7, all), UNLOCKED);
    }

    #[test]
    fn odd_ranges_are_taken_as_the_kernel_takes_them_or_not_at_all() {
        assert_eq!(span(0, 10, -4), Some((6, 10)));
        assert_eq!(span(0, i64::MAX, 5), Some((i64::MAX, i64::MAX)));
        assert_eq!([span(1, 0, 5), span(0, 5, i64::MIN)], [None; 2]);
    }
}
