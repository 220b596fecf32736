//! What the Python door hands out of an engine's queues.

use crate::core::{OutcomeData, StuckData, TransactionData};
use crate::ops::outcome_name;
use pyo3::prelude::*;

/// One finished transaction, for event listeners.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Transaction(pub(crate) TransactionData);

#[pymethods]
impl Transaction {
    #[getter]
    fn user(&self) -> u32 {
        self.0.user
    }
    #[getter]
    fn target(&self) -> u16 {
        self.0.target
    }
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }
    #[getter]
    fn end_ns(&self) -> u64 {
        self.0.end_ns
    }
    #[getter]
    fn latency_ns(&self) -> u64 {
        self.0.latency_ns
    }
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }
    #[getter]
    fn error(&self) -> Option<&str> {
        self.0.error.as_deref()
    }
}

/// An op that has been in the kernel for longer than the limit.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Stuck(pub(crate) StuckData);

#[pymethods]
impl Stuck {
    #[getter]
    fn user(&self) -> u32 {
        self.0.user
    }
    #[getter]
    fn target(&self) -> u16 {
        self.0.target
    }
    #[getter]
    fn op(&self) -> &'static str {
        self.0.op
    }
    #[getter]
    fn path(&self) -> String {
        String::from_utf8_lossy(&self.0.path).into_owned()
    }
    #[getter]
    fn age_ns(&self) -> u64 {
        self.0.age_ns
    }
}

/// The answer to one submitted command of an interactive user.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Outcome(pub(crate) OutcomeData);

#[pymethods]
impl Outcome {
    #[getter]
    fn ticket(&self) -> u64 {
        self.0.ticket
    }
    #[getter]
    fn value(&self) -> u64 {
        self.0.value
    }
    #[getter]
    fn outcome(&self) -> &'static str {
        outcome_name(self.0.outcome)
    }
    #[getter]
    fn service_ns(&self) -> u64 {
        self.0.service_ns
    }
}
