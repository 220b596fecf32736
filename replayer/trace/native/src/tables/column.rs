//! One column of a table that is being filled.

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::Type;
use std::sync::Arc;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int32,
    Int64,
    Text,
}

/// How a column is laid out before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Dictionary,
    Delta,
    Plain,
}

/// Name, type and layout of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    pub(crate) layout: Layout,
}

impl Spec {
    pub(crate) const fn new(name: &'static str, kind: Kind, layout: Layout) -> Self {
        Self {
            name,
            kind,
            nullable: false,
            layout,
        }
    }

    pub(crate) const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    pub(crate) fn encoding(self) -> Encoding {
        match self.kind {
            Kind::Int32 | Kind::Int64 => Encoding::DELTA_BINARY_PACKED,
            Kind::Text => Encoding::DELTA_BYTE_ARRAY,
        }
    }

    pub(crate) fn physical(self) -> Physical {
        match self.kind {
            Kind::Int32 => Physical::INT32,
            Kind::Int64 => Physical::INT64,
            Kind::Text => Physical::BYTE_ARRAY,
        }
    }

    pub(crate) fn schema(self) -> Result<Arc<Type>> {
        let logical = (self.kind == Kind::Text).then_some(LogicalType::String);
        let repetition = if self.nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        Type::primitive_type_builder(self.name, self.physical())
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    }
}

/// Values of one row group.
#[derive(Debug)]
pub(crate) struct Column {
    spec: Spec,
    ints: Vec<i64>,
    texts: Vec<ByteArray>,
    defined: Vec<i16>,
}

impl Column {
    pub(crate) fn new(spec: Spec) -> Self {
        Self {
            spec,
            ints: Vec::new(),
            texts: Vec::new(),
            defined: Vec::new(),
        }
    }

    /// Append a number, or nothing.
    pub(crate) fn push(&mut self, value: Option<i64>) {
        if self.spec.nullable {
            self.defined.push(i16::from(value.is_some()));
        }
        match value {
            Some(value) => self.ints.push(value),
            None if !self.spec.nullable => self.ints.push(0),
            None => {}
        }
    }

    /// Append a text, or nothing.
    pub(crate) fn push_text(&mut self, value: Option<ByteArray>) {
        if self.spec.nullable {
            self.defined.push(i16::from(value.is_some()));
        }
        match value {
            Some(value) => self.texts.push(value),
            None if !self.spec.nullable => self.texts.push(ByteArray::from("")),
            None => {}
        }
    }

    /// Write what is there as a column chunk and start anew.
    pub(crate) fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<()> {
        let defined = self.spec.nullable.then_some(self.defined.as_slice());
        match (self.spec.kind, writer) {
            (Kind::Int32, ColumnWriter::Int32ColumnWriter(writer)) => {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "callers push what fits: numbers of rows and flags"
                )]
                let values: Vec<i32> = self.ints.iter().map(|&value| value as i32).collect();
                writer.write_batch(&values, defined, None)?;
            }
            (Kind::Int64, ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(&self.ints, defined, None)?;
            }
            (Kind::Text, ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(&self.texts, defined, None)?;
            }
            _ => {
                return Err(ParquetError::General(format!(
                    "column {} has another type",
                    self.spec.name
                )));
            }
        }
        self.ints.clear();
        self.texts.clear();
        self.defined.clear();
        Ok(())
    }
}
