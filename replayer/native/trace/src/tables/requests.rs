//! The table `requests`: pieces of threads that a server did for one request.

use crate::error::TraceError;
use crate::requests::Request;
use crate::tables::column::{Kind, Layout, Spec};
use crate::tables::write::TableWriter;
use parquet::data_type::ByteArray;
use std::path::Path;

pub(crate) const SPECS: [Spec; 8] = [
    Spec::new("request", Kind::Int32, Layout::Delta),
    Spec::new("label", Kind::Text, Layout::Dictionary),
    Spec::new("thread", Kind::Int32, Layout::Delta),
    Spec::new("first_event", Kind::Int64, Layout::Delta),
    Spec::new("last_event", Kind::Int64, Layout::Delta),
    Spec::new("events", Kind::Int64, Layout::Delta),
    Spec::new("start_ns", Kind::Int64, Layout::Delta),
    Spec::new("end_ns", Kind::Int64, Layout::Delta),
];

/// Write all requests; their times become relative to the begin of the trace.
pub(crate) fn write(
    directory: &Path,
    requests: &[Request],
    first_ns: i64,
) -> Result<u64, TraceError> {
    let mut table = TableWriter::create(directory, "requests", &SPECS)?;
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
