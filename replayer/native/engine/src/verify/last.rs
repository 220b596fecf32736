//! The last reading of a target: which files it is of, and what is judged of each. Who reads them is elsewhere.

use super::judge::{judge_bytes, judge_end};
use super::memory::{Kept, Memory};
use super::sight::{Known, Open, Sight};
use super::tally::Count;
use super::violation::Violation;
use crate::program::{Identity, Naming};

/// Judges what is read of one file after the other.
#[derive(Debug)]
pub(crate) struct LastReader<'a> {
    memory: &'a Memory,
    sight: Sight,
    worst: Option<Violation>,
    pub(super) count: Count,
}

impl<'a> LastReader<'a> {
    pub(super) fn new(memory: &'a Memory, identity: Identity) -> LastReader<'a> {
        let sight = Sight {
            run: identity.run,
            by_path: identity.naming == Naming::Paths,
            ..Sight::default()
        };
        LastReader {
            memory,
            sight,
            worst: None,
            count: Count::default(),
        }
    }

    /// A file is about to be opened; false: nothing can be claimed of it.
    pub(crate) fn begin(&mut self, file: &Kept) -> bool {
        let tick = self.memory.tick();
        let open = Open {
            id: tick,
            tick,
            key: file.key,
            known: Known::Certainly,
            position: Some(0),
            appends: false,
            laid: file.laid,
            zeros: file.zeros,
            writes: false,
        };
        self.worst = None;
        file.is_clear && self.sight.take(self.memory, &open, None)
    }

    /// Judge bytes that were read at an offset, whole blocks but at the end of the file.
    pub(crate) fn judge(&mut self, offset: u64, bytes: &[u8]) {
        let found = judge_bytes(&self.sight, offset, bytes, &mut self.count);
        self.add(found);
    }

    /// The file ends, or it is not there at all: what is wrong with it.
    pub(crate) fn end(&mut self, size: u64) -> Option<Violation> {
        if let Some(missing) = self.sight.missing_from(size) {
            let found = judge_end(&self.sight, missing, &mut self.count);
            self.add(found);
        }
        self.worst
    }

    fn add(&mut self, found: Option<Violation>) {
        self.worst = match (self.worst, found) {
            (Some(worst), Some(found)) => Some(worst.min(found)),
            (worst, found) => worst.or(found),
        };
    }
}
