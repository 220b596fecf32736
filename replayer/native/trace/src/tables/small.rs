//! Writes the tables `edges`, `paths` and `requests`.

use crate::error::TraceError;
use crate::order::{Edge, EdgeReason};
use crate::paths::Paths;
use crate::requests::Request;
use crate::sharing::{PathUsage, SharingLabel};
use crate::tables::schema::{EDGES, PATHS, REQUESTS};
use crate::tables::text::escaped_whole;
use crate::tables::write::{Sink, TableWriter};
use parquet::data_type::ByteArray;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Takes edges in the order of the events that wait.
pub(crate) struct EdgeWriter {
    table: TableWriter,
    pub(crate) by_reason: BTreeMap<EdgeReason, u64>,
}

impl EdgeWriter {
    pub(crate) fn create(sink: Sink) -> Self {
        Self {
            table: TableWriter::to(sink, "edges", &EDGES),
            by_reason: BTreeMap::new(),
        }
    }

    pub(crate) fn push(&mut self, edge: Edge) -> Result<(), TraceError> {
        *self.by_reason.entry(edge.reason).or_default() += 1;
        if let [event, from, reason] = self.table.columns.as_mut_slice() {
            event.push(i64::try_from(edge.to).ok());
            from.push(i64::try_from(edge.from).ok());
            reason.push_text(Some(ByteArray::from(edge.reason.name())));
        }
        self.table.end_row()
    }

    pub(crate) fn finish(self) -> Result<u64, TraceError> {
        self.table.finish()
    }
}

/// Write all paths in the order of their rows. Returns how many have each label.
pub(crate) fn write_paths(
    directory: &Path,
    paths: &Paths,
    usage: &PathUsage,
) -> Result<Value, TraceError> {
    let mut table = TableWriter::create(directory, "paths", &PATHS)?;
    let (mut read_only, mut private, mut mutable) = (0_u64, 0_u64, 0_u64);
    let mut contended = 0_u64;
    for &place in paths.rows() {
        let label = usage.label(place);
        *match label {
            SharingLabel::SharedReadOnly => &mut read_only,
            SharingLabel::Private => &mut private,
            SharingLabel::SharedMutable => &mut mutable,
        } += 1;
        contended += u64::from(usage.is_contended(place));
        if let [path, name] = table.columns.as_mut_slice() {
            path.push_text(Some(escaped_whole(paths.text(place))));
            name.push_text(Some(ByteArray::from(label.name())));
        }
        table.end_row()?;
    }
    table.finish()?;
    Ok(json!({
        "shared read-only": read_only,
        "private": private,
        "shared mutable": mutable,
        "open in two threads at once": contended,
    }))
}

/// Write all requests; their times become relative to the begin of the trace.
pub(crate) fn write_requests(
    directory: &Path,
    requests: &[Request],
    first_ns: i64,
) -> Result<u64, TraceError> {
    let mut table = TableWriter::create(directory, "requests", &REQUESTS)?;
    for request in requests {
        if let [number, label, thread, first, last, events, start, end] =
            table.columns.as_mut_slice()
        {
            number.push(Some(i64::from(request.number)));
            label.push_text(Some(ByteArray::from(request.label.as_str())));
            thread.push(Some(i64::from(request.thread)));
            first.push(i64::try_from(request.first).ok());
            last.push(i64::try_from(request.last).ok());
            events.push(i64::try_from(request.events).ok());
            start.push(Some(request.start_ns.saturating_sub(first_ns).max(0)));
            end.push(Some(request.end_ns.saturating_sub(first_ns).max(0)));
        }
        table.end_row()?;
    }
    table.finish()
}
