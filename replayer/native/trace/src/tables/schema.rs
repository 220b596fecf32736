//! The tables of a trace: their columns, and their rows as values. FORMAT.md says what each column means.

use crate::tables::column::{Kind, Layout, Spec};
use replayer_ops::Op;

/// A row of `events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// When it was entered, since the begin of the trace.
    pub start_ns: i64,
    /// How long it took as recorded, if that is known.
    pub duration_ns: Option<i64>,
    /// Think time before it on its thread, without what the tracing added.
    pub gap_ns: i64,
    /// The event that its thread was kept waiting by last.
    pub after: Option<u64>,
    /// Think time since that had ended.
    pub after_ns: Option<i64>,
    /// What it did.
    pub op: Op,
    /// Row of its path in the table `paths`.
    pub path: Option<u32>,
    /// Row of its second path.
    pub to_path: Option<u32>,
    /// Number of the open description it used, or made.
    pub file: Option<u32>,
    /// Number of its second open description.
    pub to_file: Option<u32>,
    /// Flags, by op.
    pub flags: Option<i64>,
    /// Mode, by op.
    pub mode: Option<i64>,
    /// Bytes asked for, by op.
    pub size: Option<i64>,
    /// Position, by op.
    pub offset: Option<i64>,
    /// Entries that a listing returned.
    pub entries: Option<i64>,
    /// Owner to be set.
    pub uid: Option<i64>,
    /// Group to be set.
    pub gid: Option<i64>,
    /// Access time to be set.
    pub atime_ns: Option<i64>,
    /// Modification time to be set.
    pub mtime_ns: Option<i64>,
    /// Name of an attribute, target of a symlink, name of a command.
    pub text: Option<Vec<u8>>,
    /// What it returned; an error is its number, negative.
    pub result: i64,
}

impl Event {
    /// The number and the path of the file that it opens, or that was open before the trace.
    pub(crate) fn opens(&self) -> Option<(u32, u32)> {
        let opens = matches!(self.op, Op::Open | Op::Inherit);
        opens.then_some((self.file?, self.path?))
    }
}

/// A row of `paths`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    /// Relative to the top of the trace; its first component stands for a root.
    pub path: Vec<u8>,
    /// `shared read-only`, `private` or `shared mutable`.
    pub label: String,
}

/// A row of `tree`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Row in `paths`.
    pub path: u32,
    /// f, d, l, or o for what is none of these.
    pub kind: char,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits, if known.
    pub mode: Option<u32>,
    /// Where a symlink leads.
    pub link: Option<Vec<u8>>,
}

/// A row of `requests`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPiece {
    /// Pieces with one number belong to one request.
    pub request: u32,
    /// What it is called.
    pub label: String,
    /// Whose events.
    pub thread: u32,
    /// Row of its first event.
    pub first_event: u64,
    /// Row of its last event.
    pub last_event: u64,
    /// When it was taken, since the begin of the trace.
    pub start_ns: u64,
    /// When it was done.
    pub end_ns: u64,
}

#[rustfmt::skip]
pub(crate) const EVENTS: [Spec; 23] = [
    Spec::new("thread", Kind::Int32, Layout::Split),
    Spec::new("start_ticks", Kind::Int64, Layout::Delta),
    Spec::new("duration_ticks", Kind::Int64, Layout::Split).or_null(),
    Spec::new("gap_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("op", Kind::Text, Layout::Dictionary),
    Spec::new("path", Kind::Int32, Layout::Split).or_null(),
    Spec::new("to_path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_file", Kind::Int32, Layout::Split).or_null(),
    Spec::new("flags", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("mode", Kind::Int64, Layout::Split).or_null(),
    Spec::new("size", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("offset", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("entries", Kind::Int64, Layout::Split).or_null(),
    Spec::new("uid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("gid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("atime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("mtime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("text", Kind::Text, Layout::Dictionary).or_null(),
    Spec::new("result", Kind::Int64, Layout::Plain),
    Spec::new("between", Kind::Int32, Layout::Split).or_null(),
    Spec::new("after", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("after_ns", Kind::Int64, Layout::Plain).or_null(),
];

/// Those of format 1: times in nanoseconds, and every gap.
#[rustfmt::skip]
pub(crate) const EVENTS_1: [Spec; 20] = [
    Spec::new("thread", Kind::Int32, Layout::Dictionary),
    Spec::new("start_ns", Kind::Int64, Layout::Delta),
    Spec::new("duration_ns", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("gap_ns", Kind::Int64, Layout::Dictionary),
    Spec::new("op", Kind::Text, Layout::Dictionary),
    Spec::new("path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("flags", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("mode", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("size", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("offset", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("entries", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("uid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("gid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("atime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("mtime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("text", Kind::Text, Layout::Dictionary).or_null(),
    Spec::new("result", Kind::Int64, Layout::Plain),
];

pub(crate) const PATHS: [Spec; 2] = [
    Spec::new("path", Kind::Text, Layout::Delta),
    Spec::new("label", Kind::Text, Layout::Dictionary),
];

pub(crate) const TREE: [Spec; 6] = [
    Spec::new("path", Kind::Int32, Layout::Delta),
    Spec::new("type", Kind::Text, Layout::Dictionary),
    Spec::new("size", Kind::Int64, Layout::Split),
    Spec::new("mode", Kind::Int32, Layout::Split).or_null(),
    Spec::new("link", Kind::Text, Layout::Dictionary).or_null(),
    Spec::new("known_from", Kind::Text, Layout::Dictionary),
];

pub(crate) const EDGES: [Spec; 3] = [
    Spec::new("event", Kind::Int64, Layout::Delta),
    Spec::new("waits_for", Kind::Int64, Layout::Delta),
    Spec::new("reason", Kind::Text, Layout::Dictionary),
];

pub(crate) const REQUESTS: [Spec; 8] = [
    Spec::new("request", Kind::Int32, Layout::Delta),
    Spec::new("label", Kind::Text, Layout::Dictionary),
    Spec::new("thread", Kind::Int32, Layout::Delta),
    Spec::new("first_event", Kind::Int64, Layout::Delta),
    Spec::new("last_event", Kind::Int64, Layout::Delta),
    Spec::new("events", Kind::Int64, Layout::Delta),
    Spec::new("start_ns", Kind::Int64, Layout::Delta),
    Spec::new("end_ns", Kind::Int64, Layout::Delta),
];

/// How many rows the tables have that others name by number: a number beyond them is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) events: u64,
    pub(crate) paths: u64,
}

impl RowCounts {
    /// Whether all is there that the event of a row names, and before it what kept it waiting.
    pub(crate) fn holds(self, row: u64, event: &Event) -> bool {
        [event.path, event.to_path]
            .into_iter()
            .all(|path| self.holds_path(path))
            && event.after.is_none_or(|after| after < row)
    }

    pub(crate) fn holds_path(self, path: Option<u32>) -> bool {
        path.is_none_or(|path| u64::from(path) < self.paths)
    }

    pub(crate) fn holds_edge(self, event: u64, earlier: u64) -> bool {
        earlier < event && event < self.events
    }

    pub(crate) fn holds_piece(self, piece: &RequestPiece) -> bool {
        piece.first_event <= piece.last_event && piece.last_event < self.events
    }
}
