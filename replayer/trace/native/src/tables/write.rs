//! Writes a table: a Parquet file whose row groups are filled one after the other.

use crate::error::TraceError;
use crate::tables::column::{Column, Layout, Spec};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a row group: what a reader holds in memory at a time (chosen).
pub(crate) const GROUP_ROWS: usize = 128 << 10;
/// zstd levels (chosen): a small trace is read often and kept in repositories, a large one must be written quickly.
const SMALL_LEVEL: i32 = 19;
const LARGE_LEVEL: i32 = 3;
/// Rows of a table that counts as small (chosen: level 19 then takes 30 ms).
const SMALL_ROWS: usize = 4 << 10;

/// Where a table goes.
pub(crate) type Sink = Box<dyn Write + Send>;

/// How the file is written is decided with its first row group: by then it is known whether it is small.
enum Stage {
    Untouched(Sink),
    Open(SerializedFileWriter<Sink>),
    /// An error has closed it.
    Lost,
}

/// A Parquet file that is being written.
pub(crate) struct TableWriter {
    path: PathBuf,
    name: String,
    specs: Vec<Spec>,
    stage: Stage,
    pub(crate) columns: Vec<Column>,
    rows: usize,
    /// Rows of the groups that are written.
    pub(crate) written: u64,
}

impl TableWriter {
    pub(crate) fn create(directory: &Path, name: &str, specs: &[Spec]) -> Result<Self, TraceError> {
        let path = directory.join(format!("{name}.parquet"));
        let file = File::create_new(&path).map_err(TraceError::io(&path))?;
        Ok(Self::to(Box::new(file), name, specs))
    }

    /// Write a table to a file that is open.
    pub(crate) fn to(sink: Sink, name: &str, specs: &[Spec]) -> Self {
        Self {
            path: PathBuf::from(format!("{name}.parquet")),
            name: name.to_owned(),
            specs: specs.to_vec(),
            stage: Stage::Untouched(sink),
            columns: specs.iter().map(|&spec| Column::new(spec)).collect(),
            rows: 0,
            written: 0,
        }
    }

    /// Say that every column has been given one more value; writes a row group when it is full.
    pub(crate) fn end_row(&mut self) -> Result<(), TraceError> {
        self.rows += 1;
        if self.rows >= GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Say that every column has been given so many more values, and write them as a row group.
    pub(crate) fn end_rows(&mut self, rows: usize) -> Result<(), TraceError> {
        self.rows += rows;
        self.flush()
    }

    /// Write the rows that wait.
    pub(crate) fn flush(&mut self) -> Result<(), TraceError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.write_group()
            .map_err(TraceError::parquet(&self.path))?;
        self.written += u64::try_from(self.rows).unwrap_or(0);
        self.rows = 0;
        Ok(())
    }

    /// The writer, opened where this is the first row group.
    fn writer(&mut self) -> Result<&mut SerializedFileWriter<Sink>> {
        if let Stage::Untouched(_) = self.stage {
            let level = if self.rows <= SMALL_ROWS {
                SMALL_LEVEL
            } else {
                LARGE_LEVEL
            };
            if let Stage::Untouched(sink) = std::mem::replace(&mut self.stage, Stage::Lost) {
                self.stage = Stage::Open(open(sink, &self.name, &self.specs, level)?);
            }
        }
        match &mut self.stage {
            Stage::Open(writer) => Ok(writer),
            Stage::Untouched(_) | Stage::Lost => {
                Err(ParquetError::General("the table is closed".to_owned()))
            }
        }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut columns = std::mem::take(&mut self.columns);
        let mut group = self.writer()?.next_row_group()?;
        for column in &mut columns {
            if let Some(mut writer) = group.next_column()? {
                column.write(writer.untyped())?;
                writer.close()?;
            }
        }
        group.close()?;
        self.columns = columns;
        Ok(())
    }

    /// Write what waits and the footer. Returns the number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, TraceError> {
        self.flush()?;
        self.close().map_err(TraceError::parquet(&self.path))?;
        Ok(self.written)
    }

    fn close(&mut self) -> Result<()> {
        self.writer()?;
        match std::mem::replace(&mut self.stage, Stage::Lost) {
            Stage::Open(writer) => writer.close().map(drop),
            Stage::Untouched(_) | Stage::Lost => Ok(()),
        }
    }
}

fn open(file: Sink, name: &str, specs: &[Spec], level: i32) -> Result<SerializedFileWriter<Sink>> {
    let fields = specs
        .iter()
        .map(|spec| spec.schema())
        .collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_data_page_size_limit(16 << 20)
        .set_created_by("replayer".to_owned());
    for spec in specs {
        let path = ColumnPath::from(spec.name);
        properties = match spec.layout {
            Layout::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Layout::Plain => properties.set_column_dictionary_enabled(path, false),
            Layout::Delta => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, spec.encoding()),
        };
    }
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}
