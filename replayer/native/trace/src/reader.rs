//! Opens a trace folder: nothing of it is believed before its version and its checksums are right.

use crate::error::TraceError;
use crate::events::{Events, Times, count_events};
use crate::extent::Extent;
use crate::folder::{FORMAT_VERSION, NO_CHECKSUM, TABLES, checksum, document_checksum};
use crate::tables::column::Spec;
use crate::tables::events::SPECS as EVENTS;
use crate::tables::read::{Group, TableReader};
use crate::tables::text::unescaped;
use crate::tables::{edges, paths, requests, tree};
use crate::totals;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer trace.json is none (chosen).
const LONGEST_DOCUMENT_BYTES: u64 = 16 << 20;
pub(crate) const AGAIN: &str = "the trace is damaged: import or copy it again";

/// A trace folder whose files are what they were when it was written.
#[derive(Debug)]
pub struct Trace {
    directory: PathBuf,
    text: String,
    document: Value,
    extent: Extent,
}

impl Trace {
    /// Open a folder and check its version, the checksum of every table, and the totals in its trace.json against the tables.
    ///
    /// # Errors
    /// It is no trace, of another version, or damaged.
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        let place = directory.join("trace.json");
        let text = read_document(directory, &place)?;
        let document: Value = serde_json::from_str(&text)
            .map_err(|error| TraceError::damaged(&place, format!("is no JSON: {error}"), AGAIN))?;
        match document.get("format").and_then(Value::as_u64) {
            Some(1) => {}
            Some(FORMAT_VERSION) => check_document(&place, &text, &document)?,
            Some(other) => {
                return Err(TraceError::damaged(
                    &place,
                    format!("has trace format {other}, this replayer reads 1 to {FORMAT_VERSION}"),
                    "use a replayer that is as new as the one that wrote it, or import the log again",
                ));
            }
            None => return Err(TraceError::damaged(&place, "names no trace format", AGAIN)),
        }
        for name in TABLES {
            check(
                directory,
                name,
                document.get("tables").and_then(|tables| tables.get(name)),
            )?;
        }
        let specs = Times::of(directory, &document)?.specs();
        let trace = Self {
            directory: directory.to_owned(),
            text,
            document,
            extent: Extent::of(directory, specs)?,
        };
        totals::check(&trace, &place)?;
        Ok(trace)
    }

    /// What its trace.json says.
    pub(crate) fn told(&self) -> &Value {
        &self.document
    }

    pub(crate) fn extent(&self) -> Extent {
        self.extent
    }

    /// The text of its trace.json.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.text
    }

    /// How the times of its events are to be read.
    pub(crate) fn times(&self) -> Result<Times, TraceError> {
        Times::of(&self.directory, &self.document)
    }

    /// Its events, a row group at a time.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn events(&self) -> Result<Events, TraceError> {
        Events::open(&self.directory, &self.document, self.extent)
    }

    /// Paths by row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn paths(&self) -> Result<Vec<NamedPath>, TraceError> {
        self.rows("paths", &paths::SPECS, named_path)
    }

    /// What must be there before, parents before children.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn tree(&self) -> Result<Vec<TreeEntry>, TraceError> {
        self.rows("tree", &tree::SPECS, tree_entry)
    }

    /// Which event waits for which: pairs of (event, earlier event), by event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn edges(&self) -> Result<Vec<(u64, u64)>, TraceError> {
        self.rows("edges", &edges::SPECS, edge)
    }

    /// Pieces of threads, by their first event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn requests(&self) -> Result<Vec<RequestPiece>, TraceError> {
        self.rows("requests", &requests::SPECS, request_piece)
    }

    fn rows<T>(
        &self,
        name: &str,
        specs: &'static [Spec],
        read: ReadRow<T>,
    ) -> Result<Vec<T>, TraceError> {
        let table = TableReader::open(&self.directory, name, specs)?;
        rows(table, name, self.extent, read)
    }
}

/// Reads one row; None where it holds what cannot be meant.
type ReadRow<T> = fn(&Group, usize, Extent) -> Option<T>;

fn rows<T>(
    mut table: TableReader,
    name: &str,
    extent: Extent,
    read: ReadRow<T>,
) -> Result<Vec<T>, TraceError> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(group) = table.next_group()? {
        for row in 0..group.rows {
            all.push(read(&group, row, extent).ok_or_else(|| wrong_row(name, at))?);
            at += 1;
        }
    }
    Ok(all)
}

fn named_path(group: &Group, row: usize, _: Extent) -> Option<NamedPath> {
    Some(NamedPath {
        path: unescaped(group.text(0, row)?),
        label: group.text(1, row)?.to_owned(),
    })
}

fn tree_entry(group: &Group, row: usize, extent: Extent) -> Option<TreeEntry> {
    let path = u32::try_from(group.int(0, row)?).ok()?;
    extent.holds_path(Some(path)).then_some(())?;
    Some(TreeEntry {
        path,
        kind: group
            .text(1, row)?
            .chars()
            .next()
            .filter(|kind| "fdlo".contains(*kind))?,
        size: u64::try_from(group.int(2, row)?).ok()?,
        mode: group.int(3, row).and_then(|mode| u32::try_from(mode).ok()),
        link: group.text(4, row).map(unescaped),
    })
}

fn edge(group: &Group, row: usize, extent: Extent) -> Option<(u64, u64)> {
    let event = u64::try_from(group.int(0, row)?).ok()?;
    let earlier = u64::try_from(group.int(1, row)?).ok()?;
    extent
        .holds_edge(event, earlier)
        .then_some((event, earlier))
}

fn request_piece(group: &Group, row: usize, extent: Extent) -> Option<RequestPiece> {
    let number = |column| {
        group
            .int(column, row)
            .and_then(|value| u64::try_from(value).ok())
    };
    let piece = RequestPiece {
        request: u32::try_from(number(0)?).ok()?,
        label: group.text(1, row)?.to_owned(),
        thread: u32::try_from(number(2)?).ok()?,
        first_event: number(3)?,
        last_event: number(4)?,
        start_ns: number(6)?,
        end_ns: number(7)?,
    };
    extent.holds_piece(&piece).then_some(piece)
}

/// Read a table from memory, without a checksum. Returns the number of its rows.
///
/// # Errors
/// It is damaged, or there is no table of this name.
pub fn count_rows(name: &str, bytes: Vec<u8>) -> Result<usize, TraceError> {
    let open = move |specs| TableReader::memory(name, bytes, specs);
    match name {
        "events" => count_events(open(&EVENTS)?),
        "paths" => count(open(&paths::SPECS)?, name, named_path),
        "tree" => count(open(&tree::SPECS)?, name, tree_entry),
        "edges" => count(open(&edges::SPECS)?, name, edge),
        "requests" => count(open(&requests::SPECS)?, name, request_piece),
        _ => Err(TraceError::asked(
            format!("{name} is no table of a trace"),
            "",
        )),
    }
}

fn count<T>(table: TableReader, name: &str, read: ReadRow<T>) -> Result<usize, TraceError> {
    Ok(rows(table, name, Extent::UNKNOWN, read)?.len())
}

pub(crate) fn wrong_row(name: &str, row: u64) -> TraceError {
    TraceError::damaged(
        format!("{name}.parquet"),
        format!("row {row} holds what cannot be meant"),
        AGAIN,
    )
}

fn read_document(directory: &Path, place: &Path) -> Result<String, TraceError> {
    let file = File::open(place).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            TraceError::damaged(
                directory,
                "is no trace: it has no trace.json",
                "give a folder that `replayer capture` or `replayer import` made",
            )
        } else {
            TraceError::io(place)(error)
        }
    })?;
    let mut bytes = Vec::new();
    file.take(LONGEST_DOCUMENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(TraceError::io(place))?;
    String::from_utf8(bytes).map_err(|_| TraceError::damaged(place, "is no text", AGAIN))
}

/// Whether trace.json is as it was written: its checksum is one over its text, with zeros where it stands itself.
fn check_document(place: &Path, text: &str, document: &Value) -> Result<(), TraceError> {
    let told = document.get("checksum").and_then(Value::as_str);
    let told = told.filter(|told| told.len() == NO_CHECKSUM.len());
    let right =
        told.is_some_and(|told| document_checksum(&text.replacen(told, NO_CHECKSUM, 1)) == told);
    if right {
        return Ok(());
    }
    Err(TraceError::damaged(
        place,
        "has changed since it was written: its checksum differs",
        AGAIN,
    ))
}

fn check(directory: &Path, name: &str, expected: Option<&Value>) -> Result<(), TraceError> {
    let path = directory.join(format!("{name}.parquet"));
    let told = |key: &str| expected.and_then(|expected| expected.get(key));
    let (Some(bytes), Some(sum)) = (
        told("bytes").and_then(Value::as_u64),
        told("sha256").and_then(Value::as_str),
    ) else {
        return Err(TraceError::damaged(
            directory.join("trace.json"),
            format!("holds no checksum of {name}.parquet"),
            AGAIN,
        ));
    };
    if !path.exists() {
        return Err(TraceError::damaged(&path, "is missing", AGAIN));
    }
    let (found, length) = checksum(&path)?;
    if length != bytes || found != sum {
        return Err(TraceError::damaged(
            &path,
            format!(
                "has changed since it was written ({length} bytes, {bytes} expected; its checksum differs)"
            ),
            AGAIN,
        ));
    }
    Ok(())
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
