//! Recording with eBPF.

use crate::error::{of_recorder, of_trace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use replayer_recorder::{
    CallLimit, FlightRecorder, Limits, Place, Recorder, RecorderError, SlowCall,
};
use replayer_trace::bpf;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A recording of file calls by the probe in the kernel.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct ProbeRecording(Mutex<Recorder>);

#[pymethods]
impl ProbeRecording {
    #[new]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn new(py: Python<'_>, path: PathBuf, ring_bytes: u32, limit_bytes: u64) -> PyResult<Self> {
        py.detach(|| Recorder::open(&path, ring_bytes, limit_bytes))
            .map(|recorder| Self(Mutex::new(recorder)))
            .map_err(of_recorder)
    }

    /// Record once more, into another file, after the end.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn restart(&self, py: Python<'_>, path: PathBuf, limit_bytes: u64) -> PyResult<()> {
        with(py, &self.0, |recorder| recorder.restart(&path, limit_bytes))
    }

    /// Record pages that are touched through mappings of files below these directories, until the recording ends.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn record_pages(&self, py: Python<'_>, roots: Vec<u64>) -> PyResult<()> {
        with(py, &self.0, |recorder| recorder.record_pages(&roots))
    }

    /// Record the next process that this thread starts, from its execve on, and all that descends from it.
    fn arm(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.0, Recorder::arm)
    }

    /// Record processes that run, and all that descends from them from now on.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn attach_to(&self, py: Python<'_>, processes: Vec<u32>) -> PyResult<()> {
        with(py, &self.0, |recorder| recorder.attach_to(&processes))
    }

    /// Tell how far it is, as JSON.
    fn progress(&self, py: Python<'_>) -> PyResult<String> {
        let progress = with(py, &self.0, |recorder| recorder.progress())?;
        let told = json!({
            "records": progress.records,
            "bytes": progress.bytes,
            "lost": progress.lost,
            "live": progress.live,
            "is_full": progress.is_full,
            "trouble": progress.trouble,
        });
        Ok(told.to_string())
    }

    /// The processes that were recorded, as far as records told.
    fn processes(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        with(py, &self.0, |recorder| Ok(recorder.processes()))
    }

    /// Detach from the kernel, and end the file.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.0, Recorder::finish)
    }
}

/// Make so many calls that follow each other at once.
///
/// # Errors
/// `OSError`: a file cannot be used.
#[pyfunction]
pub(crate) fn make_quick_calls(py: Python<'_>, count: u64) -> PyResult<()> {
    Ok(py.detach(|| replayer_recorder::make_quick_calls(count))?)
}

/// What a log shows of the gaps between calls: how many there are, what the shortest have beside what the probe tells of them, and the
/// median of that, in ns. None where it has too few.
///
/// # Errors
/// The log cannot be read.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    reason = "Python hands over what it converted"
)]
pub(crate) fn gap_cost(log: PathBuf) -> PyResult<Option<(usize, u64, u64)>> {
    let found = bpf::gap_cost(&log).map_err(of_trace)?;
    Ok(found.map(|cost| (cost.count, cost.untold_ns, cost.told_ns)))
}

/// Use a recording without the GIL.
fn with<T: Send, R: Send>(
    py: Python<'_>,
    recording: &Mutex<T>,
    using: impl FnOnce(&mut T) -> Result<R, RecorderError> + Send,
) -> PyResult<R> {
    py.detach(|| using(&mut recording.lock().unwrap_or_else(PoisonError::into_inner)))
        .map_err(of_recorder)
}

/// A recording of which the latest records are kept in memory.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct FlightRecording(Mutex<FlightRecorder>);

#[pymethods]
impl FlightRecording {
    #[new]
    fn new(
        py: Python<'_>,
        kept: (u32, u64, u64),
        when: Option<(String, u64, Vec<PathBuf>)>,
    ) -> PyResult<Self> {
        let limit = match when {
            None => None,
            Some((word, limit_ns, roots)) => {
                let limit = CallLimit::of(&word, limit_ns, roots);
                Some(limit.ok_or_else(|| PyValueError::new_err(word))?)
            }
        };
        let (ring_bytes, least_ns, most_bytes) = kept;
        let limits = Limits {
            ring_bytes,
            least_ns,
            most_bytes,
        };
        py.detach(|| FlightRecorder::open(limits, limit))
            .map(|recorder| Self(Mutex::new(recorder)))
            .map_err(of_recorder)
    }

    /// Record processes that run, and all that descends from them from now on.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn attach_to(&self, py: Python<'_>, processes: Vec<u32>) -> PyResult<()> {
        with(py, &self.0, |recorder| recorder.attach_to(&processes))
    }

    /// Look at what is due, and tell how it stands, as JSON.
    fn watch(&self, py: Python<'_>) -> PyResult<String> {
        let state = with(py, &self.0, FlightRecorder::watch)?;
        let told = json!({
            "live": state.live,
            "lost": state.lost,
            "kept_ns": state.kept_ns,
            "bytes": state.bytes,
            "slow": state.slow.iter().map(told_call).collect::<Vec<_>>(),
        });
        Ok(told.to_string())
    }

    /// Write what is kept as a log, and tell what it is, as JSON.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn dump(&self, py: Python<'_>, path: PathBuf) -> PyResult<String> {
        let dump = with(py, &self.0, |recorder| recorder.dump(&path))?;
        let told = json!({
            "begin_wall_ns": dump.begin_wall_ns,
            "begin_ns": dump.begin_ns,
            "kept_ns": dump.kept_ns,
            "records": dump.records,
            "pending": dump.pending.iter().map(told_call).collect::<Vec<_>>(),
            "places": dump.places.iter().map(told_place).collect::<Vec<_>>(),
        });
        Ok(told.to_string())
    }

    /// Detach from the kernel.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        with(py, &self.0, FlightRecorder::finish)
    }
}

fn told_call(call: &SlowCall) -> Value {
    let path = call.path.as_deref().map(String::from_utf8_lossy);
    json!({
        "task": call.task,
        "name": call.name,
        "lasted_ns": call.lasted_ns,
        "path": path,
        "is_pending": call.is_pending,
    })
}

fn told_place(place: &Place) -> Value {
    let directory = String::from_utf8_lossy(&place.directory);
    json!({"process": place.process, "directory": directory, "umask": place.umask})
}
