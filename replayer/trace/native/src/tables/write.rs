//! Writes a table: a Parquet file whose row groups are filled one after the other.

use crate::error::TraceError;
use crate::tables::column::{Column, Layout, Spec};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a row group: what a reader holds in memory at a time (chosen).
pub(crate) const GROUP_ROWS: usize = 128 << 10;
const COMPRESSION_LEVEL: i32 = 3;

/// Where a table goes.
pub(crate) type Sink = Box<dyn Write + Send>;

/// A Parquet file that is being written.
pub(crate) struct TableWriter {
    path: PathBuf,
    writer: SerializedFileWriter<Sink>,
    pub(crate) columns: Vec<Column>,
    rows: usize,
    /// Rows of the groups that are written.
    pub(crate) written: u64,
}

impl TableWriter {
    pub(crate) fn create(directory: &Path, name: &str, specs: &[Spec]) -> Result<Self, TraceError> {
        let path = directory.join(format!("{name}.parquet"));
        let file = File::create_new(&path).map_err(TraceError::io(&path))?;
        Self::to(Box::new(file), name, specs)
    }

    /// Write a table to a file that is open.
    pub(crate) fn to(sink: Sink, name: &str, specs: &[Spec]) -> Result<Self, TraceError> {
        let path = PathBuf::from(format!("{name}.parquet"));
        let writer = open(sink, name, specs).map_err(TraceError::parquet(&path))?;
        Ok(Self {
            path,
            writer,
            columns: specs.iter().map(|&spec| Column::new(spec)).collect(),
            rows: 0,
            written: 0,
        })
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

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut writer) = group.next_column()? {
                column.write(writer.untyped())?;
                writer.close()?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Write what waits and the footer. Returns the number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, TraceError> {
        self.flush()?;
        self.writer
            .close()
            .map_err(TraceError::parquet(&self.path))?;
        Ok(self.written)
    }
}

fn open(file: Sink, name: &str, specs: &[Spec]) -> Result<SerializedFileWriter<Sink>> {
    let fields = specs
        .iter()
        .map(|spec| spec.schema())
        .collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(COMPRESSION_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_data_page_size_limit(16 << 20)
        .set_created_by("replayer".to_owned());
    for spec in specs {
        let path = ColumnPath::from(spec.name);
        properties = match spec.layout {
            Layout::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Layout::Delta => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, spec.encoding()),
        };
    }
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}
