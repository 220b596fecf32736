//! Events, edges and requests of a trace, row by row, in constant memory: what replaying reads.

use crate::error::TraceError;
use crate::events::{AFTER, AFTER_NS, BETWEEN, RecordedTimes, Times};
use crate::extent::Extent;
use crate::reader::{RequestPiece, Trace};
use crate::rows::{OpenTable, Rows};
use crate::tables::events::Event;
use crate::tables::text::unescaped;
use crate::tables::{edges, requests};
use replayer_ops::Op;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// thread, op, path, `to_path`, file, `to_file`, flags, result.
const NAMES: u32 = 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 19;

/// The tables that grow with a trace, open: they are read without looking for a file again.
#[derive(Debug, Clone)]
pub struct Streams {
    events: OpenTable,
    edges: OpenTable,
    requests: OpenTable,
    times: Times,
    extent: Extent,
}

impl Streams {
    /// Open the tables of a trace that was checked.
    ///
    /// # Errors
    /// A table cannot be opened.
    pub fn open(checked: &Trace, directory: &Path) -> Result<Self, TraceError> {
        Ok(Self {
            events: OpenTable::open(directory, "events")?,
            edges: OpenTable::open(directory, "edges")?,
            requests: OpenTable::open(directory, "requests")?,
            times: checked.times()?,
            extent: checked.extent(),
        })
    }

    /// All events with all that is known of them, from the row group on that holds a row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn events(&self, from: u64) -> Result<EventRows, TraceError> {
        let mut rows = self.events.rows(self.times.specs(), u32::MAX)?;
        rows.skip_to(from)?;
        Ok(EventRows::over(rows, self))
    }

    /// All events with their threads, ops, paths, files, flags and results; every other column is null, or 0.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn names(&self) -> Result<EventRows, TraceError> {
        let rows = self.events.rows(self.times.specs(), NAMES)?;
        Ok(EventRows::over(rows, self))
    }

    /// Which event waits for which, by event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn edges(&self) -> Result<EdgeRows, TraceError> {
        let rows = self.edges.rows(&edges::SPECS, 0b11)?;
        Ok(EdgeRows {
            rows,
            extent: self.extent,
            last: 0,
        })
    }

    /// Pieces of requests.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn requests(&self) -> Result<RequestRows, TraceError> {
        let rows = self.requests.rows(&requests::SPECS, u32::MAX)?;
        Ok(RequestRows {
            rows,
            extent: self.extent,
        })
    }
}

impl Trace {
    /// The SHA-256 of its trace.json, which holds those of all tables.
    #[must_use]
    pub fn sha256(&self) -> String {
        let sum = Sha256::digest(self.document().as_bytes());
        sum.iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Events that are being read.
pub struct EventRows {
    rows: Rows,
    times: Times,
    extent: Extent,
    /// Ops by where their names lie, good for one batch: names of a dictionary are not compared again.
    ops: FxHashMap<(usize, usize), Op>,
    batch: u64,
}

impl EventRows {
    fn over(rows: Rows, streams: &Streams) -> Self {
        Self {
            rows,
            times: streams.times.clone(),
            extent: streams.extent,
            ops: FxHashMap::default(),
            batch: 0,
        }
    }

    /// The next event and its row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn next_event(&mut self) -> Result<Option<(u64, Event)>, TraceError> {
        let Some(row) = self.rows.advance()? else {
            return Ok(None);
        };
        if self.batch != self.rows.batch() {
            self.batch = self.rows.batch();
            self.ops.clear();
        }
        match self.event() {
            Some(event) if self.extent.holds(row, &event) => Ok(Some((row, event))),
            _ => Err(self.rows.wrong()),
        }
    }

    fn op(&mut self) -> Option<Op> {
        let name = self.rows.text(4)?;
        let place = (name.as_ptr().addr(), name.len());
        if let Some(op) = self.ops.get(&place) {
            return Some(*op);
        }
        let op = Op::of_trace(std::str::from_utf8(name).ok()?)?;
        self.ops.insert(place, op);
        Some(op)
    }

    fn event(&mut self) -> Option<Event> {
        let thread = number(self.rows.int(0)?)?;
        let op = self.op()?;
        let result = self.rows.int(19)?;
        let told = RecordedTimes {
            start: self.rows.int(1).unwrap_or(0),
            duration: self.rows.int(2),
            gap: self.rows.int(3),
            between: self.rows.int(BETWEEN),
            op,
            failed: result < 0,
        };
        let (start_ns, duration_ns, gap_ns) = self.times.read(told, thread)?;
        let rows = &mut self.rows;
        let mut optional = |column| match rows.int(column) {
            Some(value) => number(value).map(Some),
            None => Some(None),
        };
        let (path, to_path) = (optional(5)?, optional(6)?);
        let (file, to_file) = (optional(7)?, optional(8)?);
        Some(Event {
            thread,
            start_ns,
            duration_ns,
            gap_ns,
            after: rows.int(AFTER).map(u64::try_from).transpose().ok()?,
            after_ns: rows.int(AFTER_NS),
            op,
            path,
            to_path,
            file,
            to_file,
            flags: rows.int(9),
            mode: rows.int(10),
            size: rows.int(11),
            offset: rows.int(12),
            entries: rows.int(13),
            uid: rows.int(14),
            gid: rows.int(15),
            atime_ns: rows.int(16),
            mtime_ns: rows.int(17),
            text: match rows.text(18) {
                Some(text) => Some(plain(text)?),
                None => None,
            },
            result,
        })
    }
}

fn number(value: i64) -> Option<u32> {
    u32::try_from(value).ok()
}

fn plain(text: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(text).ok().map(unescaped)
}

/// Edges that are being read.
pub struct EdgeRows {
    rows: Rows,
    extent: Extent,
    last: u64,
}

impl EdgeRows {
    /// The next edge: an event, and the earlier one that it waits for.
    ///
    /// # Errors
    /// The table is damaged, or not in the order of the events.
    pub fn next_edge(&mut self) -> Result<Option<(u64, u64)>, TraceError> {
        if self.rows.advance()?.is_none() {
            return Ok(None);
        }
        let mut value = |column| {
            let value = self.rows.int(column);
            value.and_then(|value| u64::try_from(value).ok())
        };
        match (value(0), value(1)) {
            (Some(event), Some(earlier))
                if event >= self.last && self.extent.holds_edge(event, earlier) =>
            {
                self.last = event;
                Ok(Some((event, earlier)))
            }
            _ => Err(self.rows.wrong()),
        }
    }
}

/// Pieces of requests that are being read.
pub struct RequestRows {
    rows: Rows,
    extent: Extent,
}

impl RequestRows {
    /// The next piece.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn next_piece(&mut self) -> Result<Option<RequestPiece>, TraceError> {
        if self.rows.advance()?.is_none() {
            return Ok(None);
        }
        match self.piece() {
            Some(piece) if self.extent.holds_piece(&piece) => Ok(Some(piece)),
            _ => Err(self.rows.wrong()),
        }
    }

    fn piece(&mut self) -> Option<RequestPiece> {
        let rows = &mut self.rows;
        let request = number(rows.int(0)?)?;
        let label = std::str::from_utf8(rows.text(1)?).ok()?.to_owned();
        let mut value = |column| rows.int(column).and_then(|value| u64::try_from(value).ok());
        let thread = u32::try_from(value(2)?).ok()?;
        let (first_event, last_event) = (value(3)?, value(4)?);
        value(5)?;
        Some(RequestPiece {
            request,
            label,
            thread,
            first_event,
            last_event,
            start_ns: value(6)?,
            end_ns: value(7)?,
        })
    }
}
