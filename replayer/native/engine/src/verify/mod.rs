//! Whether reads return what was written: data that say of themselves where they belong, and what is remembered of writes.
//!
//! Only plans that ask for it (`verify`) come here. What a call costs and how it is recorded is the interpreter's.

mod file;
mod judge;
mod last;
mod memory;
mod sight;
mod stamp;
mod tally;
#[cfg(test)]
mod tests;
mod verifier;

pub(crate) use last::LastReader;
pub(crate) use last::Read;
pub(crate) use memory::{Change, Kept};
pub(crate) use stamp::zeros_of;
pub(crate) use stamp::{each_stamped, is_empty};
pub(crate) use tally::Violation;
pub(crate) use verifier::{Laid, Opening, Verifier};

use crate::document::joined;
use crate::program::{Identity, Program};
use last::Reading;
use memory::Memory;
use serde_json::json;
use tally::Tally;

/// What the users of an engine share when it verifies.
#[derive(Debug)]
pub(crate) struct Verification {
    identity: Identity,
    /// One a target.
    memories: Vec<Memory>,
    tally: Tally,
    /// What is read when all users are gone.
    last: Reading,
}

impl Verification {
    /// Something to remember with, if the plan wants that.
    pub(crate) fn of(program: &Program, targets: usize) -> Option<Verification> {
        Some(Verification::new(program.verify?, targets))
    }

    pub(crate) fn new(identity: Identity, targets: usize) -> Verification {
        Verification {
            identity,
            memories: (0..targets).map(|_| Memory::new()).collect(),
            tally: Tally::default(),
            last: Reading::default(),
        }
    }

    /// A target has been laid out anew, or nothing has changed there: what was written before is gone.
    pub(crate) fn begin(&self, target: u16) {
        if let Some(memory) = self.memories.get(usize::from(target)) {
            memory.begin();
        }
    }

    /// What was found until now, as JSON.
    pub(crate) fn json(&self) -> String {
        let blind = self.memories.iter().any(Memory::is_blind);
        let more = json!({"blind": blind, "last": self.last.json()});
        joined(self.tally.sums(), more).to_string()
    }
}

/// The last reading of a target.
impl Verification {
    /// What was written there in the last segment and should still be there, by path.
    pub(crate) fn kept(&self, target: u16) -> Vec<Kept> {
        let memory = self.memories.get(usize::from(target));
        memory.map(Memory::kept).unwrap_or_default()
    }

    /// Who judges one file of it.
    pub(crate) fn last_reader(&self, target: u16) -> Option<LastReader<'_>> {
        let memory = self.memories.get(usize::from(target))?;
        Some(LastReader::new(memory, self.identity))
    }

    /// So many files of a target are about to be read; of those beyond the memory's bound nothing is known.
    pub(crate) fn last_begins(&self, target: u16, files: u64) {
        let memory = self.memories.get(usize::from(target));
        self.last.begin(files, memory.map_or(0, Memory::missed));
    }

    pub(crate) fn last_ends(&self) {
        self.last.end();
    }

    /// A file was opened and its pages were dropped, but for so many bytes.
    pub(crate) fn last_prepared(&self, cached: u64, is_synced: bool) {
        self.last.prepared(cached, is_synced);
    }

    pub(crate) fn last_read(&self, file: (u16, &[u8]), reader: &LastReader<'_>, read: Read) {
        self.last.tally.add(&reader.count, 0);
        self.last.count(file.0, file.1, read);
    }
}
