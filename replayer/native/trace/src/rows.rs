//! Reads tables from the first row to the last in constant memory, many readers at once over one open file.
//!
//! A batch of each wanted column is decoded at a time, so memory does not depend on the size of row groups.

use crate::error::TraceError;
use crate::tables::column::{Kind, Spec};
use crate::tables::pages::column_reader;
use crate::tables::read::places;
use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are decoded at a time (chosen: 20 columns of them fit into a second-level cache).
const BATCH_ROWS: usize = 8 << 10;
const AGAIN: &str = "the trace is damaged: import or copy it again";

/// A file that is read at positions of each reader's own.
#[derive(Debug, Clone)]
struct Positioned {
    file: Arc<File>,
    len: u64,
}

/// A reader of it, from some position on.
struct From {
    file: Arc<File>,
    offset: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += u64::try_from(read).unwrap_or(0);
        Ok(read)
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(From {
            file: Arc::clone(&self.file),
            offset: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = u64::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length));
        if end.is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are beyond the end"
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A table whose file is open: read as often, and by as many at once, as one likes, wherever the readers may look.
#[derive(Debug, Clone)]
pub(crate) struct OpenTable {
    path: PathBuf,
    source: Positioned,
}

impl OpenTable {
    pub(crate) fn open(directory: &Path, name: &str) -> Result<Self, TraceError> {
        let path = directory.join(format!("{name}.parquet"));
        let file = File::open(&path).map_err(TraceError::io(&path))?;
        let len = file.metadata().map_err(TraceError::io(&path))?.len();
        let file = Arc::new(file);
        Ok(Self {
            path,
            source: Positioned { file, len },
        })
    }

    /// Begin to read; columns whose bit is not in `wanted` are left out.
    pub(crate) fn rows(&self, specs: &'static [Spec], wanted: u32) -> Result<Rows, TraceError> {
        let reader = guarded(&self.path, || {
            SerializedFileReader::new(self.source.clone())
        })?;
        let Some(places) = places(&reader, specs) else {
            return Err(damaged(
                &self.path,
                "its columns are not those that the format of the trace asks for",
            ));
        };
        Ok(Rows {
            path: self.path.clone(),
            reader,
            wanted,
            places,
            batches: specs.iter().map(|spec| Batch::new(*spec)).collect(),
            columns: Vec::new(),
            next_group: 0,
            left_in_group: 0,
            left_in_batch: 0,
            batch_number: 0,
            row: 0,
        })
    }
}

fn damaged(path: &Path, message: &str) -> TraceError {
    TraceError::damaged(path, message, AGAIN)
}

/// Call the Parquet library; what it cannot read is an error, never a panic.
fn guarded<T>(path: &Path, call: impl FnOnce() -> ParquetResult<T>) -> Result<T, TraceError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(TraceError::parquet(path)),
        Err(_) => Err(damaged(path, "is no Parquet file that can be read")),
    }
}

/// The next values of a column.
struct Batch {
    spec: Spec,
    small: Vec<i32>,
    ints: Vec<i64>,
    texts: Vec<ByteArray>,
    defined: Vec<i16>,
    /// The next row and the next value.
    at: usize,
    value: usize,
}

impl Batch {
    fn new(spec: Spec) -> Self {
        Self {
            spec,
            small: Vec::new(),
            ints: Vec::new(),
            texts: Vec::new(),
            defined: Vec::new(),
            at: 0,
            value: 0,
        }
    }

    fn clear(&mut self) {
        self.small.clear();
        self.ints.clear();
        self.texts.clear();
        self.defined.clear();
        self.at = 0;
        self.value = 0;
    }

    /// Decode so many rows; false where there are not as many.
    fn fill(&mut self, column: &mut ColumnReader, rows: usize) -> ParquetResult<bool> {
        self.clear();
        let defined = self.spec.nullable.then_some(&mut self.defined);
        let (records, values, _) = match (self.spec.kind, column) {
            (Kind::Int32, ColumnReader::Int32ColumnReader(reader)) => {
                reader.read_records(rows, defined, None, &mut self.small)?
            }
            (Kind::Int64, ColumnReader::Int64ColumnReader(reader)) => {
                reader.read_records(rows, defined, None, &mut self.ints)?
            }
            (Kind::Text, ColumnReader::ByteArrayColumnReader(reader)) => {
                reader.read_records(rows, defined, None, &mut self.texts)?
            }
            _ => return Ok(false),
        };
        let there = if self.spec.nullable {
            self.defined.iter().filter(|level| **level > 0).count()
        } else {
            rows
        };
        let given = self.small.len() + self.ints.len() + self.texts.len();
        Ok(records == rows && values == there && given == there)
    }

    /// The place of the next row's value, if it has one.
    fn advance(&mut self) -> Option<usize> {
        if self.spec.nullable {
            let level = self.defined.get(self.at).copied().unwrap_or(0);
            self.at += 1;
            if level == 0 {
                return None;
            }
        }
        self.value += 1;
        Some(self.value - 1)
    }

    fn int(&mut self) -> Option<i64> {
        let at = self.advance()?;
        if self.spec.kind == Kind::Int32 {
            self.small.get(at).copied().map(i64::from)
        } else {
            self.ints.get(at).copied()
        }
    }

    fn text(&mut self) -> Option<&[u8]> {
        let at = self.advance()?;
        self.texts.get(at).map(ByteArray::data)
    }
}

/// A table that is being read. After `advance`, each wanted column is asked once for its value.
pub(crate) struct Rows {
    path: PathBuf,
    reader: SerializedFileReader<Positioned>,
    wanted: u32,
    /// Where the file has each column, if it has it.
    places: Vec<Option<usize>>,
    batches: Vec<Batch>,
    columns: Vec<Option<ColumnReader>>,
    next_group: usize,
    left_in_group: usize,
    left_in_batch: usize,
    batch_number: u64,
    row: u64,
}

impl Rows {
    /// Go to the next row. Returns its number, None after the last.
    pub(crate) fn advance(&mut self) -> Result<Option<u64>, TraceError> {
        while self.left_in_batch == 0 {
            if self.left_in_group == 0 && !self.open_group()? {
                return Ok(None);
            }
            self.decode()?;
        }
        self.left_in_batch -= 1;
        self.row += 1;
        Ok(Some(self.row - 1))
    }

    /// Before the first row only: begin with the row group that holds this row.
    pub(crate) fn skip_to(&mut self, row: u64) -> Result<(), TraceError> {
        while self.next_group < self.reader.num_row_groups() {
            let rows = self.rows_of_next()?;
            let end = self.row.saturating_add(u64::try_from(rows).unwrap_or(0));
            if end > row {
                return Ok(());
            }
            self.row = end;
            self.next_group += 1;
        }
        Ok(())
    }

    fn rows_of_next(&self) -> Result<usize, TraceError> {
        let metadata = guarded(&self.path, || {
            Ok(self.reader.metadata().row_group(self.next_group).num_rows())
        })?;
        usize::try_from(metadata)
            .map_err(|_| damaged(&self.path, "a row group has less than no rows"))
    }

    fn open_group(&mut self) -> Result<bool, TraceError> {
        if self.next_group >= self.reader.num_row_groups() {
            return Ok(false);
        }
        self.left_in_group = self.rows_of_next()?;
        let group = guarded(&self.path, || self.reader.get_row_group(self.next_group))?;
        self.columns.clear();
        for (number, place) in self.places.iter().enumerate() {
            let column = match place {
                Some(index) if self.wanted & 1 << number != 0 => {
                    Some(guarded(&self.path, || column_reader(&*group, *index))?)
                }
                _ => None,
            };
            self.columns.push(column);
        }
        self.next_group += 1;
        Ok(true)
    }

    fn decode(&mut self) -> Result<(), TraceError> {
        let rows = self.left_in_group.min(BATCH_ROWS);
        for (batch, column) in self.batches.iter_mut().zip(&mut self.columns) {
            let Some(column) = column else {
                continue;
            };
            if !guarded(&self.path, || batch.fill(column, rows))? {
                let message = format!("column {} has not all its rows", batch.spec.name);
                return Err(damaged(&self.path, &message));
            }
        }
        self.left_in_group -= rows;
        self.left_in_batch = rows;
        self.batch_number += 1;
        Ok(())
    }

    /// The number of the row's batch: what was said of texts of another one is not true any more.
    pub(crate) fn batch(&self) -> u64 {
        self.batch_number
    }

    pub(crate) fn int(&mut self, column: usize) -> Option<i64> {
        self.batches.get_mut(column)?.int()
    }

    pub(crate) fn text(&mut self, column: usize) -> Option<&[u8]> {
        self.batches.get_mut(column)?.text()
    }

    /// An error that says which row it was.
    pub(crate) fn wrong(&self) -> TraceError {
        let row = self.row.saturating_sub(1);
        damaged(&self.path, &format!("row {row} holds what cannot be meant"))
    }
}
