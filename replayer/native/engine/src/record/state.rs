//! The running interval and the totals: where drained samples are merged, and how they become rows.

use crate::histogram::{Histogram, Packer};
use crate::ops::{op_name, outcome_name};
use crate::record::files::{IntervalLines, Recording};
use crate::record::model::{IntervalData, Line, LogKey, Phase, RowData, Segment};
use crate::record::names::Names;
use crate::record::shard::{Cell, Series, Shard, Table};
use std::collections::{BTreeMap, VecDeque};

/// A series on a target: what is told apart within a phase.
type Key = (u16, Series);

/// Merged counts and bytes.
#[derive(Default)]
struct Sum {
    histogram: Histogram,
    bytes: u64,
}

impl Sum {
    fn take(&mut self, cell: &mut Cell) {
        cell.counts.drain_into(&mut self.histogram);
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut cell.bytes));
    }

    fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn reset(&mut self) {
        self.histogram.clear();
        self.bytes = 0;
    }
}

/// Everything that the recorder's thread and the callers of boundaries take turns on.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) segment: Segment,
    pub(crate) warm_up_end: Option<u64>,
    pub(crate) next_cut: u64,
    pub(crate) closed: bool,
    pub(crate) files: Option<Recording>,
    interval_ns: u64,
    pub(crate) interval_start: u64,
    /// Drained; changes places with the table of each shard in turn.
    spare: Table,
    /// The running interval. Reset after a cut, so that nothing is allocated anew.
    interval: BTreeMap<Key, Sum>,
    phase: BTreeMap<Key, Sum>,
    /// The phases before it.
    past: BTreeMap<(u16, Phase, Key), RowData>,
    packer: Packer,
}

impl State {
    pub(crate) fn new(files: Option<Recording>, interval_ns: u64) -> Self {
        Self {
            files,
            interval_ns: interval_ns.max(1),
            ..Self::default()
        }
    }

    /// Begin the schedule of cuts anew at a boundary.
    pub(crate) fn restart(&mut self, now: u64) {
        self.interval_start = now;
        self.next_cut = now.saturating_add(self.interval_ns);
    }

    /// The next cut on the schedule: late cuts do not move it, missed ones are left out.
    pub(crate) fn schedule(&mut self, now: u64) {
        let late = now.saturating_sub(self.next_cut);
        let steps = late / self.interval_ns + 1;
        self.next_cut = self
            .next_cut
            .saturating_add(steps.saturating_mul(self.interval_ns));
    }

    /// Merge what a shard has into the running interval.
    pub(crate) fn take(&mut self, shard: &Shard) {
        shard.swap(&mut self.spare);
        let target = shard.target.unwrap_or(self.segment.target);
        let interval = &mut self.interval;
        self.spare.drain(|series, cell| {
            interval.entry((target, series)).or_default().take(cell);
        });
    }

    /// Close the running interval: write it, add it to the phase. None when there is nothing to tell.
    pub(crate) fn cut(&mut self, now: u64, users: u32, names: &Names) -> Option<IntervalData> {
        let (start_ns, end_ns) = (self.interval_start, now.max(self.interval_start));
        self.interval_start = now;
        let segment = self.segment;
        let (mut rows, mut lines) = (Vec::new(), IntervalLines::new(start_ns, end_ns, users));
        for (key, sum) in &mut self.interval {
            if sum.histogram.count() == 0 {
                continue;
            }
            let row = pack(segment, (*key, sum), names, &mut self.packer);
            if self.files.is_some() {
                lines.push(&Line {
                    key: &row.key,
                    bytes: row.bytes,
                    times: &sum.histogram,
                    packed: &row.histogram,
                });
            }
            rows.push(row);
            self.phase.entry(*key).or_default().add(sum);
            sum.reset();
        }
        if let Some(files) = &mut self.files {
            files.append(&lines);
        }
        let worth_telling = !rows.is_empty() || (segment.open && end_ns > start_ns);
        worth_telling.then_some(IntervalData {
            start_ns,
            end_ns,
            users,
            target: segment.target,
            round: segment.round,
            phase: segment.phase,
            rows,
        })
    }

    /// Put the sums of the running phase with those of the past, in their short form.
    pub(crate) fn freeze(&mut self, names: &Names) {
        let Segment { round, phase, .. } = self.segment;
        for (key, mut sum) in std::mem::take(&mut self.phase) {
            let place = (round, phase, key);
            if let Some(before) = self.past.get(&place) {
                sum.add(&unpack(before));
            }
            let row = pack(self.segment, (key, &sum), names, &mut self.packer);
            self.past.insert(place, row);
        }
    }

    /// Everything that was cut so far.
    pub(crate) fn totals(&mut self, names: &Names) -> Vec<RowData> {
        self.freeze(names);
        self.past.values().cloned().collect()
    }

    /// Make the oldest two intervals of the same target, round and phase one, in the older one's place.
    pub(crate) fn merge_oldest(&mut self, queue: &mut VecDeque<IntervalData>) {
        let of = |interval: &IntervalData| (interval.target, interval.round, interval.phase);
        let mut pairs = queue.iter().zip(queue.iter().skip(1));
        let Some(older) = pairs.position(|(one, two)| of(one) == of(two)) else {
            // Six hundred segments nobody has looked at: the record has them all.
            queue.pop_front();
            return;
        };
        let Some(newer) = queue.remove(older + 1) else {
            return;
        };
        if let Some(older) = queue.get_mut(older) {
            older.end_ns = newer.end_ns;
            older.users = newer.users;
            for row in newer.rows {
                self.merge_row(&mut older.rows, row);
            }
        }
    }

    fn merge_row(&mut self, rows: &mut Vec<RowData>, row: RowData) {
        let Some(same) = rows.iter_mut().find(|known| known.key == row.key) else {
            return rows.push(row);
        };
        let mut sum = unpack(same);
        sum.add(&unpack(&row));
        same.bytes = sum.bytes;
        same.histogram = self.packer.pack(&sum.histogram).into();
    }
}

/// The row of a sum.
fn pack(
    segment: Segment,
    ((target, series), sum): (Key, &Sum),
    names: &Names,
    packer: &mut Packer,
) -> RowData {
    RowData {
        key: LogKey {
            target,
            round: segment.round,
            phase: segment.phase,
            transaction: names.name(series.transaction),
            op: op_name(series.op).into(),
            outcome: outcome_name(series.outcome).into(),
            expected: series.expected,
        },
        bytes: sum.bytes,
        histogram: packer.pack(&sum.histogram).into(),
    }
}

fn unpack(row: &RowData) -> Sum {
    let unpacked = Histogram::from_v2(&row.histogram);
    debug_assert!(unpacked.is_ok(), "what the packer made can be unpacked");
    Sum {
        histogram: unpacked.unwrap_or_default(),
        bytes: row.bytes,
    }
}
