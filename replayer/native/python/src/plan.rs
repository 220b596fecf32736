//! Plans, checked and ready to run.

use crate::error::of_engine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use replayer_engine::Program;
use std::sync::Arc;

/// A plan of format 1, checked and ready to run.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Plan {
    pub(crate) program: Arc<Program>,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (document, traces=Vec::new()), text_signature = "(document, traces=())")]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a converted sequence is owned"
    )]
    fn new(py: Python<'_>, document: &[u8], traces: Vec<String>) -> PyResult<Plan> {
        let program = py.detach(|| Program::parse(document, &traces));
        Ok(Plan {
            program: Arc::new(program.map_err(of_engine)?),
        })
    }

    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.transaction_names())
    }

    #[getter]
    fn replay_lanes(&self, py: Python<'_>) -> PyResult<u16> {
        py.detach(|| self.program.replay_lanes()).map_err(of_engine)
    }

    #[getter]
    fn datasets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.dataset_names())
    }
}
