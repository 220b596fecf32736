//! The events of a trace as columns, for who looks at all of them at once: what they did, when, and what came of it.

use crate::error::TraceError;
use crate::reader::Trace;
use crate::tables::schema::{Event, NamedPath};
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
