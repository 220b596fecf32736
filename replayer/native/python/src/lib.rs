//! The module `replayer._native`: conversions and the release of the GIL, no logic.

mod engine;
mod error;
mod folder;
mod histogram;
mod record;
mod recorder;
mod trace;

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};
use replayer_ops::{Flag, Op};

const BUILD_PROFILE: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};

/// The native part of replayer: the engine, and traces.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("BUILD_PROFILE", BUILD_PROFILE)?;
    m.add("OPS", table(m.py())?)?;
    m.add_function(wrap_pyfunction!(engine::clock_ns, m)?)?;
    m.add_function(wrap_pyfunction!(engine::confinement, m)?)?;
    m.add_function(wrap_pyfunction!(engine::trace_check_order, m)?)?;
    m.add_function(wrap_pyfunction!(folder::evict_machine_caches, m)?)?;
    m.add_class::<engine::Plan>()?;
    m.add_class::<folder::Sandbox>()?;
    m.add_class::<folder::Space>()?;
    m.add_class::<folder::Task>()?;
    m.add_class::<folder::Finding>()?;
    m.add_class::<histogram::Histogram>()?;
    m.add_class::<record::Recording>()?;
    m.add_function(wrap_pyfunction!(record::read_log, m)?)?;
    m.add_function(wrap_pyfunction!(record::read_slices, m)?)?;
    m.add_class::<record::Row>()?;
    m.add_class::<record::Interval>()?;
    m.add_class::<recorder::ProbeRecording>()?;
    m.add_class::<recorder::FlightRecording>()?;
    m.add_function(wrap_pyfunction!(recorder::gap_cost, m)?)?;
    m.add_function(wrap_pyfunction!(recorder::make_quick_calls, m)?)?;
    m.add_class::<engine::Engine>()?;
    m.add_class::<engine::Transaction>()?;
    m.add_class::<engine::Stuck>()?;
    m.add_class::<engine::Outcome>()?;
    trace::register(m)
}

/// One row for each op: name, class, contents, the op that does the same, and the flags that hold.
fn table(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let rows = Op::ALL.iter().map(|op| row(py, *op));
    PyTuple::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

fn row(py: Python<'_>, op: Op) -> PyResult<Bound<'_, PyAny>> {
    let flags = Flag::ALL.iter().filter(|flag| op.is(**flag));
    let flags = PyFrozenSet::new(py, flags.map(|flag| format!("{flag:?}")))?;
    let [class, contents] = [format!("{:?}", op.class()), format!("{:?}", op.contents())];
    let (class, contents) = (class.to_lowercase(), contents.to_lowercase());
    let row = (op.name(), class, contents, op.same_as(), flags);
    Ok(row.into_pyobject(py)?.into_any())
}
