//! What is remembered of one written file: who has it open to write, what was written last, and where writes meet.

/// Cells of a file at which unaligned writes meet (chosen).
const RAGGED: usize = 64;
/// Names under which the data of a file may have been written (chosen).
const ORIGINS: usize = 8;
/// The last writes of a file (chosen).
const RECORDS: usize = 16;
/// Open descriptors that write a file (chosen).
const WRITERS: usize = 1024;

/// A descriptor that a file was opened with to be written.
#[derive(Clone, Copy, Debug)]
struct Writer {
    id: u64,
    user: u32,
    /// Its first write.
    first: Option<u64>,
}

/// Bytes that one descriptor wrote, one write after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) open: u64,
    pub(crate) user: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Older data than of this write were overwritten for certain.
    pub(crate) floor: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the descriptor had been closed; `None`: it is open.
    pub(crate) closed: Option<u64>,
    /// The file came to its name by a rename, of which other clients may learn late: only the last reading expects it.
    pub(crate) moved: bool,
}

/// What another name takes over from a file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    ragged: Vec<u32>,
    origins: Vec<u32>,
    opaque: bool,
    haunted: bool,
    zeros: u64,
    /// Writes that are over.
    records: Vec<Record>,
}

impl Contents {
    /// The writes that are certain to be in it: by descriptors that were opened after the name last changed its meaning.
    pub(crate) fn certain(&self, changed: u64) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |one| one.open > changed)
    }

    /// Whether the file may have other names, or be written under them.
    pub(crate) fn is_haunted(&self) -> bool {
        self.haunted
    }
}

/// What became of the file that had a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is empty now; by which descriptor.
    Emptied(u64),
    /// The name means another one, or none.
    Replaced,
}

/// A file that somebody has written.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Below the run's folder, as it was last called.
    pub(crate) path: Vec<u8>,
    /// Who last wrote it, or gave it its name.
    pub(crate) user: u32,
    /// So many bytes were laid out.
    pub(crate) laid: u64,
    /// So many bytes of each block may be zeros.
    pub(crate) zeros: u64,
    pub(crate) ragged: Vec<u32>,
    pub(crate) origins: Vec<u32>,
    /// Nothing is known of its contents.
    pub(crate) opaque: bool,
    /// Somebody may write it who is known under another name: nothing is known as long as the name means this file.
    pub(crate) haunted: bool,
    /// It is a link: what is written to it goes to another file.
    pub(crate) linked: bool,
    /// When somebody last opened it to write, wrote, closed it, or gave its name to another file.
    touched: u64,
    writers: Vec<Writer>,
    /// The last descriptor that wrote and was closed: when, and whose it was.
    ended: (u64, u32),
    /// The same of the last other user.
    ended_other: u64,
    pub(crate) records: Vec<Record>,
}

impl File {
    /// Unaligned writes meet in a cell.
    pub(crate) fn tear(&mut self, index: u32) {
        push_new(&mut self.ragged, index, RAGGED, &mut self.opaque);
    }

    /// Its data may have been written under another name.
    pub(crate) fn derive(&mut self, origin: u32) {
        push_new(&mut self.origins, origin, ORIGINS, &mut self.opaque);
    }

    /// Something was noted that who began to change its name before must not forget.
    pub(crate) fn touch(&mut self, tick: u64) {
        self.touched = self.touched.max(tick);
    }

    /// Take over what is known of another file's contents.
    pub(crate) fn inherit(&mut self, of: &Contents) {
        of.ragged.iter().for_each(|index| self.tear(*index));
        of.origins.iter().for_each(|origin| self.derive(*origin));
        self.opaque |= of.opaque;
        self.haunted |= of.haunted;
        self.zeros = self.zeros.max(of.zeros);
    }

    /// It got a name by a rename that was over at a tick, with writes that are certain to be in it.
    pub(crate) fn arrive<'a>(
        &mut self,
        (path, user, tick): (&[u8], u32, u64),
        records: impl Iterator<Item = &'a Record>,
    ) {
        self.path = path.to_vec();
        self.user = user;
        let moved = records.map(|record| Record {
            open: tick,
            closed: Some(tick),
            moved: true,
            ..*record
        });
        self.records.extend(moved);
    }

    /// What its contents were does not matter any more, unless somebody has done something with it since; whether
    /// there is nothing left to be remembered.
    pub(super) fn clear(&mut self, fate: Fate, since: u64) -> bool {
        let by = match fate {
            Fate::Emptied(by) => by,
            Fate::Replaced => 0,
        };
        if self.touched > since || self.writers.iter().any(|writer| writer.id != by) {
            // Whoever writes may go on with what was cut.
            self.opaque = true;
            return false;
        }
        self.ragged.clear();
        self.origins.clear();
        self.records.clear();
        self.opaque = false;
        if fate == Fate::Replaced {
            self.haunted = false;
            self.linked = false;
        }
        self.is_plain()
    }

    /// What another name takes over from it.
    pub(super) fn contents(&self) -> Contents {
        Contents {
            ragged: self.ragged.clone(),
            origins: self.origins.clone(),
            opaque: self.opaque,
            // Whoever has it open to write goes on under the old name.
            haunted: self.haunted || self.linked || !self.writers.is_empty(),
            zeros: self.zeros,
            records: self
                .records
                .iter()
                .filter(|record| record.closed.is_some())
                .copied()
                .collect(),
        }
    }

    /// Whether something was written that may still be in it.
    pub(crate) fn is_written(&self) -> bool {
        self.opaque || !self.records.is_empty() || !self.origins.is_empty()
    }

    /// Whether nothing can be said of what is in it.
    pub(crate) fn is_unclear(&self) -> bool {
        self.opaque || self.haunted || self.linked
    }

    /// What it is called, and what was laid out of it.
    pub(crate) fn known_as(&mut self, path: &[u8], (laid, zeros): (u64, u64)) {
        if self.path != path {
            self.path = path.to_vec();
        }
        self.laid = laid;
        self.zeros = self.zeros.max(zeros);
    }

    /// A descriptor may write from now on.
    pub(crate) fn enter(&mut self, id: u64, user: u32) {
        if self.writers.len() >= WRITERS {
            self.haunted = true;
            return;
        }
        self.touch(id);
        let first = None;
        self.writers.push(Writer { id, user, first });
    }

    /// It writes; the oldest write of another one that may still overwrite this one.
    pub(crate) fn write(&mut self, id: u64, seq: u64) -> u64 {
        self.touch(seq);
        let mut floor = seq;
        for writer in &mut self.writers {
            if writer.id == id {
                self.user = writer.user;
                writer.first.get_or_insert(seq);
            } else {
                floor = floor.min(writer.first.unwrap_or(seq));
            }
        }
        floor
    }

    /// Remember a write that has ended.
    pub(crate) fn record(&mut self, new: Record) {
        if let Some(last) = self.records.last_mut()
            && (last.id, last.end) == (new.id, new.start)
        {
            last.end = new.end;
            last.floor = last.floor.min(new.floor);
            last.last = new.last;
            return;
        }
        if self.records.len() >= RECORDS {
            self.records.remove(0);
        }
        self.records.push(new);
    }

    pub(crate) fn leave(&mut self, id: u64, user: u32, tick: u64) {
        let wrote = self
            .writers
            .iter()
            .any(|one| one.id == id && one.first.is_some());
        self.writers.retain(|writer| writer.id != id);
        self.touch(tick);
        if !wrote {
            return;
        }
        if self.ended.1 != user {
            self.ended_other = self.ended.0;
        }
        self.ended = (tick, user);
        let own = self.records.iter_mut().filter(|one| one.id == id);
        own.for_each(|record| record.closed = Some(tick));
    }

    /// Whether somebody else may have written while a user had it open.
    pub(crate) fn is_busy(&self, user: u32, open: u64) -> bool {
        let ended = if self.ended.1 == user {
            self.ended_other
        } else {
            self.ended.0
        };
        ended > open || self.writers.iter().any(|writer| writer.user != user)
    }

    /// Whether there is nothing to be remembered.
    fn is_plain(&self) -> bool {
        self.writers.is_empty() && !self.opaque && !self.haunted && !self.linked
    }
}

/// Add something that is not there yet; without room for it nothing is known any more.
fn push_new(list: &mut Vec<u32>, new: u32, most: usize, opaque: &mut bool) {
    if list.contains(&new) {
        return;
    }
    if list.len() < most {
        list.push(new);
    } else {
        *opaque = true;
    }
}
