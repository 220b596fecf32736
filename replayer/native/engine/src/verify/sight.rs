//! What may be claimed of one read: what its reader must see, as far as that is certain.

use super::file::{File, Record};
use super::memory::Memory;
use crate::program::file_of;

/// Who is none of the users.
const NOBODY: u32 = u32::MAX;

/// Whether it is known which file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Certainly,
    /// Its name changed its meaning meanwhile.
    Vaguely,
    /// It was found through a link.
    Linked,
}

/// An open file of a user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// What it is known by.
    pub(crate) id: u64,
    /// When it was opened.
    pub(crate) tick: u64,
    pub(crate) key: u64,
    pub(crate) known: Known,
    /// Where the next read or write happens, if that is known.
    pub(crate) position: Option<u64>,
    /// Writes go to the end of the file.
    pub(crate) appends: bool,
    /// So many bytes were laid out.
    pub(crate) laid: u64,
    /// So many bytes of each block may be zeros.
    pub(crate) zeros: u64,
    /// It may be written.
    pub(crate) writes: bool,
}

/// What a reader must see in a file.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// Names under which its data may have been written.
    pub(crate) files: Vec<u32>,
    pub(crate) ragged: Vec<u32>,
    /// Writes that it must see.
    pub(crate) records: Vec<Record>,
    /// Somebody else may have written meanwhile.
    pub(crate) busy: bool,
    pub(crate) opaque: bool,
    /// So many bytes must be there as laid out, or written since.
    pub(crate) laid: u64,
    /// The oldest write of this segment.
    pub(crate) begun: u64,
    pub(crate) run: u32,
    pub(crate) zeros: u64,
    /// Files are known by their paths: what was written to one is known to be in it.
    pub(crate) by_path: bool,
}

impl Sight {
    /// What a user must see through a descriptor, or (`None`) who reads when all of them are gone and all renames
    /// are known; false: nothing is certain.
    pub(crate) fn take(&mut self, memory: &Memory, open: &Open, user: Option<u32>) -> bool {
        self.files.clear();
        self.ragged.clear();
        self.records.clear();
        self.busy = false;
        self.opaque = open.known != Known::Certainly;
        self.files.push(file_of(open.key));
        self.begun = memory.begun();
        self.zeros = open.zeros;
        let changed = memory.changed_at(open.key);
        memory.look(open.key, |file| self.learn(file, open, (user, changed)));
        if !self.by_path {
            self.records.clear();
        }
        let untouched = self.by_path && open.laid > 0 && memory.is_untouched(open.key);
        self.laid = if untouched { open.laid } else { 0 };
        // Looked at last: a change that begins later comes after the read.
        !self.opaque && memory.is_solid(open.key, open.tick)
    }

    fn learn(&mut self, file: &File, open: &Open, (user, changed): (Option<u32>, u64)) {
        self.opaque |= file.is_unclear();
        self.busy = file.is_busy(user.unwrap_or(NOBODY), open.tick);
        self.files.extend_from_slice(&file.origins);
        self.ragged.extend_from_slice(&file.ragged);
        let seen = |record: &&Record| {
            let visible = record.closed.is_some_and(|closed| closed < open.tick);
            let known = user.is_none() || !record.moved;
            record.open > changed && known && (visible || user == Some(record.user))
        };
        self.records.extend(file.records.iter().filter(seen));
    }

    /// The write of which all of some bytes must be seen, or of a later one: that with the highest floor.
    pub(crate) fn due(&self, offset: u64, len: u64) -> Option<&Record> {
        let covers = |record: &&Record| record.start <= offset && offset + len <= record.end;
        let due = self.records.iter().filter(covers);
        due.max_by_key(|record| record.floor)
    }

    /// The first byte that must be there behind the end of a file.
    pub(crate) fn missing_from(&self, end: u64) -> Option<u64> {
        let laid = (end < self.laid).then_some(end);
        let beyond = self.records.iter().filter(|record| record.end > end);
        let starts = beyond.map(|record| record.start.max(end));
        starts.chain(laid).min()
    }

    /// Whether data must be there.
    pub(crate) fn is_due(&self, offset: u64, len: u64) -> bool {
        offset + len <= self.laid || self.due(offset, len).is_some()
    }
}
