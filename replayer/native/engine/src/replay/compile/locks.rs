//! The locks of ranges that the files of the trace have: who is refused another one keeps them, and who takes one in the place of
//! its own process's lets that one go.
//!
//! Locks of a process (`F_SETLK`) are replayed as those of open descriptions, for all users are threads of one process. The two differ
//! where a process has a file open twice. What its one descriptor has locked is no hindrance to the other one, and goes with an unlock
//! through the other, and with the close of any. Which threads are of one process is in no trace; but a thread is of one only, and a
//! lock that was given proves that all those were gone by then, or were the same process's, that exclude it.

use super::slots::LaneRow;
use crate::program::LockKind;
use std::collections::HashMap;

/// Ranges of one path's files at most (chosen); what is locked beyond is not kept.
const MOST_RANGES: usize = 1024;

/// From its first byte to behind its last one.
pub(super) type Span = (i64, i64);

/// All bytes of a file.
pub(super) const ALL: Span = (0, i64::MAX);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A process, by the thread of it that took the lock: two threads may be of one process without anybody knowing.
    Process {
        thread: u32,
    },
    Description,
}

/// A lock that a call asks for, or that a file has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) file: u32,
    pub(super) owner: Owner,
    pub(super) span: Span,
    pub(super) kind: LockKind,
}

impl Lock {
    fn meets(&self, span: Span) -> bool {
        self.span.0 < span.1 && span.0 < self.span.1
    }

    /// Whether two owners cannot have both.
    fn excludes(&self, other: &Lock) -> bool {
        let either = |kind| self.kind == kind || other.kind == kind;
        self.meets(other.span) && either(LockKind::Exclusive) && !either(LockKind::Unlock)
    }

    fn is_of_process(&self) -> bool {
        self.owner != Owner::Description
    }

    /// Whether both are locks that one thread took for its process.
    fn is_of_same_thread(&self, other: &Lock) -> bool {
        self.is_of_process() && self.owner == other.owner
    }
}

/// Locks by the row of the path that their files were opened by; those of one file are apart from each other.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: HashMap<u32, Vec<Lock>>,
    closes: LastSeats,
    refusals: LastSeats,
}

/// By the row of a path, the last event of each lane that has done something there.
#[derive(Debug, Default)]
struct LastSeats(HashMap<u32, Vec<LaneRow>>);

impl LastSeats {
    fn note(&mut self, path: u32, lane_row: LaneRow) {
        let rows = self.0.entry(path).or_default();
        match rows.iter_mut().find(|known| known.0 == lane_row.0) {
            Some(known) => *known = lane_row,
            None => rows.push(lane_row),
        }
    }

    /// Those of other lanes.
    fn before(&self, path: u32, lane_row: LaneRow) -> impl Iterator<Item = LaneRow> {
        let rows = self.0.get(&path).into_iter().flatten().copied();
        rows.filter(move |known| known.0 != lane_row.0)
    }
}

/// The bytes that a lock is for, if its offset counts from the begin of the file (fcntl(2): of no size goes on for ever).
pub(super) fn span(whence: u32, offset: i64, size: i64) -> Option<Span> {
    let end = match size {
        0 => i64::MAX,
        size => offset.saturating_add(size),
    };
    let span = (offset.min(end), offset.max(end));
    (whence == 0 && span.0 >= 0).then_some(span)
}

impl Locks {
    /// A range is locked, or unlocked.
    pub(super) fn set(&mut self, path: u32, lock: Lock) {
        self.cut(path, lock.span, |held| held.file == lock.file);
        if lock.kind == LockKind::Unlock {
            return;
        }
        let held = self.held.entry(path).or_default();
        if held.len() < MOST_RANGES {
            held.push(lock);
        }
    }

    /// The kind of lock that a range of a file has as a whole; unlocked where its parts differ.
    pub(super) fn of(&self, path: u32, file: u32, span: Span) -> LockKind {
        let met = self.held(path).filter(|held| held.file == file);
        let mut met = met.filter(|held| held.meets(span)).peekable();
        let kind = met.peek().map_or(LockKind::Unlock, |held| held.kind);
        let mut covered = 0;
        for held in met {
            if held.kind != kind {
                return LockKind::Unlock;
            }
            covered += held.span.1.min(span.1) - held.span.0.max(span.0);
        }
        if covered == span.1 - span.0 {
            kind
        } else {
            LockKind::Unlock
        }
    }

    /// A lock was given or let go: the other files whose locks of this range went with that.
    pub(super) fn gone_for(&mut self, path: u32, lock: Lock) -> Vec<u32> {
        self.cut(path, lock.span, |held| {
            let is_hindrance = held.is_of_process() && held.excludes(&lock);
            let is_unlocked = lock.kind == LockKind::Unlock && held.is_of_same_thread(&lock);
            held.file != lock.file && (is_hindrance || is_unlocked)
        })
    }

    /// A thread closes a descriptor: the files on which its process had locks, and now has none.
    pub(super) fn gone_by_close(&mut self, path: u32, thread: u32) -> Vec<u32> {
        let owner = Owner::Process { thread };
        self.cut(path, ALL, |held| held.owner == owner)
    }

    /// The close of a descriptor ended locks of others: it waits for those who were refused before. To the trace it is a close of
    /// something that had no lock, which waits for nobody and is waited for by nobody.
    pub(super) fn note_close(&mut self, path: u32, lane_row: LaneRow, waits: &mut Vec<LaneRow>) {
        waits.extend(self.refusals.before(path, lane_row));
        self.closes.note(path, lane_row);
    }

    /// A lock is given: it waits for the closes that ended others.
    pub(super) fn note_given(&self, path: u32, lane_row: LaneRow, waits: &mut Vec<LaneRow>) {
        waits.extend(self.closes.before(path, lane_row));
    }

    pub(super) fn note_refused(&mut self, path: u32, lane_row: LaneRow) {
        self.refusals.note(path, lane_row);
    }

    /// Whether a lock can only have been refused because another process has one through the same description.
    pub(super) fn is_shared_hindrance(&self, path: u32, lock: Lock) -> bool {
        let excluded = || self.held(path).filter(|held| held.excludes(&lock));
        let is_other = |held: &Lock| held.is_of_process() && !held.is_of_same_thread(&lock);
        lock.is_of_process()
            && excluded().any(|held| held.file == lock.file && is_other(held))
            && excluded().all(|held| held.file == lock.file)
    }

    /// A file is closed.
    pub(super) fn forget(&mut self, path: u32, file: u32) {
        self.cut(path, ALL, |held| held.file == file);
    }

    fn held(&self, path: u32) -> impl Iterator<Item = &Lock> {
        self.held.get(&path).into_iter().flatten()
    }

    /// Take a range out of some locks; whose files they were, each once.
    fn cut(&mut self, path: u32, span: Span, is_meant: impl Fn(&Lock) -> bool) -> Vec<u32> {
        let Some(locks) = self.held.get_mut(&path) else {
            return Vec::new();
        };
        let is_met = |held: &mut Lock| held.meets(span) && is_meant(held);
        let met: Vec<_> = locks.extract_if(.., is_met).collect();
        for held in &met {
            let rest = [(held.span.0, span.0), (span.1, held.span.1)];
            let rest = rest.into_iter().filter(|(start, end)| start < end);
            locks.extend(rest.map(|span| Lock { span, ..*held }));
        }
        if locks.is_empty() {
            self.held.remove(&path);
        }
        let mut files: Vec<_> = met.iter().map(|held| held.file).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(file: u32, owner: Owner, span: Span, kind: LockKind) -> Lock {
        Lock {
            file,
            owner,
            span,
            kind,
        }
    }

    #[test]
    fn a_range_has_the_lock_that_it_was_given_last() {
        let mut locks = Locks::default();
        let set = |locks: &mut Locks, span, kind| {
            locks.set(3, lock(7, Owner::Description, span, kind));
        };
        let all = span(0, 0, 0).unwrap();
        assert_eq!(locks.of(3, 7, all), LockKind::Unlock);
        set(&mut locks, (10, 20), LockKind::Shared);
        set(&mut locks, (20, 30), LockKind::Shared);
        let parts = [locks.of(3, 7, (10, 30)), locks.of(3, 7, (9, 30))];
        assert_eq!(parts, [LockKind::Shared, LockKind::Unlock]);
        set(&mut locks, (15, 16), LockKind::Exclusive);
        let parts = [locks.of(3, 7, (15, 16)), locks.of(3, 7, (16, 30))];
        assert_eq!(parts, [LockKind::Exclusive, LockKind::Shared]);
        assert_eq!(locks.of(3, 7, (10, 20)), LockKind::Unlock);
        assert_eq!(locks.of(3, 8, (15, 16)), LockKind::Unlock);
        set(&mut locks, all, LockKind::Unlock);
        assert_eq!(locks.of(3, 7, (16, 30)), LockKind::Unlock);
        set(&mut locks, all, LockKind::Exclusive);
        locks.forget(3, 7);
        assert_eq!(locks.of(3, 7, all), LockKind::Unlock);
    }

    #[test]
    fn a_lock_that_is_given_ends_those_of_processes_that_exclude_it() {
        let (one, other) = (Owner::Process { thread: 1 }, Owner::Process { thread: 2 });
        let mut locks = Locks::default();
        locks.set(3, lock(7, one, (0, 10), LockKind::Shared));
        locks.set(3, lock(8, other, (0, 10), LockKind::Shared));
        locks.set(3, lock(9, Owner::Description, (4, 6), LockKind::Shared));
        assert_eq!(
            locks.gone_for(3, lock(6, one, (4, 6), LockKind::Shared)),
            [0; 0]
        );
        assert_eq!(
            locks.gone_for(3, lock(8, one, (4, 6), LockKind::Exclusive)),
            [7]
        );
        assert_eq!(locks.of(3, 7, (0, 4)), LockKind::Shared);
        assert_eq!(locks.of(3, 7, (4, 6)), LockKind::Unlock);
        assert_eq!(locks.of(3, 9, (4, 6)), LockKind::Shared);
        assert_eq!(
            locks.gone_for(4, lock(8, one, ALL, LockKind::Exclusive)),
            [0; 0]
        );
    }

    #[test]
    fn unlocks_and_closes_end_the_locks_of_the_threads_own_process_only() {
        let (one, other) = (Owner::Process { thread: 1 }, Owner::Process { thread: 2 });
        let mut locks = Locks::default();
        locks.set(3, lock(7, one, (0, 10), LockKind::Exclusive));
        locks.set(3, lock(8, other, (20, 30), LockKind::Exclusive));
        assert_eq!(
            locks.gone_for(3, lock(9, other, (0, 5), LockKind::Unlock)),
            [0; 0]
        );
        assert_eq!(
            locks.gone_for(3, lock(9, one, (0, 5), LockKind::Unlock)),
            [7]
        );
        assert_eq!(locks.of(3, 7, (5, 10)), LockKind::Exclusive);
        assert_eq!(locks.gone_by_close(3, 1), [7]);
        assert_eq!(locks.of(3, 7, (5, 10)), LockKind::Unlock);
        assert_eq!(locks.of(3, 8, (20, 30)), LockKind::Exclusive);
    }

    #[test]
    fn locks_follow_the_closes_that_ended_others_and_those_follow_refusals() {
        let mut locks = Locks::default();
        let mut waits = Vec::new();
        for row in [5, 6] {
            locks.note_refused(3, (1, row));
        }
        locks.note_refused(4, (2, 7));
        locks.note_close(3, (0, 8), &mut waits);
        assert_eq!(waits, [(1, 6)]);
        waits.clear();
        for lane_row in [(1, 9), (0, 10)] {
            locks.note_given(3, lane_row, &mut waits);
        }
        locks.note_given(4, (1, 11), &mut waits);
        assert_eq!(waits, [(0, 8)]);
    }

    #[test]
    fn one_description_of_two_processes_refuses_nothing_here() {
        let (one, other) = (Owner::Process { thread: 1 }, Owner::Process { thread: 2 });
        let mut locks = Locks::default();
        locks.set(3, lock(7, one, ALL, LockKind::Exclusive));
        assert!(locks.is_shared_hindrance(3, lock(7, other, (0, 1), LockKind::Shared)));
        assert!(!locks.is_shared_hindrance(3, lock(7, one, (0, 1), LockKind::Shared)));
        assert!(!locks.is_shared_hindrance(3, lock(8, other, (0, 1), LockKind::Shared)));
        locks.set(3, lock(9, Owner::Description, (0, 1), LockKind::Exclusive));
        assert!(!locks.is_shared_hindrance(3, lock(7, other, (0, 1), LockKind::Shared)));
    }

    #[test]
    fn odd_ranges_are_taken_as_the_kernel_takes_them_or_not_at_all() {
        assert_eq!(span(0, 10, -4), Some((6, 10)));
        assert_eq!(span(0, i64::MAX, 5), Some((i64::MAX, i64::MAX)));
        assert_eq!([span(1, 0, 5), span(0, 5, i64::MIN)], [None; 2]);
    }
}
