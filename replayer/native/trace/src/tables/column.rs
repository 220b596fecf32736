//! One column of a table that is being filled.

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::Type;
use std::sync::Arc;

/// Numbers that are written one after the other: deltas fill up blocks of 32 (measured).
const FEWEST_VALUES: usize = 8;
/// Numbers that are longer once they are compressed (measured: a frame of zstd takes 9 bytes and more).
const FEWEST_COMPRESSED: usize = 2;

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
    /// The first bytes of all values, then the second bytes, and so on: small numbers pack well.
    Split,
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
    /// Rows without a value since the last one that has one: they are written down when it is known that one follows.
    nulls: usize,
}

impl Column {
    pub(crate) fn new(spec: Spec) -> Self {
        Self {
            spec,
            ints: Vec::new(),
            texts: Vec::new(),
            defined: Vec::new(),
            nulls: 0,
        }
    }

    pub(crate) fn spec(&self) -> Spec {
        self.spec
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.spec.nullable && self.ints.is_empty() && self.texts.is_empty()
    }

    /// Whether it has so few numbers that every way to pack them makes them longer.
    fn has_few(&self) -> bool {
        self.texts.is_empty() && self.defined.len().max(self.ints.len()) <= FEWEST_VALUES
    }

    fn has_next_to_none(&self) -> bool {
        self.texts.is_empty() && self.ints.len() <= FEWEST_COMPRESSED
    }

    /// Whether compressing it would make it longer: nothing in it, or the same in every row, or next to nothing.
    pub(crate) fn is_tiny(&self) -> bool {
        let even = self.defined.len() == self.ints.len() + self.texts.len();
        let same_ints = self
            .ints
            .iter()
            .all(|value| Some(value) == self.ints.first());
        let same_texts = self
            .texts
            .iter()
            .all(|text| Some(text) == self.texts.first());
        let constant = self.spec.layout == Layout::Dictionary && same_ints && same_texts;
        let everywhere = even || !self.spec.nullable;
        self.is_blank() || self.has_next_to_none() || (constant && everywhere)
    }

    /// How it is laid out.
    pub(crate) fn layout(&self) -> Layout {
        if self.has_few() {
            Layout::Plain
        } else {
            self.spec.layout
        }
    }

    /// How its values are written where they are not kept in a dictionary.
    pub(crate) fn encoding(&self) -> Encoding {
        match (self.layout(), self.spec.kind) {
            (Layout::Split, Kind::Int32 | Kind::Int64) => Encoding::BYTE_STREAM_SPLIT,
            (Layout::Delta, Kind::Int32 | Kind::Int64) => Encoding::DELTA_BINARY_PACKED,
            (Layout::Delta, Kind::Text) => Encoding::DELTA_BYTE_ARRAY,
            _ => Encoding::PLAIN,
        }
    }

    fn define(&mut self) {
        if self.spec.nullable {
            if self.nulls > 0 {
                self.defined.resize(self.defined.len() + self.nulls, 0);
                self.nulls = 0;
            }
            self.defined.push(1);
        }
    }

    /// Put a number into a row; rows that are passed over have none.
    #[inline]
    pub(crate) fn put(&mut self, row: usize, value: Option<i64>) {
        if let Some(value) = value {
            self.fill_up(row);
            self.define();
            self.ints.push(value);
        }
    }

    /// Say that the rows that were passed over have no value.
    fn fill_up(&mut self, row: usize) {
        if self.spec.nullable && self.defined.len() < row {
            self.defined.resize(row, 0);
        }
    }

    /// The same with a text.
    pub(crate) fn put_text(&mut self, row: usize, value: Option<ByteArray>) {
        if value.is_some() {
            self.fill_up(row);
            self.push_text(value);
        }
    }

    /// Append a number, or nothing.
    pub(crate) fn push(&mut self, value: Option<i64>) {
        match value {
            Some(value) => {
                self.define();
                self.ints.push(value);
            }
            None if self.spec.nullable => self.nulls += 1,
            None => self.ints.push(0),
        }
    }

    /// Append a text, or nothing.
    pub(crate) fn push_text(&mut self, value: Option<ByteArray>) {
        match value {
            Some(value) => {
                self.define();
                self.texts.push(value);
            }
            None if self.spec.nullable => self.nulls += 1,
            None => self.texts.push(ByteArray::from("")),
        }
    }

    /// Put other numbers in the place of all.
    pub(crate) fn renumber(&mut self, new: &[u32]) {
        for value in &mut self.ints {
            let found = usize::try_from(*value).ok().and_then(|old| new.get(old));
            *value = found.map_or(*value, |&number| i64::from(number));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ints.clear();
        self.texts.clear();
        self.defined.clear();
        self.nulls = 0;
    }

    /// Write what is there as a column chunk and start anew. `small` is room for numbers of 32 bits.
    pub(crate) fn write(
        &mut self,
        writer: &mut ColumnWriter<'_>,
        rows: usize,
        small: &mut Vec<i32>,
    ) -> Result<()> {
        self.defined.resize(rows, 0);
        let defined = self.spec.nullable.then_some(self.defined.as_slice());
        match (self.spec.kind, writer) {
            (Kind::Int32, ColumnWriter::Int32ColumnWriter(writer)) => {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "callers push what fits: numbers of rows and flags"
                )]
                let values = self.ints.iter().map(|&value| value as i32);
                small.clear();
                small.extend(values);
                writer.write_batch(small, defined, None)?;
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
        self.clear();
        Ok(())
    }
}
