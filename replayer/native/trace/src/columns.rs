//! The events of a trace as columns, for who looks at all of them at once: what they did, when, and what came of it.

use crate::error::TraceError;
use crate::reader::Trace;
use crate::tables::schema::{Event, NamedPath, RequestPiece, TreeEntry};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Columns of equal length, a row an event, in the order of the trace.
#[derive(Debug, Default)]
pub struct EventColumns {
    /// Numbers of threads.
    pub thread: Vec<u32>,
    /// When it was entered, since the begin of the trace.
    pub start_ns: Vec<i64>,
    /// How long it took; -1 where the log does not say.
    pub duration_ns: Vec<i64>,
    /// Indices in `Op::ALL`.
    pub op: Vec<u8>,
    /// Rows of `paths`, also of what is meant by an open file; -1: none.
    pub path: Vec<i32>,
    /// What it returned; an error is its number, negative.
    pub result: Vec<i64>,
    /// The table `paths`.
    pub paths: Vec<NamedPath>,
}

/// Read what a timeline shows of each event.
///
/// # Errors
/// It is no trace, or is damaged.
pub fn event_columns(directory: &Path) -> Result<EventColumns, TraceError> {
    let trace = Trace::open(directory)?;
    let mut columns = EventColumns {
        paths: trace.paths()?,
        ..EventColumns::default()
    };
    let mut opened = FxHashMap::default();
    let mut events = trace.tables().events(0)?;
    while let Some((_, event)) = events.next_event()? {
        opened.extend(event.opens());
        columns.add(&event, &opened);
    }
    Ok(columns)
}

impl EventColumns {
    fn add(&mut self, event: &Event, opened: &FxHashMap<u32, u32>) {
        let of_file = || opened.get(&event.file?).copied();
        let path = event.path.or_else(of_file);
        self.thread.push(event.thread);
        self.start_ns.push(event.start_ns);
        self.duration_ns.push(event.duration_ns.unwrap_or(-1));
        self.op.push(event.op as u8);
        self.path
            .push(path.and_then(|row| i32::try_from(row).ok()).unwrap_or(-1));
        self.result.push(event.result);
    }
}

/// Stands for no value.
const NONE: i64 = i64::MIN;

/// What each call of a trace was asked and what it returned, a column for each of `NAMES`.
#[derive(Debug, Default)]
pub struct CallColumns {
    /// In the order of `NAMES`; -2^63 where an event has no such value.
    pub columns: [Vec<i64>; CallColumns::NAMES.len()],
    /// The table `paths`.
    pub paths: Vec<NamedPath>,
    /// The table `tree`.
    pub tree: Vec<TreeEntry>,
    /// The table `requests`.
    pub requests: Vec<RequestPiece>,
}

impl CallColumns {
    /// The columns; `op` is an index in `Op::ALL`.
    pub const NAMES: [&'static str; 10] = [
        "thread", "op", "path", "file", "flags", "mode", "size", "offset", "result", "gap_ns",
    ];

    fn add(&mut self, event: &Event) {
        let row = |number: Option<u32>| number.map(i64::from);
        let values = [
            Some(i64::from(event.thread)),
            Some(i64::from(event.op as u8)),
            row(event.path),
            row(event.file),
            event.flags,
            event.mode,
            event.size,
            event.offset,
            Some(event.result),
            Some(event.gap_ns),
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value.unwrap_or(NONE));
        }
    }
}

/// Read what each call was asked and returned, the tree before, and the requests.
///
/// # Errors
/// It is no trace, or is damaged.
pub fn call_columns(directory: &Path) -> Result<CallColumns, TraceError> {
    let trace = Trace::open(directory)?;
    let mut found = CallColumns {
        paths: trace.paths()?,
        tree: trace.tree()?,
        requests: trace.requests()?,
        ..CallColumns::default()
    };
    let mut events = trace.tables().events(0)?;
    while let Some((_, event)) = events.next_event()? {
        found.add(&event);
    }
    Ok(found)
}
