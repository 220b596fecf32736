//! What is remembered of the files of a target: who writes them, what was last written where, and since when a name means what it means.
//!
//! Everything has a bound. What there is no room for is not claimed: forgetting never makes a violation.

use crate::lock::hold;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Names are watched in so many groups (chosen: 1 MiB); a change of one is taken for a change of all in its group.
const GROUPS: usize = 1 << 16;
/// Written files are kept in so many maps, so that users rarely wait for each other (chosen).
const SHARDS: usize = 64;
/// At most so many written files in each of them (chosen: 262,144 in all).
const FILES: usize = 4096;
/// Cells of a file at which unaligned writes meet (chosen).
const RAGGED: usize = 64;
/// Names under which the data of a file may have been written (chosen).
const ORIGINS: usize = 8;
/// The last writes of a file (chosen).
const RECORDS: usize = 16;
/// Open descriptors that write a file (chosen).
const WRITERS: usize = 1024;

/// Names whose number ends alike.
#[derive(Debug, Default)]
struct Group {
    /// Changes under way: calls that make a name mean something else, or that cut a file.
    changing: AtomicU32,
    /// When the last one had ended; 0: never.
    changed: AtomicU64,
}

/// A change under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) key: u64,
    since: u64,
}

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
    /// When the descriptor was opened.
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
}

/// What another name takes over from a file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    ragged: Vec<u32>,
    origins: Vec<u32>,
    opaque: bool,
    haunted: bool,
}

impl Contents {
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
    pub(crate) ragged: Vec<u32>,
    pub(crate) origins: Vec<u32>,
    /// Nothing is known of its contents.
    pub(crate) opaque: bool,
    /// Somebody may write it who is known under another name: nothing is known as long as the name means this file.
    pub(crate) haunted: bool,
    /// It is a link: what is written to it goes to another file.
    pub(crate) linked: bool,
    /// When somebody last opened it to write, wrote, or closed it.
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

    /// Take over what is known of another file's contents.
    pub(crate) fn inherit(&mut self, of: &Contents) {
        of.ragged.iter().for_each(|index| self.tear(*index));
        of.origins.iter().for_each(|origin| self.derive(*origin));
        self.opaque |= of.opaque;
        self.haunted |= of.haunted;
    }

    /// What its contents were does not matter any more, unless somebody has done something with it since.
    fn clear(&mut self, fate: Fate, since: u64) {
        let by = match fate {
            Fate::Emptied(by) => by,
            Fate::Replaced => 0,
        };
        if self.touched > since || self.writers.iter().any(|writer| writer.id != by) {
            // Whoever writes may go on with what was cut.
            self.opaque = true;
            return;
        }
        self.ragged.clear();
        self.origins.clear();
        self.records.clear();
        self.opaque = false;
        if fate == Fate::Replaced {
            self.haunted = false;
            self.linked = false;
        }
    }

    /// A descriptor may write from now on.
    pub(crate) fn enter(&mut self, id: u64, user: u32) {
        if self.writers.len() >= WRITERS {
            self.haunted = true;
            return;
        }
        self.touched = self.touched.max(id);
        let first = None;
        self.writers.push(Writer { id, user, first });
    }

    /// It writes; the oldest write of another one that may still overwrite this one.
    pub(crate) fn write(&mut self, id: u64, seq: u64) -> u64 {
        self.touched = self.touched.max(seq);
        let mut floor = seq;
        for writer in &mut self.writers {
            if writer.id == id {
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

    /// A descriptor was closed.
    pub(crate) fn leave(&mut self, id: u64, user: u32, tick: u64) {
        let wrote = self
            .writers
            .iter()
            .any(|one| one.id == id && one.first.is_some());
        self.writers.retain(|writer| writer.id != id);
        self.touched = self.touched.max(tick);
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

type Files = HashMap<u64, File>;

/// The files of one target.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Counts what happens: what has a higher number began later.
    clock: AtomicU64,
    /// When the segment began.
    begun: AtomicU64,
    /// Whole directories were moved: names mean nothing any more.
    blind: AtomicBool,
    groups: Box<[Group]>,
    shards: Box<[Mutex<Files>]>,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory {
            clock: AtomicU64::new(1),
            begun: AtomicU64::new(1),
            blind: AtomicBool::new(false),
            groups: (0..GROUPS).map(|_| Group::default()).collect(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// The next number of the clock.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Forget everything: a segment begins.
    pub(crate) fn begin(&self) {
        for shard in &self.shards {
            hold(shard).clear();
        }
        for group in &self.groups {
            group.changed.store(0, Ordering::SeqCst);
        }
        self.blind.store(false, Ordering::SeqCst);
        self.begun.store(self.tick(), Ordering::SeqCst);
    }

    /// The oldest write of this segment.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Claim nothing any more.
    pub(crate) fn blind(&self) {
        self.blind.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_blind(&self) -> bool {
        self.blind.load(Ordering::SeqCst)
    }

    fn group(&self, key: u64) -> Option<&Group> {
        let low = usize::try_from(key & 0xFFFF).unwrap_or(0);
        self.groups.get(low % GROUPS)
    }

    /// A call begins that may make a name mean another file, or cut it.
    pub(crate) fn change(&self, key: u64) -> Change {
        if let Some(group) = self.group(key) {
            group.changing.fetch_add(1, Ordering::SeqCst);
        }
        let since = self.tick();
        Change { key, since }
    }

    /// It has returned: when, and whether no other one was under way meanwhile.
    pub(crate) fn changed(&self, change: Change) -> (u64, bool) {
        let Some(group) = self.group(change.key) else {
            return (self.tick(), false);
        };
        let tick = self.tick();
        let alone = group.changing.load(Ordering::SeqCst) == 1
            && group.changed.load(Ordering::SeqCst) < change.since;
        group.changed.fetch_max(tick - 1, Ordering::SeqCst);
        group.changing.fetch_sub(1, Ordering::SeqCst);
        (tick, alone)
    }

    /// Whether a name has meant the same file since a descriptor was opened.
    pub(crate) fn is_solid(&self, key: u64, open: u64) -> bool {
        !self.is_blind()
            && self.group(key).is_some_and(|group| {
                group.changing.load(Ordering::SeqCst) == 0
                    && group.changed.load(Ordering::SeqCst) < open
            })
    }

    /// Whether a file is there as it was laid out, but for what was written into it.
    pub(crate) fn is_untouched(&self, key: u64) -> bool {
        self.is_solid(key, 1)
    }

    /// When the name last changed its meaning.
    pub(crate) fn changed_at(&self, key: u64) -> u64 {
        self.group(key)
            .map_or(u64::MAX, |group| group.changed.load(Ordering::SeqCst))
    }

    fn shard(&self, key: u64) -> Option<&Mutex<Files>> {
        let high = usize::try_from(key >> 16 & 0xFFFF).unwrap_or(0);
        self.shards.get(high % SHARDS)
    }

    /// Look at what is known of a written file.
    pub(crate) fn look<R>(&self, key: u64, look: impl FnOnce(&File) -> R) -> Option<R> {
        let files = hold(self.shard(key)?);
        files.get(&key).map(look)
    }

    /// Note something about a file. Without room for it nothing is claimed of its group any more.
    pub(crate) fn note<R>(&self, key: u64, note: impl FnOnce(&mut File) -> R) -> Option<R> {
        let mut files = hold(self.shard(key)?);
        if files.len() >= FILES && !files.contains_key(&key) {
            if let Some(group) = self.group(key) {
                group.changing.fetch_add(1, Ordering::SeqCst);
            }
            return None;
        }
        Some(note(files.entry(key).or_default()))
    }

    /// The same of a file that is known already.
    pub(crate) fn amend<R>(&self, key: u64, note: impl FnOnce(&mut File) -> R) -> Option<R> {
        let mut files = hold(self.shard(key)?);
        files.get_mut(&key).map(note)
    }

    /// What a file contained is gone, since a change began.
    pub(crate) fn forget(&self, change: Change, fate: Fate) {
        let Some(shard) = self.shard(change.key) else {
            return;
        };
        let mut files = hold(shard);
        let Some(file) = files.get_mut(&change.key) else {
            return;
        };
        let before = file.touched;
        file.clear(fate, change.since);
        if before <= change.since && file.is_plain() {
            files.remove(&change.key);
        }
    }

    /// What another name takes over from a file.
    pub(crate) fn contents(&self, key: u64) -> Contents {
        let known = self.look(key, |file| Contents {
            ragged: file.ragged.clone(),
            origins: file.origins.clone(),
            opaque: file.opaque,
            // Whoever has it open to write goes on under the old name.
            haunted: file.haunted || file.linked || !file.writers.is_empty(),
        });
        known.unwrap_or_default()
    }
}
