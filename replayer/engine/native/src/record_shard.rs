//! A shard: where the samples of some users wait for the recorder.
//!
//! One short lock a batch, no allocation once every bucket was met: the recorder swaps the shard's table for an
//! empty one that it has drained before.

use crate::histogram::Counts;
use crate::lock::hold;
use crate::ops::KINDS;
use crate::record::Sample;
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

/// Cells of every series: an array for what goes well, a short sorted list for the rest.
#[derive(Debug)]
pub(crate) struct Table {
    /// Expected `ok` by transaction * KINDS + op.
    usual: Vec<Cell>,
    other: Vec<(Series, Cell)>,
    touched: bool,
}

impl Table {
    /// Room for so many transactions; more are made room for when they come.
    pub(crate) fn new(transactions: usize) -> Self {
        let mut usual = Vec::new();
        usual.resize_with(transactions * KINDS, Cell::default);
        Self {
            usual,
            other: Vec::new(),
            touched: false,
        }
    }

    #[inline]
    fn record(&mut self, sample: &Sample) {
        if sample.outcome != 0 || !sample.expected {
            return self.record_other(sample);
        }
        let place = usize::from(sample.transaction) * KINDS + usize::from(sample.op);
        if let Some(cell) = self.usual.get_mut(place) {
            cell.record(sample);
        } else {
            self.grow_and_record(place, sample);
        }
    }

    #[cold]
    fn grow_and_record(&mut self, place: usize, sample: &Sample) {
        self.usual
            .resize_with((place / KINDS + 1) * KINDS, Cell::default);
        if let Some(cell) = self.usual.get_mut(place) {
            cell.record(sample);
        }
    }

    fn record_other(&mut self, sample: &Sample) {
        let Sample {
            transaction,
            op,
            outcome,
            expected,
            ..
        } = *sample;
        let series = Series {
            transaction,
            op,
            outcome,
            expected,
        };
        let place = match self.other.binary_search_by_key(&series, |(key, _)| *key) {
            Ok(place) => place,
            Err(place) => {
                self.other.insert(place, (series, Cell::default()));
                place
            }
        };
        if let Some((_, cell)) = self.other.get_mut(place) {
            cell.record(sample);
        }
    }

    /// Hand out every cell that was recorded into; the receiver drains its counts.
    pub(crate) fn drain(&mut self, mut receive: impl FnMut(Series, &mut Cell)) {
        if !std::mem::take(&mut self.touched) {
            return;
        }
        for (transaction, cells) in (0_u16..).zip(self.usual.chunks_mut(KINDS)) {
            for (op, cell) in (0_u8..)
                .zip(cells)
                .filter(|(_, cell)| !cell.counts.is_empty())
            {
                receive(
                    Series {
                        transaction,
                        op,
                        outcome: 0,
                        expected: true,
                    },
                    cell,
                );
            }
        }
        for (series, cell) in self
            .other
            .iter_mut()
            .filter(|(_, cell)| !cell.counts.is_empty())
        {
            receive(*series, cell);
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
    pub(crate) fn new(target: Option<u16>, table: Table) -> Self {
        Self {
            target,
            table: Mutex::new(table),
        }
    }

    /// Record a batch of samples.
    pub(crate) fn flush(&self, batch: &[Sample]) {
        let mut table = hold(&self.table);
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
