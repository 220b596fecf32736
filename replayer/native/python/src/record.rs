//! Rows and intervals of a recording.

use crate::histogram::Histogram;
use pyo3::prelude::*;
use replayer_engine::{IntervalData, RowData};

/// What was measured of one key in one interval.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Row {
    data: RowData,
}

impl From<RowData> for Row {
    fn from(data: RowData) -> Self {
        Self { data }
    }
}

#[pymethods]
impl Row {
    #[getter]
    fn target(&self) -> u16 {
        self.data.target
    }

    #[getter]
    fn round(&self) -> u16 {
        self.data.round
    }

    #[getter]
    fn phase(&self) -> &'static str {
        self.data.phase.name()
    }

    #[getter]
    fn transaction(&self) -> &str {
        &self.data.transaction
    }

    #[getter]
    fn op(&self) -> &'static str {
        self.data.op
    }

    #[getter]
    fn outcome(&self) -> &'static str {
        self.data.outcome
    }

    #[getter]
    fn expected(&self) -> bool {
        self.data.expected
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.data.bytes
    }

    #[getter]
    fn histogram(&self) -> PyResult<Histogram> {
        Histogram::from_v2(&self.data.histogram)
    }
}

/// One interval, or what is left of one at a boundary, of recordings.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Interval {
    data: IntervalData,
}

impl From<IntervalData> for Interval {
    fn from(data: IntervalData) -> Self {
        Self { data }
    }
}

#[pymethods]
impl Interval {
    #[getter]
    fn start_ns(&self) -> u64 {
        self.data.start_ns
    }

    #[getter]
    fn end_ns(&self) -> u64 {
        self.data.end_ns
    }

    #[getter]
    fn users(&self) -> u32 {
        self.data.users
    }

    #[getter]
    fn rows(&self) -> Vec<Row> {
        self.data.rows.iter().cloned().map(Row::from).collect()
    }
}
