//! The table `events`: one row a call, in the order in which the calls took effect.

use crate::call::Args;
use crate::error::TraceError;
use crate::tables::schema::EVENTS;
use crate::tables::text::escaped_whole;
use crate::tables::times::{GapSample, ThinkTimes, Ticks, TimedEvent};
use crate::tables::write::{GROUP_ROWS, Sink, TableWriter};
use crate::tracer_overhead::{OverheadCosts, OverheadEstimator, TracerOverhead};
use bytes::Bytes;
use parquet::data_type::ByteArray;
use replayer_ops::Op;
use rustc_hash::FxHashSet;

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

/// What of a row may still change, and what its times are made from.
struct PendingRow {
    thread: u32,
    start_ns: i64,
    op: Op,
    duration_ns: Option<i64>,
    sample: GapSample,
    result: i64,
}

/// Takes events in their order; a row group waits, so that its calls may still end.
pub(crate) struct EventWriter {
    table: TableWriter,
    waiting: Vec<PendingRow>,
    first_waiting: u64,
    /// Known from the first row group on.
    times: Option<Times>,
    /// What shows the cost of the tracing, until that is known.
    estimator: Option<OverheadEstimator>,
    asked: TracerOverhead,
    ops: Vec<ByteArray>,
}

/// How the times of a table are written.
struct Times {
    costs: OverheadCosts,
    ticks: Ticks,
    gaps: ThinkTimes,
    /// Threads that the row group has had an event of.
    met: FxHashSet<u32>,
}

/// What a finished table says of itself.
pub(crate) struct FinishedEvents {
    pub(crate) rows: u64,
    /// What the tracing cost.
    pub(crate) costs: OverheadCosts,
    pub(crate) tick_ns: i64,
    /// Times that are no multiple of a tick and were rounded down.
    pub(crate) rounded: u64,
}

impl EventWriter {
    /// `asked` holds what a user said about the tracing's own cost.
    pub(crate) fn create(sink: Sink, asked: TracerOverhead) -> Self {
        Self {
            table: TableWriter::to(sink, "events", &EVENTS),
            // Room that is not used is never touched.
            waiting: Vec::with_capacity(GROUP_ROWS),
            first_waiting: 0,
            times: None,
            estimator: Some(OverheadEstimator::new()),
            asked,
            ops: Op::ALL
                .iter()
                .map(|op| ByteArray::from(Bytes::from_static(op.name().as_bytes())))
                .collect(),
        }
    }

    /// The log's times are those of the program: no tracer made them longer.
    pub(crate) fn trust_times(&mut self) {
        self.estimator = None;
    }

    /// What is still to be told how long calls and gaps were; none when that is enough.
    pub(crate) fn estimator(&mut self) -> Option<&mut OverheadEstimator> {
        self.estimator.as_mut()
    }

    pub(crate) fn next_row(&self) -> u64 {
        self.first_waiting + u64::try_from(self.waiting.len()).unwrap_or(0)
    }

    /// Append an event; `sample` is its raw gap.
    pub(crate) fn push(&mut self, row: &Row<'_>, sample: GapSample) -> Result<(), TraceError> {
        if self.waiting.len() >= GROUP_ROWS {
            self.write_waiting()?;
        }
        let at = self.waiting.len();
        self.waiting.push(PendingRow {
            thread: row.thread,
            start_ns: row.start_ns,
            op: row.op,
            duration_ns: row.duration_ns,
            sample,
            result: row.result,
        });
        let [thread, _, _, _, _, columns @ ..] = &mut self.table.columns[..] else {
            return Ok(());
        };
        thread.push(Some(i64::from(row.thread)));
        let args = row.args;
        let named = [row.path, row.to_path, row.file, row.to_file];
        let [path, to_path, file, to_file] = named.map(|number| number.map(i64::from));
        #[rustfmt::skip]
        let values = [
            path, to_path, file, to_file, args.flags, args.mode, args.size, args.offset, args.entries, args.uid, args.gid,
            args.atime_ns, args.mtime_ns,
        ];
        for (column, value) in columns.iter_mut().zip(values) {
            column.put(at, value);
        }
        if let (Some(column), Some(value)) = (columns.get_mut(values.len()), &args.text) {
            column.put_text(at, Some(escaped_whole(value.to_vec())));
        }
        Ok(())
    }

    /// Whether no row group has been written: rows of `paths` may still change.
    pub(crate) fn is_whole(&self) -> bool {
        self.first_waiting == 0
    }

    /// Give paths other rows.
    pub(crate) fn renumber_paths(&mut self, new: &[u32]) {
        if let [_, _, _, _, _, path, to_path, ..] = &mut self.table.columns[..] {
            path.renumber(new);
            to_path.renumber(new);
        }
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
        let rows = self.fill_in();
        self.table.end_rows(rows)
    }

    /// Give the columns what was still open of the rows that wait. Returns their number.
    fn fill_in(&mut self) -> usize {
        let waiting = &self.waiting;
        let (estimator, asked) = (self.estimator.take(), &self.asked);
        let times = self.times.get_or_insert_with(|| {
            let costs = estimator
                .unwrap_or_else(OverheadEstimator::new)
                .costs(asked);
            Times::of(waiting, costs)
        });
        let is_first_group = self.first_waiting == 0;
        times.met.clear();
        if let [
            _,
            start,
            duration,
            gap,
            op,
            ..,
            result,
            between,
            after,
            after_ns,
        ] = &mut self.table.columns[..]
        {
            for row in waiting {
                let (start_ticks, start_ns) = times.ticks.count(row.start_ns);
                let taken = row.duration_ns.map(|time| times.ticks.count(time));
                let others = row.sample.others.min(MOST_BETWEEN);
                let follows = times.gaps.follow(TimedEvent {
                    thread: row.thread,
                    start_ns,
                    duration_ns: taken.map(|(_, time)| time),
                    between: others,
                    op: row.op,
                    failed: row.result < 0,
                });
                let raw_ns = row.sample.gap_ns.unwrap_or(0);
                // Whoever begins to read at this group does not know when the thread's last event ended.
                let begins = times.met.insert(row.thread) && !is_first_group;
                let told = if raw_ns == follows.raw_ns {
                    Some(follows.own_ns).filter(|_| begins)
                } else {
                    Some(raw_ns.saturating_sub(follows.added_ns).max(0))
                };
                if told.is_some() {
                    times.gaps.settle(row.thread);
                }
                start.push(Some(start_ticks));
                duration.push(taken.map(|(ticks, _)| ticks));
                gap.push(told);
                op.push_text(self.ops.get(usize::from(row.op as u8)).cloned());
                result.push(Some(row.result));
                between.push(Some(i64::from(others)).filter(|&count| count > 0));
                let kept = row.sample.after;
                after.push(kept.and_then(|kept| i64::try_from(kept.row).ok()));
                after_ns.push(kept.map(|kept| times.gaps.left(kept)));
            }
        }
        self.first_waiting = self.next_row();
        let rows = self.waiting.len();
        self.waiting.clear();
        rows
    }

    pub(crate) fn finish(mut self) -> Result<FinishedEvents, TraceError> {
        let waiting = self.fill_in();
        let rows = self.table.finish_rows(waiting)?;
        let times = self
            .times
            .unwrap_or_else(|| Times::of(&[], OverheadCosts::default()));
        Ok(FinishedEvents {
            rows,
            costs: times.costs,
            tick_ns: times.ticks.tick_ns,
            rounded: times.ticks.rounded,
        })
    }
}

/// More is not written down (a column of 32 bits).
const MOST_BETWEEN: u32 = i32::MAX as u32;

impl Times {
    fn of(waiting: &[PendingRow], costs: OverheadCosts) -> Self {
        let times = waiting.iter();
        let ticks = Ticks::fitting(
            &times
                .flat_map(|row| [Some(row.start_ns), row.duration_ns])
                .flatten(),
        );
        Self {
            gaps: ThinkTimes::new(costs.clone()),
            costs,
            ticks,
            met: FxHashSet::default(),
        }
    }
}
