//! How many rows the tables have that others name by number: a number beyond them means nothing.

use crate::error::TraceError;
use crate::reader::RequestPiece;
use crate::tables::column::Spec;
use crate::tables::events::Event;
use crate::tables::paths;
use crate::tables::read::TableReader;
use std::path::Path;

/// Rows of the tables `events` and `paths`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) events: u64,
    pub(crate) paths: u64,
}

impl Extent {
    /// Of tables without the others.
    pub(crate) const UNKNOWN: Self = Self {
        events: u64::MAX,
        paths: u64::MAX,
    };

    /// Of the tables of a folder; `specs` are the columns of its events.
    pub(crate) fn of(directory: &Path, specs: &'static [Spec]) -> Result<Self, TraceError> {
        let rows = |name, specs| {
            let lengths = TableReader::open(directory, name, specs)?.group_lengths();
            Ok(lengths.into_iter().fold(0, u64::saturating_add))
        };
        Ok(Self {
            events: rows("events", specs)?,
            paths: rows("paths", &paths::SPECS)?,
        })
    }

    /// Whether all is there that the event of a row names, and before it what kept it waiting.
    pub(crate) fn holds(self, row: u64, event: &Event) -> bool {
        [event.path, event.to_path]
            .into_iter()
            .all(|path| self.holds_path(path))
            && event.after.is_none_or(|after| after < row)
    }

    pub(crate) fn holds_path(self, path: Option<u32>) -> bool {
        path.is_none_or(|path| u64::from(path) < self.paths)
    }

    /// Whether an event waits for an earlier one.
    pub(crate) fn holds_edge(self, event: u64, earlier: u64) -> bool {
        earlier < event && event < self.events
    }

    pub(crate) fn holds_piece(self, piece: &RequestPiece) -> bool {
        piece.first_event <= piece.last_event && piece.last_event < self.events
    }
}
