//! Opens a trace folder: nothing of it is believed before its version and its checksums are right.

pub(crate) mod events;
pub(crate) mod integrity;

use crate::error::TraceError;
use crate::reader::events::{EventRows, Times};
use crate::tables::column::Spec;
use crate::tables::document_checksum;
use crate::tables::read::{OpenTable, Rows};
use crate::tables::schema::{self, NamedPath, RequestPiece, RowCounts, TreeEntry};
use crate::tables::text::unescaped;
use serde_json::Value;
use std::path::Path;

/// Every column of a table.
const ALL: u32 = u32::MAX;
/// thread, op, path, `to_path`, file, `to_file`, flags, result.
const NAMES: u32 = 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 19;

/// A trace folder whose files are what they were when it was written.
#[derive(Debug)]
pub struct Trace {
    text: String,
    document: Value,
    tables: TraceTables,
}

impl Trace {
    /// Open a folder and check its version, the checksum of every table, and the totals in its trace.json against the tables.
    ///
    /// # Errors
    /// It is no trace, of another version, or damaged.
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        let place = directory.join("trace.json");
        let text = integrity::read_document(directory, &place)?;
        let document = integrity::checked_document(directory, &text)?;
        let times = Times::of(&document)
            .ok_or_else(|| TraceError::broken(&place, "names no tick of its clock"))?;
        let tables = TraceTables::open(directory, times)?;
        let trace = Self {
            text,
            document,
            tables,
        };
        let (tree, requests) = (trace.tree()?, trace.requests()?);
        let wrong = integrity::wrong_total(&trace.document, trace.tables.counts, &tree, &requests);
        wrong.map_or(Ok(trace), |message| {
            Err(TraceError::broken(&place, message))
        })
    }

    /// What its trace.json says.
    pub(crate) fn told(&self) -> &Value {
        &self.document
    }

    /// The text of its trace.json.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of its trace.json, which holds those of all tables.
    #[must_use]
    pub fn sha256(&self) -> String {
        document_checksum(&self.text)
    }

    /// Its tables, which can be read as often as one likes.
    #[must_use]
    pub fn tables(&self) -> &TraceTables {
        &self.tables
    }

    /// Paths by row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn paths(&self) -> Result<Vec<NamedPath>, TraceError> {
        self.tables.paths()?.all()
    }

    /// What must be there before, parents before children.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn tree(&self) -> Result<Vec<TreeEntry>, TraceError> {
        self.tables.tree()?.all()
    }

    /// Which event waits for which: pairs of (event, earlier event), by event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn edges(&self) -> Result<Vec<(u64, u64)>, TraceError> {
        self.tables.edges()?.all()
    }

    /// Pieces of threads, by their first event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn requests(&self) -> Result<Vec<RequestPiece>, TraceError> {
        self.tables.requests()?.all()
    }
}

/// The tables of a trace, open: they are read row by row, in constant memory, without looking for a file again.
#[derive(Debug, Clone)]
pub struct TraceTables {
    events: OpenTable,
    paths: OpenTable,
    tree: OpenTable,
    edges: OpenTable,
    requests: OpenTable,
    times: Times,
    counts: RowCounts,
}

impl TraceTables {
    fn open(directory: &Path, times: Times) -> Result<Self, TraceError> {
        let open = |name| OpenTable::open(directory, name);
        let (events, paths) = (open("events")?, open("paths")?);
        Ok(Self {
            counts: RowCounts {
                events: events.rows_count()?,
                paths: paths.rows_count()?,
            },
            events,
            paths,
            tree: open("tree")?,
            edges: open("edges")?,
            requests: open("requests")?,
            times,
        })
    }

    /// All events with all that is known of them, from the row group on that holds a row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn events(&self, from: u64) -> Result<EventRows, TraceError> {
        let mut rows = self.events.rows(self.times.specs(), ALL)?;
        rows.skip_to(from)?;
        Ok(EventRows::over(rows, self.times.clone(), self.counts))
    }

    /// All events with their threads, ops, paths, files, flags and results; every other column is null, or 0.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn names(&self) -> Result<EventRows, TraceError> {
        let rows = self.events.rows(self.times.specs(), NAMES)?;
        Ok(EventRows::over(rows, self.times.clone(), self.counts))
    }

    /// The columns of the events.
    pub(crate) fn event_specs(&self) -> &'static [Spec] {
        self.times.specs()
    }

    /// The first row of each row group of the events, and behind them the number of events.
    pub(crate) fn event_groups(&self) -> Result<Vec<u64>, TraceError> {
        self.events.group_bounds()
    }

    fn paths(&self) -> Result<TableRows<NamedPath>, TraceError> {
        Ok(TableRows::over(
            self.paths.rows(&schema::PATHS, ALL)?,
            |rows| {
                Some(NamedPath {
                    path: unescaped(rows.string(0)?),
                    label: rows.string(1)?.to_owned(),
                })
            },
        ))
    }

    fn tree(&self) -> Result<TableRows<TreeEntry>, TraceError> {
        let counts = self.counts;
        Ok(TableRows::over(
            self.tree.rows(&schema::TREE, 0b1_1111)?,
            move |rows| {
                let path = rows.number(0)?;
                counts.holds_path(Some(path)).then_some(())?;
                Some(TreeEntry {
                    path,
                    kind: (rows.string(1)?.chars().next()).filter(|kind| "fdlo".contains(*kind))?,
                    size: rows.number(2)?,
                    mode: rows.number(3),
                    link: rows.string(4).map(unescaped),
                })
            },
        ))
    }

    /// Which event waits for which earlier one, by event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn edges(&self) -> Result<TableRows<(u64, u64)>, TraceError> {
        let (counts, mut last) = (self.counts, 0);
        Ok(TableRows::over(
            self.edges.rows(&schema::EDGES, 0b11)?,
            move |rows| {
                let (event, earlier) = (rows.number(0)?, rows.number(1)?);
                let is_next = event >= last && counts.holds_edge(event, earlier);
                last = event;
                is_next.then_some((event, earlier))
            },
        ))
    }

    /// Pieces of requests.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn requests(&self) -> Result<TableRows<RequestPiece>, TraceError> {
        let counts = self.counts;
        Ok(TableRows::over(
            self.requests.rows(&schema::REQUESTS, ALL)?,
            move |rows| {
                let request = rows.number(0)?;
                let label = rows.string(1)?.to_owned();
                let (thread, first_event, last_event) =
                    (rows.number(2)?, rows.number(3)?, rows.number(4)?);
                rows.int(5)?;
                let piece = RequestPiece {
                    request,
                    label,
                    thread,
                    first_event,
                    last_event,
                    start_ns: rows.number(6)?,
                    end_ns: rows.number(7)?,
                };
                counts.holds_piece(&piece).then_some(piece)
            },
        ))
    }
}

type ReadRow<T> = Box<dyn FnMut(&mut Rows) -> Option<T> + Send>;

/// Rows of a table that is being read.
pub struct TableRows<T> {
    rows: Rows,
    /// Reads one row; None where it holds an invalid value.
    read: ReadRow<T>,
}

impl<T> TableRows<T> {
    fn over(rows: Rows, read: impl FnMut(&mut Rows) -> Option<T> + Send + 'static) -> Self {
        let read = Box::new(read);
        Self { rows, read }
    }

    /// The next row, None after the last.
    ///
    /// # Errors
    /// The table is damaged, or its rows are not in order.
    pub fn next_row(&mut self) -> Result<Option<T>, TraceError> {
        if self.rows.advance()?.is_none() {
            return Ok(None);
        }
        let value = (self.read)(&mut self.rows);
        value.map(Some).ok_or_else(|| self.rows.wrong())
    }

    fn all(mut self) -> Result<Vec<T>, TraceError> {
        std::iter::from_fn(|| self.next_row().transpose()).collect()
    }
}
