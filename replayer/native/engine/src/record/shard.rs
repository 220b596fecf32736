//! A shard: where the samples of some users wait for the recorder.
//!
//! One short lock a batch, no allocation once every bucket was met: the recorder swaps the shard's table for an
//! empty one that it has drained before.

use crate::histogram::Counts;
use crate::lock::hold;
use crate::ops::{KINDS, OK};
use crate::record::model::Sample;
use std::sync::Mutex;

/// What a sample is counted under, within a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    pub(crate) transaction: u16,
    pub(crate) op: u8,
    pub(crate) outcome: u8,
    pub(crate) expected: bool,
}

/// Counts and bytes of one series.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) counts: Counts,
    pub(crate) bytes: u64,
}

impl Cell {
    #[inline]
    fn record(&mut self, sample: &Sample) {
        self.counts.record(sample.ns);
        self.bytes = self.bytes.saturating_add(sample.bytes);
    }
}

/// Cells of one outcome, by transaction and op; a transaction that never had it has none.
#[derive(Debug)]
struct Plane {
    outcome: u8,
    expected: bool,
    cells: Vec<Vec<Cell>>,
}

impl Plane {
    #[inline]
    fn record(&mut self, sample: &Sample) {
        let cells = self.cells.get_mut(usize::from(sample.transaction));
        if let Some(cell) = cells.and_then(|cells| cells.get_mut(usize::from(sample.op))) {
            cell.record(sample);
        } else {
            self.grow_and_record(sample);
        }
    }

    #[cold]
    fn grow_and_record(&mut self, sample: &Sample) {
        let (transaction, op) = (usize::from(sample.transaction), usize::from(sample.op));
        if self.cells.len() <= transaction {
            self.cells.resize_with(transaction + 1, Vec::new);
        }
        if let Some(cells) = self.cells.get_mut(transaction) {
            cells.resize_with(KINDS.max(op + 1), Cell::default);
            if let Some(cell) = cells.get_mut(op) {
                cell.record(sample);
            }
        }
    }

    fn drain(&mut self, receive: &mut impl FnMut(Series, &mut Cell)) {
        let (outcome, expected) = (self.outcome, self.expected);
        for (transaction, cells) in (0_u16..).zip(&mut self.cells) {
            for (op, cell) in (0_u8..)
                .zip(cells)
                .filter(|(_, cell)| !cell.counts.is_empty())
            {
                let series = Series {
                    transaction,
                    op,
                    outcome,
                    expected,
                };
                receive(series, cell);
            }
        }
    }
}

/// Cells of every series: a plane for each outcome that was met, few enough to look through.
#[derive(Debug)]
pub(crate) struct Table {
    planes: Vec<Plane>,
    touched: bool,
}

impl Default for Table {
    /// What goes well comes first.
    fn default() -> Self {
        let usual = Plane {
            outcome: OK,
            expected: true,
            cells: Vec::new(),
        };
        Self {
            planes: vec![usual],
            touched: false,
        }
    }
}

impl Table {
    #[inline]
    fn record(&mut self, sample: &Sample) {
        let mut planes = self.planes.iter_mut();
        let is_its = |plane: &&mut Plane| {
            plane.outcome == sample.outcome && plane.expected == sample.expected
        };
        match planes.find(is_its) {
            Some(plane) => plane.record(sample),
            None => self.add_plane(sample),
        }
    }

    #[cold]
    fn add_plane(&mut self, sample: &Sample) {
        let mut plane = Plane {
            outcome: sample.outcome,
            expected: sample.expected,
            cells: Vec::new(),
        };
        plane.record(sample);
        self.planes.push(plane);
    }

    /// Hand out every cell that was recorded into; the receiver drains its counts.
    pub(crate) fn drain(&mut self, mut receive: impl FnMut(Series, &mut Cell)) {
        if std::mem::take(&mut self.touched) {
            self.planes
                .iter_mut()
                .for_each(|plane| plane.drain(&mut receive));
        }
    }
}

/// Samples of some users since the last cut.
pub(crate) struct Shard {
    /// The target of an interactive user; others are on the segment's.
    pub(crate) target: Option<u16>,
    table: Mutex<Table>,
}

impl Shard {
    pub(crate) fn new(target: Option<u16>) -> Self {
        Self {
            target,
            table: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn flush(&self, batch: &[Sample]) {
        self.flush_kept(&mut batch.to_vec(), |_| ());
    }

    /// Record what is kept of a batch of samples; that is decided while nobody takes what was recorded.
    pub(crate) fn flush_kept(&self, batch: &mut Vec<Sample>, keep: impl FnOnce(&mut Vec<Sample>)) {
        let mut table = hold(&self.table);
        keep(batch);
        table.touched |= !batch.is_empty();
        for sample in batch {
            table.record(sample);
        }
    }

    /// Take what was recorded, and leave an empty table.
    pub(crate) fn swap(&self, empty: &mut Table) {
        std::mem::swap(&mut *hold(&self.table), empty);
    }
}
