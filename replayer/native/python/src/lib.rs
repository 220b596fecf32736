//! The module `replayer._native`: conversions and the release of the GIL, no logic.

mod engine;
mod error;
mod folder;
mod histogram;
mod ops;
mod plan;
mod record;
mod trace;

use pyo3::prelude::*;

const BUILD_PROFILE: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};

/// The native part of replayer: the engine, and traces.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("BUILD_PROFILE", BUILD_PROFILE)?;
    m.add("OPS", ops::table(m.py())?)?;
    m.add_function(wrap_pyfunction!(engine::clock_ns, m)?)?;
    m.add_function(wrap_pyfunction!(engine::confinement, m)?)?;
    m.add_function(wrap_pyfunction!(engine::trace_check_order, m)?)?;
    m.add_function(wrap_pyfunction!(folder::evict_machine_caches, m)?)?;
    m.add_class::<plan::Plan>()?;
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
    m.add_class::<engine::Engine>()?;
    m.add_class::<engine::Transaction>()?;
    m.add_class::<engine::Stuck>()?;
    m.add_class::<engine::Outcome>()?;
    trace::register(m)
}
