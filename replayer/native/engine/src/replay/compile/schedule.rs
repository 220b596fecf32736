//! A schedule: all that is needed to make a replay program's batches out of the trace's tables, as often as they are wanted.

use super::batches::{BatchBuilder, Needs};
use super::clock::{Calibration, positive};
use super::lanes::Lanes;
use super::path_map::PathMap;
use super::table::Table;
use super::tree_state::Inherited;
use super::waits::{Far, Waits};
use crate::replay::program::CallBatch;
use replayer_trace::{Event, TableRows, TraceError, TraceTables};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) streams: TraceTables,
    pub(crate) path_map: Arc<PathMap>,
    pub(crate) table: Table,
    pub(crate) lanes: Lanes,
    pub(crate) part: Part,
    /// First and last row.
    pub(crate) rows: (u64, u64),
    /// When the replay program begins, on the trace's clock.
    pub(crate) begin_ns: i64,
    pub(crate) calibration: Calibration,
    pub(crate) users: u32,
    /// Files that were open before.
    pub(crate) inherited: Vec<Inherited>,
    pub(crate) far: Far,
}

impl Schedule {
    /// What is needed to find out which lane an event waits for.
    pub(crate) fn waits(&self) -> Waits {
        match self.part {
            Part::Pieces(_) => Waits::of_some(self.lanes.count),
            Part::Whole => {
                let rows = self.rows.1.saturating_sub(self.rows.0).saturating_add(1);
                Waits::of_all(rows, self.lanes.count, Arc::clone(&self.far))
            }
        }
    }

    /// Make all batches, from the first to the last, until `receive` says that it wants no more.
    pub(crate) fn build(
        &self,
        mut receive: impl FnMut(CallBatch) -> bool,
    ) -> Result<Needs, String> {
        let mut events = self.streams.events(self.rows.0)?;
        let mut edges = Edges::new(self.streams.edges()?)?;
        let mut batch_builder = BatchBuilder::new(self);
        while let Some((row, event)) = events.next_event()? {
            if row > self.rows.1 {
                break;
            }
            if row < self.rows.0 {
                continue;
            }
            batch_builder.push(row, &event, edges.of(row)?);
            if batch_builder.is_full()
                && let Some(batch) = batch_builder.take()
                && !receive(batch)
            {
                return Ok(batch_builder.needs());
            }
        }
        if let Some(batch) = batch_builder.take() {
            receive(batch);
        }
        Ok(batch_builder.needs())
    }
}

/// The rows that a replay program plays.
#[derive(Debug)]
pub(crate) enum Part {
    Whole,
    /// Some rows of some threads: by thread and first row.
    Pieces(Vec<Piece>),
}

/// Rows of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) thread: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the work of the request began, on the trace's clock.
    pub(crate) start_ns: u64,
}

impl Part {
    /// So much think time before an event, as far as it belongs to what is played; `None` if the event does not.
    pub(super) fn pause(&self, row: u64, event: &Event, ns: i64) -> Option<u64> {
        let gap_ns = positive(ns);
        let Part::Pieces(pieces) = self else {
            return Some(gap_ns);
        };
        let after =
            pieces.partition_point(|piece| (piece.thread, piece.first) <= (event.thread, row));
        let piece = pieces.get(after.checked_sub(1)?)?;
        if piece.thread != event.thread || piece.last < row {
            return None;
        }
        if piece.first == row {
            // Before a request its thread had nothing to do: that is no think time.
            let begun = i64::try_from(piece.start_ns).unwrap_or(i64::MAX);
            return Some(gap_ns.min(positive(event.start_ns.saturating_sub(begun))));
        }
        Some(gap_ns)
    }
}

/// Edges beside the events that they belong to.
pub(crate) struct Edges {
    rows: TableRows<(u64, u64)>,
    /// The edge that belongs to a later event.
    next: Option<(u64, u64)>,
    earlier: Vec<u64>,
}

/// Edges of one event that are kept (chosen: an event waits for one row a lane at most; those that are left out follow from others, or
/// the trace is none).
const MOST_EDGES: usize = 1 << 16;

impl Edges {
    pub(crate) fn new(mut rows: TableRows<(u64, u64)>) -> Result<Edges, TraceError> {
        Ok(Edges {
            next: rows.next_row()?,
            rows,
            earlier: Vec::new(),
        })
    }

    /// The rows that an event waits for; asked in the order of rows.
    pub(crate) fn of(&mut self, row: u64) -> Result<&[u64], TraceError> {
        self.earlier.clear();
        while let Some((event, earlier)) = self.next.filter(|(event, _)| *event <= row) {
            if event == row && self.earlier.len() < MOST_EDGES {
                self.earlier.push(earlier);
            }
            self.next = self.rows.next_row()?;
        }
        Ok(&self.earlier)
    }
}
