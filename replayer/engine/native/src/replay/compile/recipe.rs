//! A recipe: all that is needed to make a reel's chunks out of the trace's tables, as often as they are wanted.

use super::atlas::Atlas;
use super::chunks::{Chunker, Needs, Part};
use super::lanes::Lanes;
use super::past::Inherited;
use super::table::Table;
use super::waits::{Far, Waits};
use crate::replay::reel::Chunk;
use replayer_trace::{EdgeRows, Streams, TraceError};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) streams: Streams,
    pub(crate) atlas: Arc<Atlas>,
    pub(crate) table: Table,
    pub(crate) lanes: Lanes,
    pub(crate) part: Part,
    /// First and last row.
    pub(crate) rows: (u64, u64),
    /// When the reel begins, on the trace's clock.
    pub(crate) begin_ns: i64,
    pub(crate) call_ns: u64,
    pub(crate) users: u32,
    /// Files that were open before.
    pub(crate) inherited: Vec<Inherited>,
    pub(crate) far: Far,
}

impl Recipe {
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

    /// Make all chunks, from the first to the last, until `receive` says that it wants no more.
    pub(crate) fn cook(&self, mut receive: impl FnMut(Chunk) -> bool) -> Result<Needs, String> {
        let told = |error: TraceError| error.to_string();
        let mut events = self.streams.events(self.rows.0).map_err(told)?;
        let mut edges = Edges::new(self.streams.edges().map_err(told)?);
        let mut chunker = Chunker::new(self);
        while let Some((row, event)) = events.next_event().map_err(told)? {
            if row > self.rows.1 {
                break;
            }
            if row < self.rows.0 {
                continue;
            }
            chunker.push(row, &event, edges.of(row).map_err(told)?);
            if chunker.is_full()
                && let Some(chunk) = chunker.take()
                && !receive(chunk)
            {
                return Ok(chunker.needs());
            }
        }
        if let Some(chunk) = chunker.take() {
            receive(chunk);
        }
        Ok(chunker.needs())
    }
}

/// Edges beside the events that they belong to.
pub(crate) struct Edges {
    rows: EdgeRows,
    /// The edge that belongs to a later event.
    next: Option<(u64, u64)>,
    begun: bool,
    earlier: Vec<u64>,
}

/// Edges of one event that are kept (chosen: an event waits for one row a lane at most; those that are left out follow from others, or
/// the trace is none).
const MOST_EDGES: usize = 1 << 16;

impl Edges {
    pub(crate) fn new(rows: EdgeRows) -> Edges {
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
            self.next = self.rows.next_edge()?;
        }
        while let Some((event, earlier)) = self.next.filter(|(event, _)| *event <= row) {
            if event == row && self.earlier.len() < MOST_EDGES {
                self.earlier.push(earlier);
            }
            self.next = self.rows.next_edge()?;
        }
        Ok(&self.earlier)
    }
}
