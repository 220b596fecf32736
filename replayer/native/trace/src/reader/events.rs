//! Reads the table `events`, of this format and of format 1, row by row.

use crate::error::TraceError;
use crate::tables::FAILED;
use crate::tables::column::Spec;
use crate::tables::read::Rows;
use crate::tables::schema::{EVENTS, EVENTS_1, Event, RowCounts};
use crate::tables::text::unescaped;
use crate::tables::times::{ThinkTimes, TimedEvent};
use crate::tracer_overhead::OverheadCosts;
use replayer_ops::Op;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Events that are being read.
pub struct EventRows {
    rows: Rows,
    times: Times,
    counts: RowCounts,
    /// Ops by where their names lie, good for one batch: names of a dictionary are not compared again.
    ops: FxHashMap<(usize, usize), Op>,
    batch: u64,
}

impl EventRows {
    pub(super) fn over(rows: Rows, times: Times, counts: RowCounts) -> Self {
        Self {
            rows,
            times,
            counts,
            ops: FxHashMap::default(),
            batch: 0,
        }
    }

    /// The next event and its row.
    ///
    /// # Errors
    /// The table is damaged.
    pub fn next_event(&mut self) -> Result<Option<(u64, Event)>, TraceError> {
        let Some(row) = self.rows.advance()? else {
            return Ok(None);
        };
        if self.batch != self.rows.batch() {
            self.batch = self.rows.batch();
            self.ops.clear();
        }
        match self.event() {
            Some(event) if self.counts.holds(row, &event) => Ok(Some((row, event))),
            _ => Err(self.rows.wrong()),
        }
    }

    fn op(&mut self) -> Option<Op> {
        let name = self.rows.text(4)?;
        let place = (name.as_ptr().addr(), name.len());
        if let Some(op) = self.ops.get(&place) {
            return Some(*op);
        }
        let op = Op::of_trace(std::str::from_utf8(name).ok()?)?;
        self.ops.insert(place, op);
        Some(op)
    }

    fn event(&mut self) -> Option<Event> {
        let thread = self.rows.number(0)?;
        let op = self.op()?;
        let rows = &mut self.rows;
        let result = rows.int(19)?;
        let (start_ns, duration_ns, gap_ns) = self.times.read(rows, thread, (op, result < 0))?;
        Some(Event {
            thread,
            start_ns,
            duration_ns,
            gap_ns,
            after: rows.optional(21).ok()?,
            after_ns: rows.int(22),
            op,
            path: rows.optional(5).ok()?,
            to_path: rows.optional(6).ok()?,
            file: rows.optional(7).ok()?,
            to_file: rows.optional(8).ok()?,
            flags: rows.int(9),
            mode: rows.int(10),
            size: rows.int(11),
            offset: rows.int(12),
            entries: rows.int(13),
            uid: rows.int(14),
            gid: rows.int(15),
            atime_ns: rows.int(16),
            mtime_ns: rows.int(17),
            text: match rows.text(18) {
                Some(text) => Some(unescaped(std::str::from_utf8(text).ok()?)),
                None => None,
            },
            result,
        })
    }
}

/// How times are to be read.
#[derive(Debug, Clone)]
pub(super) enum Times {
    /// Format 1: nanoseconds, and every gap.
    Nanoseconds,
    /// Ticks, and gaps that do not follow from the rest.
    Ticks { tick_ns: i64, gaps: Box<ThinkTimes> },
}

impl Times {
    /// How the times of a trace are to be read; None where it names no tick.
    pub(super) fn of(document: &Value) -> Option<Self> {
        if document.get("format").and_then(Value::as_u64) == Some(1) {
            return Some(Self::Nanoseconds);
        }
        let tick = document.pointer("/clock/tick_ns").and_then(Value::as_i64);
        Some(Self::Ticks {
            tick_ns: tick.filter(|&tick| tick > 0)?,
            gaps: Box::new(gaps(document.get("calibration").unwrap_or(&Value::Null))),
        })
    }

    /// The columns of the table.
    pub(super) fn specs(&self) -> &'static [Spec] {
        match self {
            Self::Nanoseconds => &EVENTS_1,
            Self::Ticks { .. } => &EVENTS,
        }
    }

    /// Start, duration and think time of a row.
    fn read(
        &mut self,
        rows: &mut Rows,
        thread: u32,
        (op, failed): (Op, bool),
    ) -> Option<(i64, Option<i64>, i64)> {
        let (start, duration, gap) = (rows.int(1).unwrap_or(0), rows.int(2), rows.int(3));
        let Self::Ticks { tick_ns, gaps } = self else {
            return Some((start, duration, gap.unwrap_or(0)));
        };
        let start_ns = start.checked_mul(*tick_ns)?;
        let taken = duration.map(|ticks| ticks.checked_mul(*tick_ns));
        let duration_ns = taken.map_or(Some(None), |time| time.map(Some))?;
        let follows = gaps.follow(TimedEvent {
            thread,
            start_ns,
            duration_ns,
            between: u32::try_from(rows.int(20).unwrap_or(0)).ok()?,
            op,
            failed,
        });
        if gap.is_some() {
            gaps.settle(thread);
        }
        Some((start_ns, duration_ns, gap.unwrap_or(follows.own_ns)))
    }
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
