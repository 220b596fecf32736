//! The table `edges`: which event waits for which event of another thread.

use crate::error::TraceError;
use crate::order::{Edge, EdgeReason};
use crate::tables::column::{Kind, Layout, Spec};
use crate::tables::write::{Sink, TableWriter};
use parquet::data_type::ByteArray;
use std::collections::BTreeMap;

pub(crate) const SPECS: [Spec; 3] = [
    Spec::new("event", Kind::Int64, Layout::Delta),
    Spec::new("waits_for", Kind::Int64, Layout::Delta),
    Spec::new("reason", Kind::Text, Layout::Dictionary),
];

/// Takes edges in the order of the events that wait.
pub(crate) struct EdgeWriter {
    table: TableWriter,
    pub(crate) by_reason: BTreeMap<EdgeReason, u64>,
}

impl EdgeWriter {
    pub(crate) fn create(sink: Sink) -> Self {
        Self {
            table: TableWriter::to(sink, "edges", &SPECS),
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
