//! Which request an event belongs to.

use crate::error::TraceError;
use crate::reader::Trace;
use crate::requests::label_name;
use crate::tables::schema::Event;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventRequest {
    pub(super) label: usize,
    pub(super) request: u32,
    first: u64,
    last: u64,
    start_ns: u64,
}

impl EventRequest {
    /// How long the pause before an event is at most: before a request its thread had nothing to do.
    pub(super) fn most_pause_ns(self, row: u64, event: &Event) -> i64 {
        if row != self.first {
            return i64::MAX;
        }
        let begin_ns = i64::try_from(self.start_ns).unwrap_or(i64::MAX);
        event.start_ns.saturating_sub(begin_ns).max(0)
    }
}

/// The pieces of each thread, and the labels they have.
#[derive(Debug, Default)]
pub(super) struct RequestPieces {
    labels: Vec<(String, FxHashSet<u32>)>,
    threads: FxHashMap<u32, Vec<EventRequest>>,
    span: Option<(u64, u64)>,
}

impl RequestPieces {
    /// The pieces of one label, or of all.
    pub(super) fn load(
        trace: &Trace,
        directory: &Path,
        wanted: Option<&str>,
    ) -> Result<Self, TraceError> {
        let mut pieces = Self::default();
        let mut known = std::collections::BTreeSet::new();
        for piece in trace.requests()? {
            let name = label_name(&piece.label);
            known.insert(name.to_owned());
            if wanted.is_some_and(|wanted| wanted != piece.label && wanted != name) {
                continue;
            }
            let (begin, end) = pieces.span.unwrap_or((u64::MAX, 0));
            pieces.span = Some((begin.min(piece.start_ns), end.max(piece.end_ns)));
            let label = pieces.label(name, piece.request);
            pieces
                .threads
                .entry(piece.thread)
                .or_default()
                .push(EventRequest {
                    label,
                    request: piece.request,
                    first: piece.first_event,
                    last: piece.last_event,
                    start_ns: piece.start_ns,
                });
        }
        match wanted {
            Some(wanted) if pieces.labels.is_empty() => {
                Err(no_such_label(directory, wanted, &known))
            }
            _ => Ok(pieces),
        }
    }

    fn label(&mut self, name: &str, request: u32) -> usize {
        let at = self.labels.iter().position(|(label, _)| label == name);
        let at = at.unwrap_or_else(|| {
            self.labels.push((name.to_owned(), FxHashSet::default()));
            self.labels.len() - 1
        });
        if let Some((_, requests)) = self.labels.get_mut(at) {
            requests.insert(request);
        }
        at
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, usize)> {
        self.labels
            .iter()
            .map(|(label, requests)| (label.as_str(), requests.len()))
    }

    pub(super) fn requests(&self) -> usize {
        self.labels.iter().map(|(_, requests)| requests.len()).sum()
    }

    /// From the begin of the first to the end of the last.
    pub(super) fn span_ns(&self) -> i64 {
        let span = self
            .span
            .map_or(0, |(begin, end)| end.saturating_sub(begin));
        i64::try_from(span).unwrap_or(i64::MAX)
    }

    pub(super) fn cursor(&self) -> Cursor<'_> {
        let begin = |(&thread, pieces)| (thread, (Vec::as_slice(pieces), 0));
        Cursor {
            threads: self.threads.iter().map(begin).collect(),
        }
    }
}

fn no_such_label(
    directory: &Path,
    wanted: &str,
    known: &std::collections::BTreeSet<String>,
) -> TraceError {
    /// Labels that a hint names (chosen).
    const SHOWN: usize = 8;
    let shown: Vec<&str> = known.iter().map(String::as_str).take(SHOWN).collect();
    let hint = match (known.len(), shown.join(", ")) {
        (0, _) => "it has no requests: import the log with --requests".to_owned(),
        (count, shown) if count > SHOWN => format!("it has {shown} and {} more", count - SHOWN),
        (_, shown) => format!("it has {shown}"),
    };
    TraceError::asked(
        format!("{} has no request {wanted}", directory.display()),
        hint,
    )
}

/// Walks through the rows of a trace.
pub(super) struct Cursor<'a> {
    threads: FxHashMap<u32, (&'a [EventRequest], usize)>,
}

impl Cursor<'_> {
    /// The piece that a row of a thread lies in; rows must come in order.
    pub(super) fn at(&mut self, row: u64, thread: u32) -> Option<EventRequest> {
        let (pieces, next) = self.threads.get_mut(&thread)?;
        while pieces.get(*next)?.last < row {
            *next += 1;
        }
        pieces
            .get(*next)
            .copied()
            .filter(|piece| piece.first <= row)
    }
}
