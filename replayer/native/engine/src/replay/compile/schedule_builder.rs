//! Cooking: a schedule and the trace's tables become batches, one after the other.

use super::batches::{BatchBuilder, Needs};
use super::schedule::Schedule;
use crate::replay::program::CallBatch;
use replayer_trace::{TableRows, TraceError};

impl Schedule {
    /// Make all batches, from the first to the last, until `receive` says that it wants no more.
    pub(crate) fn build(
        &self,
        mut receive: impl FnMut(CallBatch) -> bool,
    ) -> Result<Needs, String> {
        let told = |error: TraceError| error.to_string();
        let mut events = self.streams.events(self.rows.0).map_err(told)?;
        let mut edges = Edges::new(self.streams.edges().map_err(told)?);
        let mut batch_builder = BatchBuilder::new(self);
        while let Some((row, event)) = events.next_event().map_err(told)? {
            if row > self.rows.1 {
                break;
            }
            if row < self.rows.0 {
                continue;
            }
            batch_builder.push(row, &event, edges.of(row).map_err(told)?);
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

/// Edges beside the events that they belong to.
pub(crate) struct Edges {
    rows: TableRows<(u64, u64)>,
    /// The edge that belongs to a later event.
    next: Option<(u64, u64)>,
    begun: bool,
    earlier: Vec<u64>,
}

/// Edges of one event that are kept (chosen: an event waits for one row a lane at most; those that are left out follow from others, or
/// the trace is none).
const MOST_EDGES: usize = 1 << 16;

impl Edges {
    pub(crate) fn new(rows: TableRows<(u64, u64)>) -> Edges {
        Edges {
            rows,
            next: None,
            begun: false,
            earlier: Vec::new(),
        }
    }

    /// The rows that an event waits for; asked in the order of rows.
    pub(crate) fn of(&mut self, row: u64) -> Result<&[u64], TraceError> {
        self.earlier.clear();
        if !self.begun {
            self.begun = true;
            self.next = self.rows.next_row()?;
        }
        while let Some((event, earlier)) = self.next.filter(|(event, _)| *event <= row) {
            if event == row && self.earlier.len() < MOST_EDGES {
                self.earlier.push(earlier);
            }
            self.next = self.rows.next_row()?;
        }
        Ok(&self.earlier)
    }
}
