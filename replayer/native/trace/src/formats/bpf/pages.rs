//! Pages of files that were touched through mappings: one fault after another becomes one line.

use super::record::{Record, WRITES};
use std::io::Write;

const PAGE: u64 = 4096;
/// A fault maps pages that are there around the one that it is for, so far at most (`fault_around_bytes` of the kernel, 64 KiB unless
/// somebody changes it).
const AROUND: u64 = 16 * PAGE;
/// Later faults are told apart (chosen: so long a pause may be thought).
const APART_NS: u64 = 1_000_000;
/// What one line tells of, at most (chosen).
const MOST_BYTES: u64 = 4 << 20;

/// Pages of one file, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) start_ns: u64,
    duration_ns: u64,
    /// When its last fault began, and when it had ended.
    last_ns: (u64, u64),
    address: u64,
    /// To the end of the last page.
    size: u64,
    /// The pages of the file that the first of them may be.
    pages: (u64, u64),
    file_size: u64,
    inode: u64,
    faults: u64,
    /// How many of them were to write.
    writes: u64,
}

impl Touched {
    /// What one fault touched.
    pub(super) fn of(record: &Record<'_>) -> Self {
        let [address, first, last] = [0, 1, 2].map(|place| record.number_at(place));
        Self {
            start_ns: record.start_ns,
            duration_ns: record.duration_ns,
            last_ns: (record.start_ns, record.end_ns()),
            address: address / PAGE * PAGE,
            size: PAGE,
            pages: (first, last),
            file_size: record.number_at(3),
            inode: record.number_at(4),
            faults: 1,
            writes: record.number_at(5) & WRITES,
        }
    }

    /// The same, touched by a call that ended then: its time is the call's.
    pub(super) fn at(self, end_ns: u64) -> Self {
        Self {
            start_ns: end_ns,
            duration_ns: 0,
            ..self
        }
    }

    /// Take on the next record of the thread, if it is of the same fault, or of one that goes on where this one ends.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        if next.inode != self.inode {
            return false;
        }
        let (began_ns, ended_ns) = self.last_ns;
        if next.start_ns == began_ns {
            self.duration_ns += next.last_ns.1.saturating_sub(ended_ns);
            self.last_ns.1 = next.last_ns.1;
            return true;
        }
        let step = next.address.wrapping_sub(self.address);
        let joins = step.wrapping_sub(self.size) < AROUND
            && step < MOST_BYTES
            && next.start_ns.saturating_sub(ended_ns) < APART_NS;
        if joins {
            self.size = step + PAGE;
            self.duration_ns += next.duration_ns;
            self.last_ns = next.last_ns;
            self.file_size = next.file_size;
            self.faults += next.faults;
            self.writes += next.writes;
        }
        joins
    }

    /// Write it as a call.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (seconds, part) = (
            self.duration_ns / 1_000_000_000,
            self.duration_ns % 1_000_000_000,
        );
        let (first, last) = self.pages;
        let _ = writeln!(
            out,
            "page_fault(0x{:x}, {}, {first}, {last}, {}, {}, {}) = 0 <{seconds}.{part:09}>",
            self.address, self.size, self.file_size, self.faults, self.writes,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(page: u64, start_ns: u64) -> Touched {
        Touched {
            start_ns,
            duration_ns: 100,
            last_ns: (start_ns, start_ns + 100),
            address: 0x7000_0000 + page * PAGE,
            size: PAGE,
            pages: (page, page),
            file_size: 1 << 20,
            inode: 7,
            faults: 1,
            writes: 0,
        }
    }

    #[test]
    fn faults_that_go_on_are_one_and_others_are_not() {
        let mut touched = fault(3, 0);
        assert!(touched.join(&fault(19, 500)));
        assert!(touched.join(&fault(20, 900)));
        assert_eq!((touched.size, touched.faults), (18 * PAGE, 3));
        assert_eq!((touched.start_ns, touched.duration_ns), (0, 300));
        let elsewhere = Touched {
            inode: 8,
            ..fault(21, 1200)
        };
        for (next, why) in [
            (fault(20, 1200), "backwards"),
            (fault(37, 1200), "farther than pages are mapped around"),
            (fault(21, 1200 + APART_NS), "later"),
            (elsewhere, "another file"),
        ] {
            assert!(!touched.join(&next), "{why}");
        }
    }

    #[test]
    fn a_fault_that_is_tried_again_is_one_and_lasts_until_then() {
        let mut touched = fault(3, 0);
        let again = Touched {
            duration_ns: 5000,
            last_ns: (0, 5000),
            ..fault(3, 0)
        };
        assert!(touched.join(&again));
        assert_eq!((touched.faults, touched.duration_ns), (1, 5000));
        assert_eq!(touched.size, PAGE);
        let mut line = Vec::new();
        touched.at(9).write(&mut line);
        assert_eq!(
            line,
            b"page_fault(0x70003000, 4096, 3, 3, 1048576, 1, 0) = 0 <0.000000000>\n"
        );
    }
}
