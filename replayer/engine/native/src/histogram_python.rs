//! The histogram of the Python door.

use crate::histogram::{self, Packer};
use crate::lock::hold;
use hdrhistogram::Histogram as Hdr;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Mutex;

/// An HDR histogram of nanoseconds, 3 significant digits, 1 ns to 24 h.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Histogram {
    counts: Mutex<Hdr<u64>>,
}

impl From<Hdr<u64>> for Histogram {
    fn from(counts: Hdr<u64>) -> Self {
        Self {
            counts: Mutex::new(counts),
        }
    }
}

impl Histogram {
    /// The histogram of a compressed V2 form.
    pub(crate) fn from_v2(packed: &[u8]) -> PyResult<Self> {
        histogram::unpack(packed)
            .map(Self::from)
            .map_err(|reason| PyValueError::new_err(format!("this is no V2 histogram: {reason}")))
    }
}

/// One part in 10^12 is taken off before rounding up, as in reports: 99.9 % of 1,000 samples are 999, and not, through the last bit
/// of a float, all of them.
const ROUNDING: f64 = 1.0 - 1e-12;

/// The highest value equivalent to the sample at a percentile; 0 when empty.
fn value_at(counts: &Hdr<u64>, percent: f64) -> u64 {
    if counts.is_empty() {
        return 0;
    }
    counts.highest_equivalent(counts.value_at_percentile(percent * ROUNDING))
}

#[pymethods]
impl Histogram {
    #[new]
    #[pyo3(signature = (v2 = None))]
    fn new(v2: Option<&[u8]>) -> PyResult<Self> {
        v2.map_or_else(|| Ok(histogram::empty().into()), Self::from_v2)
    }

    #[pyo3(signature = (value_ns, count = 1))]
    fn record(&self, value_ns: u64, count: u64) {
        histogram::record(&mut hold(&self.counts), value_ns, count);
    }

    fn add(&self, other: &Self) {
        // Taken one after the other: a histogram may be added to itself.
        let other = hold(&other.counts).clone();
        histogram::add(&mut hold(&self.counts), &other);
    }

    fn copy(&self) -> Self {
        hold(&self.counts).clone().into()
    }

    /// The compressed V2 form.
    fn to_v2<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, Packer::default().pack(&hold(&self.counts)))
    }

    /// The highest value equivalent to the one at that percentile; 0 when empty.
    fn percentile(&self, percent: f64) -> PyResult<u64> {
        if !(0.0..=100.0).contains(&percent) {
            let message = format!("percent must be between 0 and 100, got {percent}");
            return Err(PyValueError::new_err(message));
        }
        Ok(value_at(&hold(&self.counts), percent))
    }

    /// (value, count) of every recorded bucket, ascending; the value is the bucket's highest equivalent.
    fn buckets(&self) -> Vec<(u64, u64)> {
        let counts = hold(&self.counts);
        let recorded = counts.iter_recorded();
        recorded
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect()
    }

    #[getter]
    fn count(&self) -> u64 {
        hold(&self.counts).len()
    }

    #[getter]
    fn min(&self) -> u64 {
        hold(&self.counts).min()
    }

    #[getter]
    fn max(&self) -> u64 {
        hold(&self.counts).max()
    }

    #[getter]
    fn mean(&self) -> f64 {
        hold(&self.counts).mean()
    }

    #[getter]
    fn stdev(&self) -> f64 {
        hold(&self.counts).stdev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_of_a_round_number_of_samples_is_none_beyond_it() {
        let mut counts = histogram::empty();
        for thousands in 1..=300_u64 {
            // The slowest thousandth, and all others.
            histogram::record(&mut counts, 1000, 999);
            histogram::record(&mut counts, 9000, 1);
            assert!(value_at(&counts, 99.9) < 1010, "{thousands},000 samples");
            assert!(value_at(&counts, 99.91) > 8000, "{thousands},000 samples");
        }
        assert!(value_at(&counts, 100.0) > 8000);
        assert!(value_at(&counts, 0.0) < 1010);
    }
}
