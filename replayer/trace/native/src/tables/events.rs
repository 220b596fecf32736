//! The table `events`: one row a call, in the order in which the calls took effect.

use crate::error::TraceError;
use crate::op::Op;
use crate::stretch::{Sample, Stretch};
use crate::tables::column::{Kind, Layout, Spec};
use crate::tables::text::escaped;
use crate::tables::write::{GROUP_ROWS, TableWriter};
use parquet::data_type::ByteArray;
use std::path::Path;

/// One row. FORMAT.md says what each column means for each op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// When it was entered, since the begin of the trace.
    pub start_ns: i64,
    /// How long it took as recorded, if that is known.
    pub duration_ns: Option<i64>,
    /// Think time before it on its thread, without what the tracing added.
    pub gap_ns: i64,
    /// What it did.
    pub op: Op,
    /// Row of its path in the table `paths`.
    pub path: Option<u32>,
    /// Row of its second path.
    pub to_path: Option<u32>,
    /// Number of the open description it used, or made.
    pub file: Option<u32>,
    /// Number of its second open description.
    pub to_file: Option<u32>,
    /// Flags, by op.
    pub flags: Option<i64>,
    /// Mode, by op.
    pub mode: Option<i64>,
    /// Bytes asked for, by op.
    pub size: Option<i64>,
    /// Position, by op.
    pub offset: Option<i64>,
    /// Entries that a listing returned.
    pub entries: Option<i64>,
    /// Owner to be set.
    pub uid: Option<i64>,
    /// Group to be set.
    pub gid: Option<i64>,
    /// Access time to be set.
    pub atime_ns: Option<i64>,
    /// Modification time to be set.
    pub mtime_ns: Option<i64>,
    /// Name of an attribute, target of a symlink, name of a command.
    pub text: Option<Vec<u8>>,
    /// What it returned; an error is its number, negative.
    pub result: i64,
}

#[rustfmt::skip]
pub(crate) const SPECS: [Spec; 20] = [
    Spec::new("thread", Kind::Int32, Layout::Dictionary),
    Spec::new("start_ns", Kind::Int64, Layout::Delta),
    Spec::new("duration_ns", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("gap_ns", Kind::Int64, Layout::Dictionary),
    Spec::new("op", Kind::Text, Layout::Dictionary),
    Spec::new("path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("flags", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("mode", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("size", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("offset", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("entries", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("uid", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("gid", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("atime_ns", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("mtime_ns", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("text", Kind::Text, Layout::Dictionary).or_null(),
    Spec::new("result", Kind::Int64, Layout::Dictionary),
];

struct Waiting {
    event: Event,
    sample: Sample,
}

/// Takes events in their order; a row group waits, so that its calls may still end.
pub(crate) struct EventWriter {
    table: TableWriter,
    waiting: Vec<Waiting>,
    first_waiting: u64,
    stretch: Option<Stretch>,
    asked: Stretch,
    ops: Vec<ByteArray>,
}

impl EventWriter {
    /// `asked` holds what a user said about the tracing's own cost.
    pub(crate) fn create(directory: &Path, asked: Stretch) -> Result<Self, TraceError> {
        Ok(Self {
            table: TableWriter::create(directory, "events", &SPECS)?,
            waiting: Vec::new(),
            first_waiting: 0,
            stretch: None,
            asked,
            ops: Op::ALL.iter().map(|op| ByteArray::from(op.name())).collect(),
        })
    }

    /// The row that the next event will have.
    pub(crate) fn next_row(&self) -> u64 {
        self.first_waiting + u64::try_from(self.waiting.len()).unwrap_or(0)
    }

    /// Append an event; `sample` is its raw gap.
    pub(crate) fn push(&mut self, event: Event, sample: Sample) -> Result<(), TraceError> {
        if self.waiting.len() >= GROUP_ROWS {
            self.write_waiting()?;
        }
        self.waiting.push(Waiting { event, sample });
        Ok(())
    }

    /// Say how a call ended whose row was given out when it was entered. Too late after a row group: then it stays unknown.
    pub(crate) fn end(&mut self, row: u64, duration_ns: Option<i64>, result: i64) {
        let at = row
            .checked_sub(self.first_waiting)
            .and_then(|at| usize::try_from(at).ok());
        if let Some(waiting) = at.and_then(|at| self.waiting.get_mut(at)) {
            waiting.event.duration_ns = duration_ns;
            waiting.event.result = result;
        }
    }

    fn write_waiting(&mut self) -> Result<(), TraceError> {
        let stretch = match &self.stretch {
            Some(stretch) => stretch.clone(),
            None => {
                let samples = self.waiting.iter().map(|waiting| {
                    (waiting.event.op, waiting.event.duration_ns, waiting.sample)
                });
                self.stretch.insert(self.asked.estimate(samples)).clone()
            }
        };
        for mut waiting in std::mem::take(&mut self.waiting) {
            waiting.event.gap_ns = stretch.gap(waiting.sample);
            self.write(waiting.event)?;
            self.first_waiting += 1;
        }
        Ok(())
    }

    fn write(&mut self, event: Event) -> Result<(), TraceError> {
        let op = self.ops.get(usize::from(event.op as u8)).cloned();
        let text = event.text.map(|text| ByteArray::from(escaped(&text).into_bytes()));
        let numbers = [
            Some(i64::from(event.thread)),
            Some(event.start_ns),
            event.duration_ns,
            Some(event.gap_ns),
            None,
            event.path.map(i64::from),
            event.to_path.map(i64::from),
            event.file.map(i64::from),
            event.to_file.map(i64::from),
            event.flags,
            event.mode,
            event.size,
            event.offset,
            event.entries,
            event.uid,
            event.gid,
            event.atime_ns,
            event.mtime_ns,
            None,
            Some(event.result),
        ];
        let columns = self.table.columns.iter_mut().zip(&SPECS);
        for ((column, spec), number) in columns.zip(numbers) {
            match spec.name {
                "op" => column.push_text(op.clone()),
                "text" => column.push_text(text.clone()),
                _ => column.push(number),
            }
        }
        self.table.end_row()
    }

    /// Write everything. Returns the number of events and the tracing's cost as it was subtracted.
    pub(crate) fn finish(mut self) -> Result<(u64, Stretch), TraceError> {
        self.write_waiting()?;
        let rows = self.table.finish()?;
        Ok((rows, self.stretch.unwrap_or(self.asked)))
    }
}
