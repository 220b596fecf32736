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
/// Levels of zstd by the most rows that they are for (measured: against 6, 12 saves 1 % and takes 3 ms more for 4,096 rows,
/// 19 saves 3 % and takes 25 ms more; a large table must be written quickly).
const LEVELS: [(usize, i32); 2] = [(4 << 10, 12), (16 << 10, 6)];
const LARGE_LEVEL: i32 = 3;

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
    stage: Stage,
    pub(crate) columns: Vec<Column>,
    /// Which columns the file has.
    kept: Vec<bool>,
    rows: usize,
    small: Vec<i32>,
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
            stage: Stage::Untouched(sink),
            columns: specs.iter().map(|&spec| Column::new(spec)).collect(),
            kept: vec![true; specs.len()],
            rows: 0,
            small: Vec::new(),
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

    /// Say that every column has been given so many more values, and that there will be no more.
    pub(crate) fn finish_rows(mut self, rows: usize) -> Result<u64, TraceError> {
        self.rows += rows;
        self.finish()
    }

    /// Say that every column has been given so many more values, and write them as a row group.
    pub(crate) fn end_rows(&mut self, rows: usize) -> Result<(), TraceError> {
        self.rows += rows;
        self.flush()
    }

    /// Say that these rows are all that there will be: columns without any value are left out of the file.
    fn drop_blank(&mut self) {
        if matches!(self.stage, Stage::Untouched(_)) && self.rows > 0 {
            self.kept = self
                .columns
                .iter()
                .map(|column| !column.is_blank())
                .collect();
        }
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
            let small = LEVELS.iter().find(|&&(most, _)| self.rows <= most);
            let level = small.map_or(LARGE_LEVEL, |&(_, level)| level);
            if let Stage::Untouched(sink) = std::mem::replace(&mut self.stage, Stage::Lost) {
                let kept = self.columns.iter().zip(&self.kept);
                let columns: Vec<&Column> = kept
                    .filter(|&(_, &kept)| kept)
                    .map(|(column, _)| column)
                    .collect();
                self.stage = Stage::Open(open(sink, &self.name, &columns, level)?);
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
        self.writer()?;
        let rows = self.rows;
        let mut columns = std::mem::take(&mut self.columns);
        let kept = std::mem::take(&mut self.kept);
        let mut small = std::mem::take(&mut self.small);
        let mut group = self.writer()?.next_row_group()?;
        for (column, &kept) in columns.iter_mut().zip(&kept) {
            if !kept {
                column.clear();
            } else if let Some(mut writer) = group.next_column()? {
                column.write(writer.untyped(), rows, &mut small)?;
                writer.close()?;
            }
        }
        group.close()?;
        self.columns = columns;
        self.kept = kept;
        self.small = small;
        Ok(())
    }

    /// Write what waits and the footer. Returns the number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, TraceError> {
        self.drop_blank();
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

fn open(
    file: Sink,
    name: &str,
    columns: &[&Column],
    level: i32,
) -> Result<SerializedFileWriter<Sink>> {
    let fields = columns
        .iter()
        .map(|column| column.spec().schema())
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
    for column in columns {
        let spec = column.spec();
        let path = ColumnPath::from(spec.name);
        let dictionary = column.layout() == Layout::Dictionary;
        properties = properties.set_column_dictionary_enabled(path.clone(), dictionary);
        if !dictionary {
            properties = properties.set_column_encoding(path.clone(), column.encoding());
        }
        if column.is_tiny() {
            properties = properties.set_column_compression(path, Compression::UNCOMPRESSED);
        }
    }
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}
