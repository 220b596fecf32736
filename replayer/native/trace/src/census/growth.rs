//! How much room a trace's writes need: to its highest end in each file, not all that is written there again and again.

use crate::constants::{O_APPEND, O_TMPFILE, RWF_APPEND, RWF_NOAPPEND};
use crate::op::Op;
use crate::tables::events::Event;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most that one read or write moves on Linux (`MAX_RW_COUNT`, read(2)).
pub const MOST_DATA: u64 = 0x7fff_f000;
/// A replay asks a copy for so much more than was moved: it ends where its source has ended (chosen).
pub const END_BYTES: u64 = 4096;

/// Where an event writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrote {
    Nothing,
    /// So many bytes up to a position.
    UpTo {
        end: u64,
        bytes: u64,
    },
    /// So many bytes where nobody knows: at the end of a file, or through a description opened before.
    More(u64),
}

/// Where open descriptions stand. Those that append, those opened before the trace, and those of files without a name have no position.
///
/// What calls asked for counts, not what they returned: a replay asks the same again.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// `None`: at the end of a file, whose size nobody knows.
    known: FxHashMap<u32, Option<u64>>,
    appending: FxHashSet<u32>,
}

impl Positions {
    pub(super) fn follow(&mut self, event: &Event) -> Wrote {
        if let (Op::Meanwhile, Some(_), Some(size)) = (event.op, event.path, event.size) {
            let end = size.max(0).unsigned_abs();
            return Wrote::UpTo { end, bytes: end };
        }
        let (Some(file), flags) = (event.file, event.flags.unwrap_or(0)) else {
            return Wrote::Nothing;
        };
        if event.result < 0 && !is_asked_again(event.op) {
            return Wrote::Nothing;
        }
        let bytes = asked(event);
        match event.op {
            Op::Open | Op::Inherit if flags & O_APPEND != 0 => {
                self.appending.insert(file);
                Wrote::Nothing
            }
            Op::Open => {
                // Files without a name are many at the one path of their directory.
                if flags & O_TMPFILE != O_TMPFILE {
                    self.known.insert(file, Some(0));
                }
                Wrote::Nothing
            }
            Op::Close | Op::CloseExit => {
                self.known.remove(&file);
                self.appending.remove(&file);
                Wrote::Nothing
            }
            Op::Lseek => {
                self.seek(file, event);
                Wrote::Nothing
            }
            Op::Read | Op::Readv => {
                self.advance(file, bytes);
                Wrote::Nothing
            }
            Op::Writev | Op::Pwritev if flags & RWF_APPEND != 0 => {
                if event.op == Op::Writev {
                    self.known.remove(&file);
                }
                Wrote::More(bytes)
            }
            Op::Write | Op::Writev => self.advance(file, bytes),
            // Linux appends whatever the offset (pwrite(2), BUGS).
            Op::Pwrite | Op::Pwritev
                if self.appending.contains(&file) && flags & RWF_NOAPPEND == 0 =>
            {
                Wrote::More(bytes)
            }
            Op::Pwrite | Op::Pwritev => up_to(event.offset, bytes),
            Op::Fallocate => up_to(event.offset, event.size.map_or(0, i64::unsigned_abs)),
            Op::CopyFileRange | Op::Sendfile | Op::Splice if event.to_file.is_some() => {
                Wrote::More(copied(event, bytes))
            }
            _ => Wrote::Nothing,
        }
    }

    /// A replay asks for the recorded offset, wherever that led.
    fn seek(&mut self, file: u32, event: &Event) {
        let Some(at) = self.known.get_mut(&file) else {
            return;
        };
        let offset = event.offset.unwrap_or(0);
        *at = match event.flags {
            Some(0) => u64::try_from(offset).ok(),
            Some(1) => at.and_then(|at| at.checked_add_signed(offset)),
            _ => None,
        };
    }

    fn advance(&mut self, file: u32, bytes: u64) -> Wrote {
        let Some(Some(at)) = self.known.get_mut(&file) else {
            return Wrote::More(bytes);
        };
        *at = at.saturating_add(bytes);
        Wrote::UpTo { end: *at, bytes }
    }
}

/// Calls that failed while they were recorded, and may fill a disk when they are made again.
fn is_asked_again(op: Op) -> bool {
    let writes = matches!(op, Op::Write | Op::Writev | Op::Pwrite | Op::Pwritev);
    let copies = matches!(op, Op::CopyFileRange | Op::Sendfile | Op::Splice);
    writes || copies || op == Op::Fallocate
}

/// How much a call moves at most when it is made again.
fn asked(event: &Event) -> u64 {
    let size = event.size.and_then(|size| u64::try_from(size).ok());
    let moved = u64::try_from(event.result).unwrap_or(0);
    size.unwrap_or(0).max(moved).min(MOST_DATA)
}

/// The same of a copy: it ends where its source ended, but for a little.
fn copied(event: &Event, asked: u64) -> u64 {
    let moved = u64::try_from(event.result).unwrap_or(0);
    let most = match event.file {
        Some(_) => moved.saturating_add(END_BYTES),
        None => moved,
    };
    asked.min(most)
}

fn up_to(offset: Option<i64>, bytes: u64) -> Wrote {
    match offset.and_then(|offset| u64::try_from(offset).ok()) {
        Some(offset) => Wrote::UpTo {
            end: offset.saturating_add(bytes),
            bytes,
        },
        None => Wrote::More(bytes),
    }
}

/// What was written into one file.
#[derive(Debug, Default)]
struct Written {
    end: u64,
    more: u64,
    bytes: u64,
}

/// What was written, by file and request.
#[derive(Debug, Default)]
pub(super) struct Growth {
    files: FxHashMap<(u32, Option<u32>), Written>,
}

impl Growth {
    pub(super) fn add(&mut self, wrote: Wrote, request: u32, path: Option<u32>) {
        let (end, more, bytes) = match wrote {
            Wrote::Nothing => return,
            Wrote::UpTo { end, bytes } => (end, 0, bytes),
            Wrote::More(bytes) => (0, bytes, bytes),
        };
        let file = self.files.entry((request, path)).or_default();
        file.end = file.end.max(end);
        file.more = file.more.saturating_add(more);
        file.bytes = file.bytes.saturating_add(bytes);
    }

    /// Most bytes that the files can have grown by: no more than was written, and no further than to their highest end.
    pub(super) fn bytes(&self) -> u64 {
        let files = self.files.values();
        files
            .map(|file| file.end.saturating_add(file.more).min(file.bytes))
            .fold(0, u64::saturating_add)
    }
}
