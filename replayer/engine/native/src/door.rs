//! The Python door of plans, sandboxes and the machine: conversions and the release of the GIL, no logic.

use crate::clock;
use crate::core::Confinement;
use crate::engine;
use crate::error::{Error, errno_of};
use crate::layout;
use crate::layout::Task;
use crate::plan::parse_plan;
use crate::program::{Identity, Program};
use crate::sandbox::{self, RunFolder};
use crate::space::{Space, space};
use crate::sys::{Folder, machine_caches_dropped};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::Value(message) => PyValueError::new_err(message),
            Error::Hinted { message, hint } => PyValueError::new_err((message, hint)),
            Error::State(message) => PyRuntimeError::new_err(message),
            Error::Os { errno, path } => os_error(errno.raw_os_error(), path),
        }
    }
}

/// An `OSError` (Python picks the subclass) with errno, its text and a path.
pub(crate) fn os_error(errno: i32, path: String) -> PyErr {
    let error = std::io::Error::from_raw_os_error(errno).to_string();
    let text = error
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    PyOSError::new_err((errno, text, path))
}

/// How path calls are kept inside the run's folder in this process.
#[pyfunction]
pub(crate) fn confinement(py: Python<'_>) -> &'static str {
    match py.detach(engine::confinement) {
        Confinement::Jailed => "jailed",
        Confinement::Guarded | Confinement::Null => "guarded",
    }
}

/// What a look at the engine's clock costs, in nanoseconds.
#[pyfunction]
pub(crate) fn clock_ns(py: Python<'_>) -> f64 {
    py.detach(|| {
        clock::prepare();
        clock::look_ns()
    })
}

/// Sync and drop the machine's page, dentry and inode caches; False when that is not permitted.
#[pyfunction]
pub(crate) fn evict_machine_caches(py: Python<'_>) -> bool {
    py.detach(machine_caches_dropped)
}

/// A plan of format 1, checked and ready to run.
#[pyclass(frozen, module = "replayer.engine._native")]
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
        let program = py.detach(|| -> crate::error::Result<_> {
            let mut program = parse_plan(document)?;
            let audience = program.audience();
            program.replays.open(&traces, audience)?;
            program.verify = program.verify.map(Identity::drawn);
            Ok(program)
        })?;
        Ok(Plan {
            program: Arc::new(program),
        })
    }

    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            self.program
                .transactions
                .iter()
                .map(|transaction| &transaction.name),
        )
    }

    #[getter]
    fn replay_lanes(&self, py: Python<'_>) -> PyResult<u16> {
        let needs = py.detach(|| self.program.replays.needs())?;
        Ok(needs.lanes)
    }

    #[getter]
    fn datasets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            self.program.datasets.iter().map(|dataset| &dataset.name),
        )
    }
}

/// A run's own folder, PATH/replayer-RUN, seen through one mount point.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Sandbox {
    pub(crate) run: RunFolder,
}

#[pymethods]
impl Sandbox {
    #[staticmethod]
    fn create(py: Python<'_>, parent: &str, run: &str, note: &str) -> PyResult<Sandbox> {
        let run = py.detach(|| sandbox::create(parent, run, note))?;
        Ok(Sandbox { run })
    }

    #[staticmethod]
    fn open(py: Python<'_>, path: &str) -> PyResult<Sandbox> {
        let run = py.detach(|| sandbox::open(path))?;
        Ok(Sandbox { run })
    }

    #[getter]
    fn path(&self) -> &str {
        &self.run.path
    }

    #[getter]
    fn note(&self) -> &str {
        &self.run.note
    }

    #[getter]
    fn device(&self) -> u64 {
        self.run.folder.device
    }

    fn space(&self, py: Python<'_>) -> PyResult<Space> {
        let space = py.detach(|| space(self.run.folder.file.as_fd()));
        space.map_err(|error| {
            os_error(
                error.raw_os_error().unwrap_or(libc::EIO),
                self.run.path.clone(),
            )
        })
    }

    fn lay_out(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        let folder = self.folder()?;
        Ok(py.detach(|| layout::lay_out(folder, &plan.program, threads)))
    }

    fn verify(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        let folder = self.folder()?;
        Ok(py.detach(|| layout::verify(folder, &plan.program, threads)))
    }

    fn warm(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        let folder = self.folder()?;
        Ok(py.detach(|| layout::warm(folder, &plan.program, threads)))
    }

    fn evict(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        let folder = self.folder()?;
        Ok(py.detach(|| layout::evict(folder, &plan.program, threads)))
    }

    fn wipe(&self, py: Python<'_>, threads: usize) -> PyResult<Task> {
        let folder = self.folder()?;
        Ok(py.detach(|| layout::wipe(folder, threads)))
    }

    fn remove(&self, py: Python<'_>, threads: usize) -> PyResult<Task> {
        let (folder, parent) = (self.folder()?, self.duplicate(&self.run.folder.parent)?);
        Ok(py.detach(|| layout::remove(folder, parent, &self.run.name, threads)))
    }
}

impl Sandbox {
    pub(crate) fn folder_of_run(&self) -> Arc<Folder> {
        Arc::clone(&self.run.folder)
    }

    /// The run's folder, for a task that may outlive this object.
    fn folder(&self) -> PyResult<OwnedFd> {
        self.duplicate(&self.run.folder.file)
    }

    fn duplicate(&self, file: &OwnedFd) -> PyResult<OwnedFd> {
        let copy = file.try_clone();
        copy.map_err(|error| os_error(errno_of(&error).raw_os_error(), self.run.path.clone()))
    }
}
