//! The last reading of a target: which files it is of, what is judged of each, and what all have cost. Who reads them is elsewhere.

use super::judge::{judge_bytes, judge_end};
use super::memory::{Kept, Memory};
use super::sight::{Known, Open, Sight};
use super::tally::{Count, Tally, Violation};
use crate::clock;
use crate::document::joined;
use crate::lock::hold;
use crate::program::{Identity, Naming};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// At most so many wrong files are named (chosen: what a person looks at).
const NAMED: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// It was read to its end; what is wrong with it.
    Whole(Option<Violation>),
    /// Nothing is known for certain of what is in it, or of its name.
    Unclear,
    /// It could not be opened or read.
    Failed,
    /// Time was over.
    Left,
}

#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(super) tally: Tally,
    wanted: AtomicU64,
    whole: AtomicU64,
    unclear: AtomicU64,
    failed: AtomicU64,
    /// Bytes that were in this machine's page cache when they were read.
    cached: AtomicU64,
    /// Files of which fsync failed.
    unsynced: AtomicU64,
    took: Mutex<(Option<Instant>, Duration)>,
    wrong: Mutex<Vec<(u16, Violation, String)>>,
}

impl Reading {
    /// So many files of a target are to be read, and of so many more nothing is known.
    pub(super) fn begin(&self, files: u64, missed: u64) {
        self.wanted.fetch_add(files + missed, Ordering::Relaxed);
        self.unclear.fetch_add(missed, Ordering::Relaxed);
        hold(&self.took).0 = Some(Instant::now());
    }

    /// Nothing more is read of a target.
    pub(super) fn end(&self) {
        let mut took = hold(&self.took);
        if let Some(begun) = took.0.take() {
            took.1 += begun.elapsed();
        }
    }

    /// A file of a target was dealt with.
    pub(super) fn count(&self, target: u16, path: &[u8], read: Read) {
        let counter = match read {
            Read::Whole(_) => &self.whole,
            Read::Unclear => &self.unclear,
            Read::Failed => &self.failed,
            Read::Left => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Read::Whole(Some(kind)) = read {
            let mut wrong = hold(&self.wrong);
            if wrong.len() < NAMED {
                let path = String::from_utf8_lossy(path).into_owned();
                wrong.push((target, kind, path));
            }
        }
    }

    /// So many bytes of a file lay in the page cache still, though it was dropped; whether fsync failed before that.
    pub(crate) fn prepared(&self, cached: u64, is_synced: bool) {
        self.cached.fetch_add(cached, Ordering::Relaxed);
        let failed = u64::from(!is_synced);
        self.unsynced.fetch_add(failed, Ordering::Relaxed);
    }

    /// Everything, as JSON; null when nothing was to be read.
    pub(super) fn json(&self) -> Value {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        let (begun, took) = *hold(&self.took);
        let took = took + begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let wanted = read(&self.wanted);
        if wanted == 0 && took == Duration::ZERO {
            return Value::Null;
        }
        let (whole, unclear, failed) = (read(&self.whole), read(&self.unclear), read(&self.failed));
        let wrong = hold(&self.wrong);
        let wrong: Vec<Value> = wrong
            .iter()
            .map(|(target, kind, path)| {
                json!({"target": target, "outcome": kind.name(), "path": path})
            })
            .collect();
        let of_files = json!({
            "files": whole, "unclear_files": unclear, "failed_files": failed,
            "left_files": wanted.saturating_sub(whole + unclear + failed),
            "cached_bytes": read(&self.cached), "unsynced_files": read(&self.unsynced),
            "took_ns": clock::ns(took), "wrong": wrong,
        });
        joined(self.tally.sums(), of_files)
    }
}
