//! How much room a replay needs: what its writes add, and what each user has a copy of.

use crate::constants::{O_APPEND, O_CREAT, O_EXCL, O_TMPFILE, RWF_APPEND, RWF_NOAPPEND};
use crate::error::TraceError;
use crate::reader::Trace;
use crate::sharing::SharingLabel;
use crate::tables::schema::Event;
use replayer_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

/// The most that one read or write moves on Linux (`MAX_RW_COUNT`, read(2)).
pub const MOST_DATA: u64 = 0x7fff_f000;
/// A replay asks a copy for so much more than was moved: it ends where its source has ended (chosen).
pub const END_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteExtent {
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
pub(super) struct WritePositions {
    /// `None`: at the end of a file, whose size nobody knows.
    known: FxHashMap<u32, Option<u64>>,
    appending: FxHashSet<u32>,
}

impl WritePositions {
    pub(super) fn follow(&mut self, event: &Event) -> WriteExtent {
        if let (Op::Meanwhile, Some(_), Some(size)) = (event.op, event.path, event.size) {
            let end = size.max(0).unsigned_abs();
            return WriteExtent::UpTo { end, bytes: end };
        }
        let (Some(file), flags) = (event.file, event.flags.unwrap_or(0)) else {
            return WriteExtent::Nothing;
        };
        if event.result < 0 && !is_asked_again(event.op) {
            return WriteExtent::Nothing;
        }
        let bytes = asked(event);
        match event.op {
            Op::Writev | Op::Pwritev if flags & RWF_APPEND != 0 => {
                if event.op == Op::Writev {
                    self.known.remove(&file);
                }
                WriteExtent::More(bytes)
            }
            Op::Write | Op::Writev => self.advance(file, bytes),
            // Linux appends whatever the offset (pwrite(2), BUGS).
            Op::Pwrite | Op::Pwritev
                if self.appending.contains(&file) && flags & RWF_NOAPPEND == 0 =>
            {
                WriteExtent::More(bytes)
            }
            Op::Pwrite | Op::Pwritev => up_to(event.offset, bytes),
            Op::Fallocate => up_to(event.offset, event.size.map_or(0, i64::unsigned_abs)),
            Op::CopyFileRange | Op::Sendfile | Op::Splice if event.to_file.is_some() => {
                WriteExtent::More(copied(event, bytes))
            }
            _ => {
                self.stand(file, event, (flags, bytes));
                WriteExtent::Nothing
            }
        }
    }

    /// Where a description stands after an event that writes nothing.
    fn stand(&mut self, file: u32, event: &Event, (flags, bytes): (i64, u64)) {
        match event.op {
            Op::Open | Op::Inherit if flags & O_APPEND != 0 => {
                self.appending.insert(file);
            }
            // Files without a name are many at the one path of their directory.
            Op::Open if flags & O_TMPFILE != O_TMPFILE => {
                self.known.insert(file, Some(0));
            }
            Op::Close | Op::CloseExit => {
                self.known.remove(&file);
                self.appending.remove(&file);
            }
            Op::Lseek => self.seek(file, event),
            Op::Read | Op::Readv => {
                self.advance(file, bytes);
            }
            _ => {}
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

    fn advance(&mut self, file: u32, bytes: u64) -> WriteExtent {
        let Some(Some(at)) = self.known.get_mut(&file) else {
            return WriteExtent::More(bytes);
        };
        *at = at.saturating_add(bytes);
        WriteExtent::UpTo { end: *at, bytes }
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

fn up_to(offset: Option<i64>, bytes: u64) -> WriteExtent {
    match offset.and_then(|offset| u64::try_from(offset).ok()) {
        Some(offset) => WriteExtent::UpTo {
            end: offset.saturating_add(bytes),
            bytes,
        },
        None => WriteExtent::More(bytes),
    }
}

/// What was written into one file.
#[derive(Debug, Default)]
struct FileWrites {
    end: u64,
    more: u64,
    bytes: u64,
}

/// What was written, by file and request.
#[derive(Debug, Default)]
pub(super) struct SpaceEstimate {
    files: FxHashMap<(u32, Option<u32>), FileWrites>,
}

impl SpaceEstimate {
    pub(super) fn add(&mut self, wrote: WriteExtent, request: u32, path: Option<u32>) {
        let (end, more, bytes) = match wrote {
            WriteExtent::Nothing => return,
            WriteExtent::UpTo { end, bytes } => (end, 0, bytes),
            WriteExtent::More(bytes) => (0, bytes, bytes),
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

/// The row of a path that an event makes or removes in a way that only one can: two performances cannot do that at one place.
#[must_use]
pub fn solitary_path(event: &Event) -> Option<u32> {
    const ONLY_NEW: i64 = O_CREAT | O_EXCL;
    if event.result < 0 {
        return None;
    }
    match event.op {
        Op::Mkdir | Op::Mknod | Op::Symlink | Op::Rmdir | Op::Unlink | Op::Rename => event.path,
        Op::Link => event.to_path,
        Op::Open
            if event
                .flags
                .is_some_and(|flags| flags & ONLY_NEW == ONLY_NEW) =>
        {
            event.path
        }
        _ => None,
    }
}

/// Paths that are each user's own, whatever their labels say.
#[derive(Debug, Default)]
pub(super) struct PrivateFiles {
    solitary: FxHashSet<u32>,
}

impl PrivateFiles {
    pub(super) fn follow(&mut self, event: &Event) {
        self.solitary.extend(solitary_path(event));
    }

    /// How much of the tree lies at or below these paths and private ones. A link that leads to one is own too, but takes no room.
    pub(super) fn json(&self, trace: &Trace) -> Result<Value, TraceError> {
        let paths = trace.paths()?;
        let own = (0..).zip(&paths).filter(|(row, named)| {
            named.label == SharingLabel::Private.name() || self.solitary.contains(row)
        });
        let own: FxHashSet<&[u8]> = own.map(|(_, named)| named.path.as_slice()).collect();
        let (mut entries, mut bytes) = (0_u64, 0_u64);
        let mut below: FxHashSet<&[u8]> = FxHashSet::default();
        for entry in trace.tree()? {
            let named = paths.get(super::index(entry.path));
            let Some(path) = named.map(|named| named.path.as_slice()) else {
                continue;
            };
            // Parents come before children.
            let is_below = crate::bytes::parent(path).is_some_and(|parent| below.contains(parent));
            if is_below || own.contains(path) {
                below.insert(path);
                entries += 1;
                let size = if entry.kind == 'f' { entry.size } else { 0 };
                bytes = bytes.saturating_add(size);
            }
        }
        Ok(json!({"entries": entries, "bytes": bytes}))
    }
}
