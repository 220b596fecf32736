//! Cooking: a recipe and the trace's tables become chunks, one after the other.

use super::chunks::{Chunker, Needs};
use super::recipe::Recipe;
use crate::replay::reel::Chunk;
use replayer_trace::{EdgeRows, TraceError};

impl Recipe {
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
