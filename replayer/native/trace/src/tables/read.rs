//! Reads tables: a row group at a time, with every column checked against what the format says.

use crate::error::TraceError;
use crate::tables::column::{Kind, Spec};
use crate::tables::pages::column_reader;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The most rows that a row group may have: bounds what a reader holds.
const MOST_GROUP_ROWS: i64 = 1 << 20;

/// Values of a column in a row group.
#[derive(Debug)]
pub(crate) enum Values {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<ByteArray>>),
    /// The file has no such column: no row has a value.
    Blank,
}

impl Values {
    pub(crate) fn int(&self, row: usize) -> Option<i64> {
        match self {
            Self::Ints(values) => values.get(row).copied().flatten(),
            Self::Texts(_) | Self::Blank => None,
        }
    }

    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Texts(values) => {
                let bytes = values.get(row)?.as_ref()?;
                std::str::from_utf8(bytes.data()).ok()
            }
            Self::Ints(_) | Self::Blank => None,
        }
    }
}

/// A row group in memory.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Values>,
}

impl Group {
    pub(crate) fn int(&self, column: usize, row: usize) -> Option<i64> {
        self.columns.get(column)?.int(row)
    }

    pub(crate) fn text(&self, column: usize, row: usize) -> Option<&str> {
        self.columns.get(column)?.text(row)
    }
}

/// A table that is being read.
pub(crate) struct TableReader {
    path: PathBuf,
    reader: Box<dyn FileReader>,
    specs: &'static [Spec],
    /// Where the file has each column, if it has it.
    places: Vec<Option<usize>>,
    next_group: usize,
}

impl TableReader {
    pub(crate) fn open(
        directory: &Path,
        name: &str,
        specs: &'static [Spec],
    ) -> Result<Self, TraceError> {
        let path = directory.join(format!("{name}.parquet"));
        let file = File::open(&path).map_err(TraceError::io(&path))?;
        let reader = guarded(&path, || SerializedFileReader::new(file))?;
        Self::over(path, Box::new(reader), specs)
    }

    /// Read a table from memory.
    pub(crate) fn memory(
        name: &str,
        bytes: Vec<u8>,
        specs: &'static [Spec],
    ) -> Result<Self, TraceError> {
        let path = PathBuf::from(name);
        let reader = guarded(&path, || {
            SerializedFileReader::new(bytes::Bytes::from(bytes))
        })?;
        Self::over(path, Box::new(reader), specs)
    }

    fn over(
        path: PathBuf,
        reader: Box<dyn FileReader>,
        specs: &'static [Spec],
    ) -> Result<Self, TraceError> {
        let places = places(&*reader, specs).ok_or_else(|| {
            damaged(
                &path,
                "its columns are not those that the format of the trace asks for",
            )
        })?;
        Ok(Self {
            path,
            reader,
            specs,
            places,
            next_group: 0,
        })
    }

    fn damaged(&self, message: &str) -> TraceError {
        damaged(&self.path, message)
    }

    /// The next row group, or None after the last.
    pub(crate) fn next_group(&mut self) -> Result<Option<Group>, TraceError> {
        let group = self.group(self.next_group)?;
        self.next_group += usize::from(group.is_some());
        Ok(group)
    }

    /// How many rows each row group has.
    pub(crate) fn group_lengths(&self) -> Vec<u64> {
        let groups = self.reader.metadata().row_groups().iter();
        groups
            .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
            .collect()
    }

    /// A row group by its number, or None where there is none.
    pub(crate) fn group(&self, number: usize) -> Result<Option<Group>, TraceError> {
        if number >= self.reader.num_row_groups() {
            return Ok(None);
        }
        let group = guarded(&self.path, || self.reader.get_row_group(number))?;
        let rows = group.metadata().num_rows();
        if !(0..=MOST_GROUP_ROWS).contains(&rows) {
            return Err(self.damaged(&format!(
                "a row group has {rows} rows, at most {MOST_GROUP_ROWS} are allowed"
            )));
        }
        let rows = usize::try_from(rows).unwrap_or(0);
        let mut columns = Vec::with_capacity(self.specs.len());
        for (&spec, &place) in self.specs.iter().zip(&self.places) {
            let Some(index) = place else {
                columns.push(Values::Blank);
                continue;
            };
            let values = guarded(&self.path, || read_column(&*group, index, spec, rows))?;
            let Some(values) = values else {
                return Err(self.damaged(&format!(
                    "column {} has not the {rows} rows it should have",
                    spec.name
                )));
            };
            columns.push(values);
        }
        Ok(Some(Group { rows, columns }))
    }
}

fn damaged(path: &Path, message: &str) -> TraceError {
    TraceError::damaged(
        path,
        message,
        "the trace is damaged: import or copy it again",
    )
}

/// Where a file has each column; None where it has others, or lacks one that must have values.
pub(crate) fn places(reader: &dyn FileReader, specs: &[Spec]) -> Option<Vec<Option<usize>>> {
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

/// Call the Parquet library; what it cannot read is an error, never a panic.
fn guarded<T>(
    path: &Path,
    call: impl FnOnce() -> parquet::errors::Result<T>,
) -> Result<T, TraceError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(TraceError::parquet(path)),
        Err(_) => Err(damaged(path, "is no Parquet file that can be read")),
    }
}

/// All values of a column; None where there are not as many as there should be.
fn read_column(
    group: &dyn RowGroupReader,
    index: usize,
    spec: Spec,
    rows: usize,
) -> parquet::errors::Result<Option<Values>> {
    let mut defined: Vec<i16> = Vec::new();
    let levels = spec.nullable.then_some(&mut defined);
    let values = match column_reader(group, index)? {
        ColumnReader::Int32ColumnReader(mut reader) => {
            let mut ints: Vec<i32> = Vec::new();
            reader.read_records(rows, levels, None, &mut ints)?;
            Values::Ints(spread(
                ints.into_iter().map(i64::from),
                &defined,
                spec,
                rows,
            ))
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut ints: Vec<i64> = Vec::new();
            reader.read_records(rows, levels, None, &mut ints)?;
            Values::Ints(spread(ints.into_iter(), &defined, spec, rows))
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let mut texts: Vec<ByteArray> = Vec::new();
            reader.read_records(rows, levels, None, &mut texts)?;
            Values::Texts(spread(texts.into_iter(), &defined, spec, rows))
        }
        _ => return Ok(None),
    };
    let count = match &values {
        Values::Ints(values) => values.len(),
        Values::Texts(values) => values.len(),
        Values::Blank => rows,
    };
    let fits = (spec.kind == Kind::Text) == matches!(values, Values::Texts(_));
    Ok((count == rows && fits).then_some(values))
}

/// Values with their nulls in place.
fn spread<T>(
    values: impl Iterator<Item = T>,
    defined: &[i16],
    spec: Spec,
    rows: usize,
) -> Vec<Option<T>> {
    let mut values = values;
    if spec.nullable {
        defined
            .iter()
            .take(rows)
            .map(|&level| if level > 0 { values.next() } else { None })
            .collect()
    } else {
        values.take(rows).map(Some).collect()
    }
}
