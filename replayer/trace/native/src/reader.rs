//! Opens a trace folder: nothing of it is believed before its version and its checksums are right.

use crate::error::TraceError;
use crate::folder::{FORMAT_VERSION, TABLES, checksum};
use crate::op::Op;
use crate::tables::events::{Event, SPECS as EVENTS};
use crate::tables::read::{Group, TableReader};
use crate::tables::text::unescaped;
use crate::tables::{edges, paths, requests, tree};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer trace.json is none (chosen).
const LONGEST_DOCUMENT_BYTES: u64 = 16 << 20;
const AGAIN: &str = "the trace is damaged: import or copy it again";

/// A trace folder whose files are what they were when it was written.
#[derive(Debug)]
pub struct Trace {
    directory: PathBuf,
    text: String,
}

impl Trace {
    /// Open a folder and check its version and the checksum of every table.
    ///
    /// # Errors
    /// It is no trace, of another version, or damaged.
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        let place = directory.join("trace.json");
        let text = read_document(directory, &place)?;
        let document: Value = serde_json::from_str(&text)
            .map_err(|error| TraceError::damaged(&place, format!("is no JSON: {error}"), AGAIN))?;
        match document.get("format").and_then(Value::as_u64) {
            Some(FORMAT_VERSION) => {}
            Some(other) => {
                return Err(TraceError::damaged(
                    &place,
                    format!("has trace format {other}, this replayer reads {FORMAT_VERSION}"),
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
        Ok(Self {
            directory: directory.to_owned(),
            text,
        })
    }

    /// The text of its trace.json.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.text
    }

    /// Its events, a row group at a time.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn events(&self) -> Result<Events, TraceError> {
        Ok(Events {
            table: TableReader::open(&self.directory, "events", &EVENTS)?,
        })
    }

    /// Paths by row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn paths(&self) -> Result<Vec<NamedPath>, TraceError> {
        self.rows("paths", &paths::SPECS, |group, row| {
            Some(NamedPath {
                path: unescaped(group.text(0, row)?),
                label: group.text(1, row)?.to_owned(),
            })
        })
    }

    /// What must be there before, parents before children.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn tree(&self) -> Result<Vec<TreeEntry>, TraceError> {
        self.rows("tree", &tree::SPECS, |group, row| {
            Some(TreeEntry {
                path: u32::try_from(group.int(0, row)?).ok()?,
                kind: group.text(1, row)?.chars().next()?,
                size: u64::try_from(group.int(2, row)?).ok()?,
                mode: group.int(3, row).and_then(|mode| u32::try_from(mode).ok()),
                link: group.text(4, row).map(unescaped),
            })
        })
    }

    /// Which event waits for which: pairs of (event, earlier event), by event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn edges(&self) -> Result<Vec<(u64, u64)>, TraceError> {
        self.rows("edges", &edges::SPECS, |group, row| {
            let event = u64::try_from(group.int(0, row)?).ok()?;
            let earlier = u64::try_from(group.int(1, row)?).ok()?;
            (earlier < event).then_some((event, earlier))
        })
    }

    /// Pieces of threads, by their first event.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn requests(&self) -> Result<Vec<RequestPiece>, TraceError> {
        self.rows("requests", &requests::SPECS, |group, row| {
            let number = |column| {
                group
                    .int(column, row)
                    .and_then(|value| u64::try_from(value).ok())
            };
            Some(RequestPiece {
                request: u32::try_from(number(0)?).ok()?,
                label: group.text(1, row)?.to_owned(),
                thread: u32::try_from(number(2)?).ok()?,
                first_event: number(3)?,
                last_event: number(4)?,
                start_ns: number(6)?,
                end_ns: number(7)?,
            })
        })
    }

    fn rows<T>(
        &self,
        name: &str,
        specs: &'static [crate::tables::column::Spec],
        read: impl Fn(&Group, usize) -> Option<T>,
    ) -> Result<Vec<T>, TraceError> {
        let mut table = TableReader::open(&self.directory, name, specs)?;
        let mut all = Vec::new();
        while let Some(group) = table.next_group()? {
            for row in 0..group.rows {
                all.push(
                    read(&group, row).ok_or_else(|| wrong_row(&self.directory, name, all.len()))?,
                );
            }
        }
        Ok(all)
    }
}

fn wrong_row(directory: &Path, name: &str, row: usize) -> TraceError {
    TraceError::damaged(
        directory.join(format!("{name}.parquet")),
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

/// Read a table `events` from memory, without a checksum. Returns the number of events.
///
/// # Errors
/// It is damaged.
pub fn count_events(bytes: Vec<u8>) -> Result<u64, TraceError> {
    let mut events = Events {
        table: TableReader::memory("events", bytes, &EVENTS)?,
    };
    let mut count = 0;
    while let Some(group) = events.next_group()? {
        count += u64::try_from(group.len()).unwrap_or(0);
    }
    Ok(count)
}

/// Events that are being read.
pub struct Events {
    table: TableReader,
}

impl Events {
    /// The events of the next row group, or None after the last.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn next_group(&mut self) -> Result<Option<Vec<Event>>, TraceError> {
        self.table.next_group()?.as_ref().map(events).transpose()
    }

    /// The events of a row group, or None where there is none of this number.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn group(&self, number: usize) -> Result<Option<Vec<Event>>, TraceError> {
        self.table.group(number)?.as_ref().map(events).transpose()
    }

    /// How many events each row group has.
    #[must_use]
    pub fn group_lengths(&self) -> Vec<u64> {
        self.table.group_lengths()
    }
}

fn events(group: &Group) -> Result<Vec<Event>, TraceError> {
    let mut events = Vec::with_capacity(group.rows);
    for row in 0..group.rows {
        let event = event(group, row).ok_or_else(|| {
            TraceError::damaged(
                "events.parquet",
                format!("row {row} of a group is no event"),
                AGAIN,
            )
        })?;
        events.push(event);
    }
    Ok(events)
}

fn event(group: &Group, row: usize) -> Option<Event> {
    let number = |column: usize| -> Result<Option<u32>, std::num::TryFromIntError> {
        group.int(column, row).map(u32::try_from).transpose()
    };
    Some(Event {
        thread: number(0).ok()??,
        start_ns: group.int(1, row)?,
        duration_ns: group.int(2, row),
        gap_ns: group.int(3, row)?,
        op: Op::from_name(group.text(4, row)?)?,
        path: number(5).ok()?,
        to_path: number(6).ok()?,
        file: number(7).ok()?,
        to_file: number(8).ok()?,
        flags: group.int(9, row),
        mode: group.int(10, row),
        size: group.int(11, row),
        offset: group.int(12, row),
        entries: group.int(13, row),
        uid: group.int(14, row),
        gid: group.int(15, row),
        atime_ns: group.int(16, row),
        mtime_ns: group.int(17, row),
        text: group.text(18, row).map(unescaped),
        result: group.int(19, row)?,
    })
}
