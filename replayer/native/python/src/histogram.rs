//! Histograms.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use replayer_engine as engine;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An HDR histogram of nanoseconds, 3 significant digits, 1 ns to 24 h.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Histogram {
    counts: Mutex<engine::Histogram>,
}

impl From<engine::Histogram> for Histogram {
    fn from(counts: engine::Histogram) -> Self {
        Self {
            counts: Mutex::new(counts),
        }
    }
}

impl Histogram {
    /// The histogram of a compressed V2 form.
    pub(crate) fn from_v2(packed: &[u8]) -> PyResult<Self> {
        engine::Histogram::from_v2(packed)
            .map(Self::from)
            .map_err(|reason| {
                PyValueError::new_err(format!("this is not a V2 histogram: {reason}"))
            })
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, engine::Histogram> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Histogram {
    #[new]
    #[pyo3(signature = (v2 = None))]
    fn new(v2: Option<&[u8]>) -> PyResult<Self> {
        v2.map_or_else(|| Ok(engine::Histogram::default().into()), Self::from_v2)
    }

    #[pyo3(signature = (value_ns, count = 1))]
    fn record(&self, value_ns: u64, count: u64) {
        self.held().record(value_ns, count);
    }

    fn add(&self, other: &Self) {
        // Taken one after the other: a histogram may be added to itself.
        let other = other.held().clone();
        self.held().add(&other);
    }

    /// The sum of several.
    #[staticmethod]
    fn merged(parts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut held = Vec::new();
        for part in parts.try_iter()? {
            held.push(part?.cast::<Self>()?.get().held().clone());
        }
        Ok(held.iter().collect::<engine::Histogram>().into())
    }

    /// The buckets up to the one that holds a value, and those above.
    fn split(&self, value_ns: u64) -> (Self, Self) {
        let (below, above) = self.held().split(value_ns);
        (below.into(), above.into())
    }

    fn copy(&self) -> Self {
        self.held().clone().into()
    }

    /// The compressed V2 form.
    fn to_v2<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.held().to_v2())
    }

    /// The highest value equivalent to the one at that percentile; 0 when empty.
    fn percentile(&self, percent: f64) -> PyResult<u64> {
        if !(0.0..=100.0).contains(&percent) {
            let message = format!("percent must be between 0 and 100, got {percent}");
            return Err(PyValueError::new_err(message));
        }
        Ok(self.held().percentile(percent))
    }

    /// (value, count) of every recorded bucket, ascending; the value is the bucket's highest equivalent.
    fn buckets(&self) -> Vec<(u64, u64)> {
        self.held().buckets()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.held().count()
    }

    #[getter]
    fn min(&self) -> u64 {
        self.held().min()
    }

    #[getter]
    fn max(&self) -> u64 {
        self.held().max()
    }

    #[getter]
    fn max_at_least(&self) -> u64 {
        self.held().max_at_least()
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.held().mean()
    }

    #[getter]
    fn stdev(&self) -> f64 {
        self.held().stdev()
    }
}
