//! Reads the table `events`, of this format and of format 1.

use crate::error::TraceError;
use crate::extent::Extent;
use crate::reader::{AGAIN, wrong_row};
use crate::tables::column::Spec;
use crate::tables::events::{Event, SPECS};
use crate::tables::read::{Group, TableReader};
use crate::tables::text::unescaped;
use crate::tables::times::{ThinkTimes, TimedEvent};
use crate::tables::version_1;
use crate::tracer_overhead::OverheadCosts;
use replayer_ops::Op;
use serde_json::Value;
use std::path::Path;

/// How times are to be read.
#[derive(Debug, Clone)]
pub(crate) enum Times {
    /// Format 1: nanoseconds, and every gap.
    Nanoseconds,
    /// Ticks, and gaps that do not follow from the rest.
    Ticks { tick_ns: i64, gaps: Box<ThinkTimes> },
}

/// Events that are being read.
pub struct Events {
    table: TableReader,
    times: Times,
    extent: Extent,
    /// The first row of the next group.
    next: u64,
}

impl Events {
    pub(crate) fn open(
        directory: &Path,
        document: &Value,
        extent: Extent,
    ) -> Result<Self, TraceError> {
        let times = Times::of(directory, document)?;
        Ok(Self {
            table: TableReader::open(directory, "events", times.specs())?,
            times,
            extent,
            next: 0,
        })
    }

    /// The events of the next row group, or None after the last.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn next_group(&mut self) -> Result<Option<Vec<Event>>, TraceError> {
        let Some(group) = self.table.next_group()? else {
            return Ok(None);
        };
        let first = self.next;
        self.next = first.saturating_add(u64::try_from(group.rows).unwrap_or(u64::MAX));
        events(&group, &mut self.times, (first, self.extent)).map(Some)
    }

    /// The events of a row group, or None where there is none of this number; their think times are not told.
    pub(crate) fn group(&self, number: usize) -> Result<Option<Vec<Event>>, TraceError> {
        let Some(group) = self.table.group(number)? else {
            return Ok(None);
        };
        let before = self.group_lengths().into_iter().take(number);
        let first = before.fold(0, u64::saturating_add);
        events(&group, &mut self.times.anew(), (first, self.extent)).map(Some)
    }

    /// How many events each row group has.
    pub(crate) fn group_lengths(&self) -> Vec<u64> {
        self.table.group_lengths()
    }
}

/// When an event was, as its row tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedTimes {
    pub(crate) start: i64,
    pub(crate) duration: Option<i64>,
    pub(crate) gap: Option<i64>,
    pub(crate) between: Option<i64>,
    pub(crate) op: Op,
    pub(crate) failed: bool,
}

impl Times {
    /// How the times of a trace are to be read.
    pub(crate) fn of(directory: &Path, document: &Value) -> Result<Self, TraceError> {
        times(document).ok_or_else(|| {
            TraceError::damaged(
                directory.join("trace.json"),
                "names no tick of its clock",
                AGAIN,
            )
        })
    }

    /// The columns of the table.
    pub(crate) fn specs(&self) -> &'static [Spec] {
        match self {
            Self::Nanoseconds => &version_1::EVENTS,
            Self::Ticks { .. } => &SPECS,
        }
    }

    fn anew(&self) -> Self {
        match self {
            Self::Nanoseconds => Self::Nanoseconds,
            Self::Ticks { tick_ns, .. } => Self::Ticks {
                tick_ns: *tick_ns,
                gaps: Box::default(),
            },
        }
    }

    /// Start, duration and think time of a row.
    pub(crate) fn read(
        &mut self,
        told: RecordedTimes,
        thread: u32,
    ) -> Option<(i64, Option<i64>, i64)> {
        match self {
            Self::Nanoseconds => Some((told.start, told.duration, told.gap.unwrap_or(0))),
            Self::Ticks { tick_ns, gaps } => {
                let start_ns = told.start.checked_mul(*tick_ns)?;
                let taken = told.duration.map(|ticks| ticks.checked_mul(*tick_ns));
                let duration_ns = taken.map_or(Some(None), |time| time.map(Some))?;
                let follows = gaps.follow(TimedEvent {
                    thread,
                    start_ns,
                    duration_ns,
                    between: u32::try_from(told.between.unwrap_or(0)).ok()?,
                    op: told.op,
                    failed: told.failed,
                });
                if told.gap.is_some() {
                    gaps.settle(thread);
                }
                Some((start_ns, duration_ns, told.gap.unwrap_or(follows.own_ns)))
            }
        }
    }
}

/// The column `between`.
pub(crate) const BETWEEN: usize = 20;
/// The columns `after` and `after_ns`.
pub(crate) const AFTER: usize = 21;
pub(crate) const AFTER_NS: usize = 22;

fn times(document: &Value) -> Option<Times> {
    if document.get("format").and_then(Value::as_u64) == Some(1) {
        return Some(Times::Nanoseconds);
    }
    let tick = document.pointer("/clock/tick_ns").and_then(Value::as_i64);
    Some(Times::Ticks {
        tick_ns: tick.filter(|&tick| tick > 0)?,
        gaps: Box::new(gaps(document.get("calibration").unwrap_or(&Value::Null))),
    })
}

fn gaps(calibration: &Value) -> ThinkTimes {
    let constant = |name: &str| calibration.get(name)?.as_i64();
    let costs = OverheadCosts {
        call_ns: constant("call_ns"),
        gap_ns: constant("gap_ns"),
        ..OverheadCosts::default()
    };
    let Some(after) = calibration.get("gap_ns_after").and_then(Value::as_object) else {
        return ThinkTimes::new(costs); // each gap for itself
    };
    let of = |name: &str| after.get(name).and_then(Value::as_i64);
    let after_ns = Op::ALL.iter().map(|op| {
        let name = op.name();
        [of(name), of(&format!("{name}{FAILED}"))]
    });
    ThinkTimes::new(OverheadCosts {
        after_ns: after_ns.collect(),
        most_owed_ns: constant("most_owed_ns").unwrap_or(UNSAID_MOST_OWED_NS),
        long_gap_ns: constant("long_gap_ns").unwrap_or(0),
        ..costs
    })
}

/// What gaps make up for in traces that do not say it.
const UNSAID_MOST_OWED_NS: i64 = 200_000;
/// What stands behind the name of an op that failed.
pub(crate) const FAILED: &str = " failed";

/// Read a table `events` to its end. Returns the number of events.
pub(crate) fn count_events(table: TableReader) -> Result<usize, TraceError> {
    let mut events = Events {
        table,
        times: Times::Ticks {
            tick_ns: 1,
            gaps: Box::default(),
        },
        extent: Extent::UNKNOWN,
        next: 0,
    };
    let mut count = 0;
    while let Some(group) = events.next_group()? {
        count += group.len();
    }
    Ok(count)
}

fn events(
    group: &Group,
    times: &mut Times,
    (first, extent): (u64, Extent),
) -> Result<Vec<Event>, TraceError> {
    let mut events = Vec::with_capacity(group.rows);
    for (row, at) in (0..group.rows).zip(first..) {
        let event = event(group, row, times).filter(|event| extent.holds(at, event));
        events.push(event.ok_or_else(|| wrong_row("events", at))?);
    }
    Ok(events)
}

fn event(group: &Group, row: usize, times: &mut Times) -> Option<Event> {
    let number = |column: usize| -> Result<Option<u32>, std::num::TryFromIntError> {
        group.int(column, row).map(u32::try_from).transpose()
    };
    let thread = number(0).ok()??;
    let op = Op::of_trace(group.text(4, row)?)?;
    let result = group.int(19, row)?;
    let told = RecordedTimes {
        start: group.int(1, row)?,
        duration: group.int(2, row),
        gap: group.int(3, row),
        between: group.int(BETWEEN, row),
        op,
        failed: result < 0,
    };
    let (start_ns, duration_ns, gap_ns) = times.read(told, thread)?;
    Some(Event {
        thread,
        start_ns,
        duration_ns,
        gap_ns,
        after: group.int(AFTER, row).map(u64::try_from).transpose().ok()?,
        after_ns: group.int(AFTER_NS, row),
        op,
        path: number(5).ok()?,
        to_path: number(6).ok()?,
        file: number(7).ok()?,
        to_file: number(8).ok()?,
        flags: group.int(9, row),
        mode: group.int(10, row),
        size: group.int(11, row),
        offset: group.int(12, row),
        entries: group.int(13, row),
        uid: group.int(14, row),
        gid: group.int(15, row),
        atime_ns: group.int(16, row),
        mtime_ns: group.int(17, row),
        text: group.text(18, row).map(unescaped),
        result,
    })
}
