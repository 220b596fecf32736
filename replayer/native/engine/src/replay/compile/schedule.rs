//! A schedule: all that is needed to make a replay program's batches out of the trace's tables, as often as they are wanted.

use super::calibration::Calibration;
use super::clock::positive;
use super::lanes::Lanes;
use super::path_map::PathMap;
use super::table::Table;
use super::tree_state::Inherited;
use super::waits::{Far, Waits};
use replayer_trace::{Event, TraceTables};
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
}

/// The rows that a replay program plays.
#[derive(Debug)]
pub(crate) enum Part {
    /// All of the trace.
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
