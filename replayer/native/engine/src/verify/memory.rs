//! What is remembered of the files of a target: who writes them, what was last written where, and since when a name means what it means.
//!
//! Everything has a bound. What there is no room for is not claimed: forgetting never makes a violation.

use super::file::{Contents, Fate, File};
use crate::lock::hold;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A file that was written and should still be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Below the run's folder.
    pub(crate) path: Vec<u8>,
    /// Who last wrote it, or gave it its name.
    pub(crate) user: u32,
    /// Something may be claimed of it.
    pub(crate) is_clear: bool,
    pub(super) key: u64,
    pub(super) laid: u64,
    pub(super) zeros: u64,
}

/// Names are watched in so many groups (chosen: 1 MiB); a change of one is taken for a change of all in its group.
const GROUPS: usize = 1 << 16;
/// Written files are kept in so many maps, so that users rarely wait for each other (chosen).
const SHARDS: usize = 64;
/// At most so many written files in each of them (chosen: 262,144 in all).
const FILES: usize = 4096;
/// Of so many more in each is known that they were written (chosen: a million in all, of 20 bytes); what is beyond is in no count.
const MISSED: usize = 16_384;
/// Names whose number ends alike.
#[derive(Debug, Default)]
struct Group {
    /// Changes under way: calls that make a name mean something else, or that cut a file.
    changing: AtomicU32,
    /// When the last one had ended; 0: never.
    changed: AtomicU64,
    /// There was no room for a file of it: nothing is claimed of any until the segment ends.
    crowded: AtomicBool,
}

/// A change under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) key: u64,
    since: u64,
}

#[derive(Debug, Default)]
struct Shard {
    files: HashMap<u64, File>,
    /// Files that were written when there was no room for them.
    missed: HashSet<u64>,
}

impl Shard {
    fn missed(&self) -> usize {
        let is_kept = |key| self.files.get(key).is_some_and(File::is_written);
        self.missed.iter().filter(|key| !is_kept(*key)).count()
    }
}

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
    shards: Box<[Mutex<Shard>]>,
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
            let mut shard = hold(shard);
            shard.files.clear();
            shard.missed.clear();
        }
        for group in &self.groups {
            group.changed.store(0, Ordering::SeqCst);
            group.crowded.store(false, Ordering::SeqCst);
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

    /// Its call has returned: when, and whether no other change of the name was under way meanwhile.
    pub(crate) fn returned(&self, change: Change) -> (u64, bool) {
        let tick = self.tick();
        let alone = self.group(change.key).is_some_and(|group| {
            group.changing.load(Ordering::SeqCst) == 1
                && !group.crowded.load(Ordering::SeqCst)
                && group.changed.load(Ordering::SeqCst) < change.since
        });
        (tick, alone)
    }

    /// All is noted of a change whose call returned at a tick: from now on the name may be relied on.
    pub(crate) fn settle(&self, change: Change, tick: u64) {
        if let Some(group) = self.group(change.key) {
            group.changed.fetch_max(tick - 1, Ordering::SeqCst);
            group.changing.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The same where it does not matter who else was at it.
    pub(crate) fn changed(&self, change: Change) {
        self.settle(change, self.tick());
    }

    /// Whether a name has meant the same file since a descriptor was opened.
    pub(crate) fn is_solid(&self, key: u64, open: u64) -> bool {
        !self.is_blind()
            && self.group(key).is_some_and(|group| {
                group.changing.load(Ordering::SeqCst) == 0
                    && !group.crowded.load(Ordering::SeqCst)
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

    fn shard(&self, key: u64) -> Option<&Mutex<Shard>> {
        let high = usize::try_from(key >> 16 & 0xFFFF).unwrap_or(0);
        self.shards.get(high % SHARDS)
    }

    pub(crate) fn look<R>(&self, key: u64, look: impl FnOnce(&File) -> R) -> Option<R> {
        let shard = hold(self.shard(key)?);
        shard.files.get(&key).map(look)
    }

    /// Note something about a file. Without room for it nothing is claimed of its group any more.
    pub(crate) fn note<R>(&self, key: u64, note: impl FnOnce(&mut File) -> R) -> Option<R> {
        let mut shard = hold(self.shard(key)?);
        let files = &mut shard.files;
        if files.len() >= FILES && !files.contains_key(&key) {
            if let Some(group) = self.group(key) {
                group.crowded.store(true, Ordering::SeqCst);
            }
            return None;
        }
        Some(note(files.entry(key).or_default()))
    }

    /// The same of a file that is known already.
    pub(crate) fn amend<R>(&self, key: u64, note: impl FnOnce(&mut File) -> R) -> Option<R> {
        let mut shard = hold(self.shard(key)?);
        shard.files.get_mut(&key).map(note)
    }

    /// Note something of what a name means now, which those do not forget who are still at changing it; `None`: there is no room.
    pub(crate) fn impose(&self, key: u64, note: impl FnOnce(&mut File)) -> Option<()> {
        let tick = self.tick();
        self.note(key, |file| {
            file.touch(tick);
            note(file);
        })
    }

    /// What a file contained is gone, since a change began.
    pub(crate) fn forget(&self, change: Change, fate: Fate) {
        let Some(shard) = self.shard(change.key) else {
            return;
        };
        let mut shard = hold(shard);
        shard.missed.remove(&change.key);
        let file = shard.files.get_mut(&change.key);
        if file.is_some_and(|file| file.clear(fate, change.since)) {
            shard.files.remove(&change.key);
        }
    }

    /// A file that there is no room for was written.
    pub(crate) fn miss(&self, key: u64) {
        let Some(shard) = self.shard(key) else {
            return;
        };
        let mut shard = hold(shard);
        if shard.missed.len() < MISSED {
            shard.missed.insert(key);
        }
    }

    /// How many written files should still be there that are not among [`Memory::kept`].
    pub(crate) fn missed(&self) -> u64 {
        let missed = self.shards.iter().map(|shard| hold(shard).missed());
        missed.sum::<usize>() as u64
    }

    /// Written files that should still be there, by path. Nothing where names mean nothing.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        let clear = !self.is_blind();
        let mut kept: Vec<Kept> = Vec::new();
        for shard in &self.shards {
            let shard = hold(shard);
            let written = shard.files.iter();
            let written = written.filter(|(_, file)| file.is_written());
            kept.extend(written.map(|(key, file)| Kept {
                path: file.path.clone(),
                user: file.user,
                is_clear: clear && !file.is_unclear(),
                key: *key,
                laid: file.laid,
                zeros: file.zeros,
            }));
        }
        kept.sort_by(|one, other| one.path.cmp(&other.path));
        kept
    }

    /// What another name takes over from a file.
    pub(crate) fn contents(&self, key: u64) -> Contents {
        self.look(key, File::contents).unwrap_or_default()
    }
}
