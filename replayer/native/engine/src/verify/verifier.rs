//! What one user knows of its open files and of names, and what it does before and after each call.

use super::Verification;
use super::file::{Fate, File, Record};
use super::judge::{judge_bytes, judge_end};
use super::memory::{Change, Memory};
use super::sight::{Known, Open, Sight};
use super::stamp::{CELL, Origin, fill, index_of, zeros_of};
use super::tally::{Count, Violation};
use crate::program::{Content, Naming, SLOTS, file_of};
use crate::sys::OwnScratch;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// What is known of a file before it is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Laid {
    /// So many bytes of it were laid out.
    pub(crate) size: u64,
    /// So many bytes of each block are zeros.
    pub(crate) zeros: u64,
    pub(crate) linked: bool,
}

/// A file that is about to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    key: u64,
    id: u64,
    flags: OFlags,
    laid: Laid,
    change: Option<Change>,
}

impl Opening {
    fn writes(&self) -> bool {
        self.flags.intersects(OFlags::WRONLY | OFlags::RDWR)
    }
}

/// A write that is about to be made; its bytes are in the verifier's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) offset: Option<u64>,
    pub(crate) len: u64,
    seq: u64,
    floor: u64,
}

#[derive(Debug)]
pub(crate) struct Verifier<'a> {
    pub(super) shared: &'a Verification,
    pub(super) memory: &'a Memory,
    pub(super) user: u32,
    round: u16,
    /// Zeros of written data.
    zeros: u64,
    files: [Option<Open>; SLOTS],
    sight: Sight,
    count: Count,
    pub(crate) scratch: OwnScratch,
    pub(crate) buffer: Buffer,
    /// Time of verifying that was not told yet.
    pub(crate) untold_ns: u64,
}

impl<'a> Verifier<'a> {
    /// For a user on a target in a round.
    ///
    /// # Errors
    /// There is no memory for its reads.
    pub(crate) fn new(
        shared: &'a Verification,
        (target, user, round): (u16, u32, u16),
        written: Content,
        read_bytes: u64,
    ) -> Result<Verifier<'a>, Errno> {
        let sight = Sight {
            run: shared.identity.run,
            by_path: shared.identity.naming == Naming::Paths,
            ..Sight::default()
        };
        let memory = shared.memories.get(usize::from(target));
        Ok(Verifier {
            shared,
            memory: memory.ok_or(Errno::INVAL)?,
            user,
            round,
            zeros: zeros_of(written),
            files: [None; SLOTS],
            sight,
            count: Count::default(),
            scratch: OwnScratch::new(read_bytes)?,
            buffer: Buffer::default(),
            untold_ns: 0,
        })
    }

    pub(super) fn key(&self, path: &[u8]) -> u64 {
        self.shared.identity.key(path)
    }

    pub(super) fn file(&self, slot: u8) -> Option<Open> {
        self.files.get(usize::from(slot)).copied().flatten()
    }

    pub(crate) fn opening(&self, path: &[u8], flags: u32, laid: Laid) -> Opening {
        let flags = OFlags::from_bits_retain(flags);
        let (key, id) = (self.key(path), self.memory.tick());
        let cuts = flags.contains(OFlags::TRUNC);
        let opening = Opening {
            key,
            id,
            flags,
            laid,
            change: cuts.then(|| self.memory.change(key)),
        };
        if opening.writes() {
            let zeros = laid.zeros.max(self.zeros);
            self.memory.note(key, |file| {
                file.known_as(path, (laid.size, zeros));
                file.enter(id, self.user);
            });
        }
        opening
    }

    pub(crate) fn opened(&mut self, slot: u8, opening: Opening, fine: bool) {
        let Opening { key, id, laid, .. } = opening;
        let (mut tick, mut certain) = (id, !laid.linked);
        if let Some(change) = opening.change {
            if fine {
                self.forget(change, Fate::Emptied(id));
            }
            let (returned, alone) = self.memory.returned(change);
            (tick, certain) = (returned, certain && alone);
            self.memory.settle(change, returned);
        }
        if !fine {
            if opening.writes() {
                self.leave(key, id);
            }
            return;
        }
        let linked = laid.linked || self.memory.look(key, |file| file.linked) == Some(true);
        let open = Open {
            id,
            tick,
            key,
            known: match (linked, certain) {
                (true, _) => Known::Linked,
                (false, true) => Known::Certainly,
                (false, false) => Known::Vaguely,
            },
            position: Some(0),
            appends: opening.flags.contains(OFlags::APPEND),
            laid: laid.size,
            zeros: laid.zeros.max(self.zeros),
            writes: opening.writes(),
        };
        if let Some(file) = self.files.get_mut(usize::from(slot)) {
            *file = Some(open);
        }
    }

    fn leave(&self, key: u64, id: u64) {
        let tick = self.memory.tick();
        self.memory
            .amend(key, |file| file.leave(id, self.user, tick));
    }

    pub(crate) fn closed(&mut self, slot: u8, fine: bool) {
        let place = self.files.get_mut(usize::from(slot));
        let Some(open) = place.and_then(Option::take).filter(|open| open.writes) else {
            return;
        };
        if !fine {
            self.memory.amend(open.key, |file| file.opaque = true);
        }
        self.leave(open.key, open.id);
    }

    /// The position of an open file is known to be this one, or not known.
    pub(crate) fn moved(&mut self, slot: u8, position: Option<u64>) {
        let file = self.files.get_mut(usize::from(slot));
        if let Some(open) = file.and_then(Option::as_mut) {
            open.position = position;
        }
    }

    /// Prepare a write; without an offset it goes where the file's position is.
    pub(crate) fn stamp(&mut self, slot: u8, size: u64, offset: Option<u64>) -> Written {
        let (user, round) = (self.user, self.round);
        let mut written = Written {
            offset: None,
            len: size,
            seq: 0,
            floor: 0,
        };
        let mut file = 0;
        if let Some(open) = self.file(slot) {
            let known = open.known == Known::Certainly && !open.appends;
            written.offset = offset.or(open.position).filter(|_| known);
            (written.seq, written.floor) = self.announce(&open, &written);
            file = file_of(open.key);
        }
        let run = self.shared.identity.run;
        let origin = Origin {
            run,
            user,
            file,
            round,
            seq: written.seq,
        };
        let bytes = self.buffer.sized(size);
        fill(bytes, written.offset.unwrap_or(0), &origin, self.zeros);
        written
    }

    /// Note a write before it happens: its number, and that of the oldest write that may still overwrite it.
    fn announce(&self, open: &Open, written: &Written) -> (u64, u64) {
        if open.known == Known::Linked {
            // It goes to a file that is not known.
            self.memory.blind();
        }
        let note = |file: &mut File| {
            match written.offset {
                Some(from) => [from, from + written.len]
                    .into_iter()
                    .filter(|edge| !edge.is_multiple_of(CELL as u64))
                    .for_each(|edge| file.tear(index_of(edge))),
                None => file.opaque = true,
            }
            // Drawn while no other write of this file can be noted.
            let seq = self.memory.tick();
            (seq, file.write(open.id, seq))
        };
        let noted = self.memory.note(open.key, note);
        self.or_missed(open.key, noted).unwrap_or_default()
    }

    /// Count a file that was written, and of which there was no room to note it.
    pub(super) fn or_missed<R>(&self, key: u64, noted: Option<R>) -> Option<R> {
        if noted.is_none() {
            self.memory.miss(key);
        }
        noted
    }

    pub(crate) fn wrote(&mut self, slot: u8, written: Written, answer: Result<u64, Errno>) {
        let Some(open) = self.file(slot) else {
            return;
        };
        let (Ok(len), Some(start)) = (answer, written.offset) else {
            // What it wrote, if anything, or where, is not known.
            self.memory.amend(open.key, |file| file.opaque = true);
            return;
        };
        let record = Record {
            id: open.id,
            open: open.tick,
            user: self.user,
            start,
            end: start + len,
            floor: written.floor,
            first: written.seq,
            last: written.seq,
            closed: None,
            moved: false,
        };
        self.memory.amend(open.key, |file| {
            if len < written.len {
                file.tear(index_of(record.end));
            }
            file.record(record);
        });
    }

    /// Judge what a read returned (wanted, read): what is wrong with it, if something is.
    pub(crate) fn judge(
        &mut self,
        slot: u8,
        offset: Option<u64>,
        (want, read): (u64, u64),
    ) -> Option<Violation> {
        self.count.reads += 1;
        let Some(open) = self.file(slot) else {
            self.count.unverified += read;
            return None;
        };
        if offset.is_none() {
            self.moved(slot, open.position.map(|position| position + read));
        }
        let certain = self.sight.take(self.memory, &open, Some(self.user));
        let Some(from) = offset.or(open.position).filter(|_| certain) else {
            self.count.unverified += read;
            return None;
        };
        let bytes = self.scratch.seen(read);
        let wrong = judge_bytes(&self.sight, from, bytes, &mut self.count);
        let ended = (read < want).then(|| judge_end(&self.sight, from + read, &mut self.count));
        wrong.or(ended.flatten())
    }

    /// Bytes were read that nobody looks at; the position has moved.
    pub(crate) fn passed(&mut self, slot: u8, bytes: u64) {
        self.count.reads += 1;
        self.count.unverified += bytes;
        self.moved(slot, None);
    }

    /// Tell what was found to whoever adds it up.
    pub(crate) fn tell(&mut self) {
        let ns = std::mem::take(&mut self.untold_ns);
        let count = std::mem::take(&mut self.count);
        if ns > 0 || count != Count::default() {
            self.shared.tally.add(&count, ns);
        }
    }

    /// What files contained does not matter any more, unless others go by the same name.
    pub(super) fn forget(&self, change: Change, fate: Fate) {
        if self.shared.identity.naming == Naming::Paths {
            self.memory.forget(change, fate);
        }
    }
}

/// The largest logical block of a disk (Linux, before 6.12: a page).
const ALIGNED: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// So many bytes, to be filled.
    pub(crate) fn sized(&mut self, len: u64) -> &mut [u8] {
        // A plan's writes fit into its pool, and so into memory.
        let len = usize::try_from(len).unwrap_or(0);
        if self.bytes.len() < len + ALIGNED {
            self.bytes = vec![0; len + ALIGNED];
            self.start = self.bytes.as_ptr().align_offset(ALIGNED).min(ALIGNED);
        }
        let end = self.start + len;
        self.bytes.get_mut(self.start..end).unwrap_or_default()
    }

    pub(crate) fn first(&self, len: u64) -> &[u8] {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let end = self.start.saturating_add(len);
        self.bytes.get(self.start..end).unwrap_or_default()
    }
}

impl Verifier<'_> {
    pub(crate) fn change(&self, path: &[u8]) -> Change {
        self.memory.change(self.key(path))
    }

    /// The same for the file of a slot.
    pub(crate) fn change_open(&self, slot: u8) -> Option<Change> {
        Some(self.memory.change(self.file(slot)?.key))
    }

    /// A name was removed, if the call succeeded.
    pub(crate) fn removed(&self, change: Change, gone: bool) {
        if gone {
            self.forget(change, Fate::Replaced);
        }
        self.memory.changed(change);
    }

    /// A file was cut: what is still there is as it was.
    pub(crate) fn cut(&self, change: Change) {
        self.memory.changed(change);
    }

    /// A file may go by several names, or by another one than is known.
    pub(crate) fn haunted(&self, change: Change) {
        self.memory.impose(change.key, |file| file.haunted = true);
        self.memory.changed(change);
    }

    /// Contents were moved or copied: nothing is known of them.
    pub(crate) fn blurred(&self, change: Change) {
        let noted = self.memory.impose(change.key, |file| file.opaque = true);
        self.or_missed(change.key, noted);
        self.memory.changed(change);
    }

    pub(crate) fn linked(&self, change: Change) {
        self.memory.impose(change.key, |file| file.linked = true);
        self.memory.changed(change);
    }

    /// A file got another name, and replaced what had it.
    pub(crate) fn renamed(&self, from: Change, to: Change, path: &[u8]) {
        let (contents, source) = (self.memory.contents(from.key), file_of(from.key));
        let changed = self.memory.changed_at(from.key);
        if self.memory.look(from.key, |file| file.linked) == Some(true) {
            self.memory.blind();
        }
        self.forget(to, Fate::Replaced);
        self.memory.impose(to.key, |file| {
            file.inherit(&contents);
            file.derive(source);
        });
        if !contents.is_haunted() {
            // Of two names of one file rename(2) leaves both.
            self.forget(from, Fate::Replaced);
        }
        let ((_, from_alone), (tick, to_alone)) =
            (self.memory.returned(from), self.memory.returned(to));
        let certain = from_alone && to_alone && from.key != to.key;
        let noted = self.memory.impose(to.key, |file| {
            file.haunted |= !certain;
            let records = contents.certain(changed).filter(|_| certain);
            file.arrive((path, self.user, tick), records);
        });
        self.or_missed(to.key, noted);
        // Not before all is noted: whoever changes, or opens and reads, after this relies on it.
        self.memory.changed(from);
        self.memory.settle(to, tick);
    }

    /// A whole directory changed its name: nothing is claimed any more, unless files go by their last names.
    pub(crate) fn directory_moved(&self) {
        if self.shared.identity.naming == Naming::Paths {
            self.memory.blind();
        }
    }
}
