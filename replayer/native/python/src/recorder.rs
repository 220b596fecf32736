//! Recording with eBPF.

use crate::error::of_recorder;
use pyo3::prelude::*;
use replayer_recorder::{Recorder, RecorderError};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Mutex;

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

    /// Record the next process that this thread starts, from its execve on, and all that descends from it.
    fn arm(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Recorder::arm)
    }

    /// Record processes that run, and all that descends from them from now on.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it converted"
    )]
    fn attach_to(&self, py: Python<'_>, processes: Vec<u32>) -> PyResult<()> {
        self.with(py, |recorder| recorder.attach_to(&processes))
    }

    /// Tell how far it is, as JSON.
    fn progress(&self, py: Python<'_>) -> PyResult<String> {
        let progress = self.with(py, |recorder| recorder.progress())?;
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
        self.with(py, |recorder| Ok(recorder.processes()))
    }

    /// Detach from the kernel, and end the file.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Recorder::finish)
    }
}

impl ProbeRecording {
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        using: impl FnOnce(&mut Recorder) -> Result<R, RecorderError> + Send,
    ) -> PyResult<R> {
        py.detach(|| match self.0.lock() {
            Ok(mut recorder) => using(&mut recorder),
            Err(poisoned) => using(&mut poisoned.into_inner()),
        })
        .map_err(of_recorder)
    }
}
