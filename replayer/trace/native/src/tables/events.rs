//! The table `events`: one row a call, in the order in which the calls took effect.

use crate::call::Args;
use crate::error::TraceError;
use crate::op::Op;
use crate::stretch::{Sample, Stretch};
use crate::tables::column::{Kind, Layout, Spec};
use crate::tables::text::escaped;
use crate::tables::write::{GROUP_ROWS, Sink, TableWriter};
use parquet::data_type::ByteArray;

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
    Spec::new("size", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("offset", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("entries", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("uid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("gid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("atime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("mtime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("text", Kind::Text, Layout::Dictionary).or_null(),
    Spec::new("result", Kind::Int64, Layout::Plain),
];

/// A row that is being written.
pub(crate) struct Row<'a> {
    pub(crate) thread: u32,
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: Option<i64>,
    pub(crate) op: Op,
    pub(crate) path: Option<u32>,
    pub(crate) to_path: Option<u32>,
    pub(crate) file: Option<u32>,
    pub(crate) to_file: Option<u32>,
    pub(crate) args: &'a Args<'a>,
    pub(crate) result: i64,
}

/// What of a row may still change.
struct Waiting {
    op: Op,
    duration_ns: Option<i64>,
    sample: Sample,
    result: i64,
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
    pub(crate) fn create(sink: Sink, asked: Stretch) -> Self {
        Self {
            table: TableWriter::to(sink, "events", &SPECS),
            waiting: Vec::new(),
            first_waiting: 0,
            stretch: None,
            asked,
            ops: Op::ALL
                .iter()
                .map(|op| ByteArray::from(op.name()))
                .collect(),
        }
    }

    /// The row that the next event will have.
    pub(crate) fn next_row(&self) -> u64 {
        self.first_waiting + u64::try_from(self.waiting.len()).unwrap_or(0)
    }

    /// Append an event; `sample` is its raw gap.
    pub(crate) fn push(&mut self, row: &Row<'_>, sample: Sample) -> Result<(), TraceError> {
        if self.waiting.len() >= GROUP_ROWS {
            self.write_waiting()?;
        }
        self.waiting.push(Waiting {
            op: row.op,
            duration_ns: row.duration_ns,
            sample,
            result: row.result,
        });
        let [
            thread,
            start,
            _,
            _,
            _,
            path,
            to_path,
            file,
            to_file,
            flags,
            mode,
            size,
            offset,
            entries,
            uid,
            gid,
            atime,
            mtime,
            text,
            _,
        ] = &mut self.table.columns[..]
        else {
            return Ok(());
        };
        thread.push(Some(i64::from(row.thread)));
        start.push(Some(row.start_ns));
        path.push(row.path.map(i64::from));
        to_path.push(row.to_path.map(i64::from));
        file.push(row.file.map(i64::from));
        to_file.push(row.to_file.map(i64::from));
        flags.push(row.args.flags);
        mode.push(row.args.mode);
        size.push(row.args.size);
        offset.push(row.args.offset);
        entries.push(row.args.entries);
        uid.push(row.args.uid);
        gid.push(row.args.gid);
        atime.push(row.args.atime_ns);
        mtime.push(row.args.mtime_ns);
        text.push_text(
            row.args
                .text
                .as_ref()
                .map(|text| ByteArray::from(escaped(text).into_bytes())),
        );
        Ok(())
    }

    /// Say how a call ended whose row was given out when it was entered. Too late after a row group: then it stays unknown.
    pub(crate) fn end(&mut self, row: u64, duration_ns: Option<i64>, result: i64) {
        let at = row
            .checked_sub(self.first_waiting)
            .and_then(|at| usize::try_from(at).ok());
        if let Some(waiting) = at.and_then(|at| self.waiting.get_mut(at)) {
            waiting.duration_ns = duration_ns;
            waiting.result = result;
        }
    }

    fn write_waiting(&mut self) -> Result<(), TraceError> {
        let stretch = if let Some(stretch) = &self.stretch {
            stretch
        } else {
            let samples = self
                .waiting
                .iter()
                .map(|row| (row.op, row.duration_ns, row.sample));
            self.stretch.insert(self.asked.estimate(samples))
        };
        if let [_, _, duration, gap, op, .., result] = &mut self.table.columns[..] {
            for row in &self.waiting {
                duration.push(row.duration_ns);
                gap.push(Some(stretch.gap(row.sample)));
                op.push_text(self.ops.get(usize::from(row.op as u8)).cloned());
                result.push(Some(row.result));
            }
        }
        self.first_waiting = self.next_row();
        let rows = self.waiting.len();
        self.waiting.clear();
        self.table.end_rows(rows)
    }

    /// Write everything. Returns the number of events and the tracing's cost as it was subtracted.
    pub(crate) fn finish(mut self) -> Result<(u64, Stretch), TraceError> {
        self.write_waiting()?;
        let rows = self.table.finish()?;
        Ok((rows, self.stretch.unwrap_or(self.asked)))
    }
}
