//! Work under way on native threads.

use pyo3::prelude::*;

/// Work under way on native threads: poll it, cancel it, collect its result.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Task {}
