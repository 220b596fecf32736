//! Reads tables from the first row to the last in constant memory, many readers at once over one open file.
//!
//! A batch of each wanted column is decoded at a time, so memory does not depend on the size of row groups.

use crate::error::TraceError;
use crate::tables::column::{Kind, Spec};
use bytes::Bytes;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{
    ChunkReader, FileReader, Length, RowGroupReader, SerializedFileReader,
};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are decoded at a time (chosen: 20 columns of them fit into a second-level cache).
const BATCH_ROWS: usize = 8 << 10;
const MOST_GROUP_ROWS: i64 = 1 << 20;

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

    fn reader(&self) -> Result<SerializedFileReader<Positioned>, TraceError> {
        guarded(&self.path, || {
            SerializedFileReader::new(self.source.clone())
        })
    }

    /// The first row of each row group, and behind them the number of rows.
    pub(crate) fn group_bounds(&self) -> Result<Vec<u64>, TraceError> {
        let mut bounds = vec![0_u64];
        for group in self.reader()?.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            bounds.push(bounds.last().map_or(0, |end| end.saturating_add(rows)));
        }
        Ok(bounds)
    }

    pub(crate) fn rows_count(&self) -> Result<u64, TraceError> {
        Ok(self.group_bounds()?.last().copied().unwrap_or(0))
    }

    /// Begin to read; columns whose bit is not in `wanted` are left out.
    pub(crate) fn rows(&self, specs: &'static [Spec], wanted: u32) -> Result<Rows, TraceError> {
        let reader = self.reader()?;
        let Some(places) = places(&reader, specs) else {
            let message = "its columns do not match the format of the trace";
            return Err(TraceError::broken(&self.path, message));
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

/// Call the Parquet library; what it cannot read is an error, never a panic.
fn guarded<T>(path: &Path, call: impl FnOnce() -> ParquetResult<T>) -> Result<T, TraceError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(TraceError::parquet(path)),
        Err(_) => Err(TraceError::broken(path, "is not a readable Parquet file")),
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
        let rows = self.reader.metadata().row_group(self.next_group).num_rows();
        if !(0..=MOST_GROUP_ROWS).contains(&rows) {
            let message =
                format!("a row group has {rows} rows, at most {MOST_GROUP_ROWS} are allowed");
            return Err(TraceError::broken(&self.path, message));
        }
        Ok(usize::try_from(rows).unwrap_or(0))
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
                return Err(TraceError::broken(&self.path, message));
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

    /// The number in a column that must have one. None where it does not fit.
    pub(crate) fn number<N: TryFrom<i64>>(&mut self, column: usize) -> Option<N> {
        N::try_from(self.int(column)?).ok()
    }

    /// The number in a column that may have one. An error where it does not fit.
    pub(crate) fn optional<N: TryFrom<i64>>(
        &mut self,
        column: usize,
    ) -> Result<Option<N>, N::Error> {
        self.int(column).map(N::try_from).transpose()
    }

    pub(crate) fn string(&mut self, column: usize) -> Option<&str> {
        std::str::from_utf8(self.text(column)?).ok()
    }

    /// An error that says which row it was.
    pub(crate) fn wrong(&self) -> TraceError {
        let row = self.row.saturating_sub(1);
        TraceError::broken(&self.path, format!("row {row} holds an invalid value"))
    }
}

/// Where a file has each column; None where it has others, or lacks one that must have values.
fn places(reader: &dyn FileReader, specs: &[Spec]) -> Option<Vec<Option<usize>>> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let fits = |column: &ColumnDescriptor, spec: &Spec| {
        column.physical_type() == spec.physical()
            && column.max_rep_level() == 0
            && column.max_def_level() == i16::from(spec.nullable)
    };
    let mut columns = schema.columns().iter().enumerate().peekable();
    let mut places = Vec::with_capacity(specs.len());
    for spec in specs {
        let found = columns.next_if(|(_, column)| column.name() == spec.name);
        match found {
            Some((index, column)) if fits(column, spec) => places.push(Some(index)),
            None if spec.nullable => places.push(None),
            _ => return None,
        }
    }
    columns.next().is_none().then_some(places)
}

fn column_reader(group: &dyn RowGroupReader, index: usize) -> ParquetResult<ColumnReader> {
    let description = group.metadata().schema_descr().column(index);
    let pages = CheckedPages(group.get_column_page_reader(index)?);
    Ok(get_column_reader(description, Box::new(pages)))
}

/// Refuses dictionaries that claim more values than they have bytes: the library would allocate them all.
struct CheckedPages(Box<dyn PageReader>);

fn checked(page: Page) -> ParquetResult<Page> {
    match &page {
        Page::DictionaryPage {
            buf, num_values, ..
        } if usize::try_from(*num_values).map_or(true, |values| values > buf.len()) => {
            let message = format!(
                "a dictionary of {} bytes claims {num_values} values",
                buf.len()
            );
            Err(ParquetError::General(message))
        }
        _ => Ok(page),
    }
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<ParquetResult<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        self.0.get_next_page()?.map(checked).transpose()
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.0.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::Encoding;

    fn dictionary(bytes: usize, num_values: u32) -> Page {
        Page::DictionaryPage {
            buf: vec![0; bytes].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        }
    }

    #[test]
    fn a_dictionary_that_claims_more_than_it_has_is_refused() {
        assert!(checked(dictionary(32, 32)).is_ok());
        let refused = checked(dictionary(32, u32::MAX)).unwrap_err().to_string();
        assert!(refused.contains("a dictionary of 32 bytes claims 4294967295 values"));
        assert!(checked(dictionary(32, 33)).is_err());
    }
}
