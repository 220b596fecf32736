//! A run's own folder, the tasks that work in it, and the machine's caches.

use crate::engine::Plan;
use crate::error::{of_engine, of_task};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use replayer_engine::{self as engine, RunFolder, Work, machine_caches_dropped};

/// Sync and drop the machine's page, dentry and inode caches; False when that is not permitted.
#[pyfunction]
pub(crate) fn evict_machine_caches(py: Python<'_>) -> bool {
    py.detach(machine_caches_dropped)
}

/// A run's own folder, PATH/replayer-RUN, seen through one mount point.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Sandbox {
    pub(crate) run: RunFolder,
}

#[pymethods]
impl Sandbox {
    #[staticmethod]
    fn create(py: Python<'_>, parent: &str, run: &str, note: &str) -> PyResult<Sandbox> {
        let run = py.detach(|| RunFolder::create(parent, run, note));
        Ok(Sandbox {
            run: run.map_err(of_engine)?,
        })
    }

    #[staticmethod]
    fn open(py: Python<'_>, path: &str) -> PyResult<Sandbox> {
        let run = py.detach(|| RunFolder::open(path));
        Ok(Sandbox {
            run: run.map_err(of_engine)?,
        })
    }

    #[getter]
    fn path(&self) -> &str {
        self.run.path()
    }

    #[getter]
    fn note(&self) -> &str {
        self.run.note()
    }

    #[getter]
    fn device(&self) -> u64 {
        self.run.device()
    }

    fn space(&self, py: Python<'_>) -> PyResult<Space> {
        let space = py.detach(|| self.run.space());
        Ok(space.map_err(of_engine)?.into())
    }

    fn lay_out(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        started(py.detach(|| self.run.start(Work::LayOut, &plan.program, threads)))
    }

    fn verify(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        started(py.detach(|| self.run.start(Work::Verify, &plan.program, threads)))
    }

    fn warm(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        started(py.detach(|| self.run.start(Work::Warm, &plan.program, threads)))
    }

    fn evict(&self, py: Python<'_>, plan: &Plan, threads: usize) -> PyResult<Task> {
        started(py.detach(|| self.run.start(Work::Evict, &plan.program, threads)))
    }

    fn wipe(&self, py: Python<'_>, threads: usize) -> PyResult<Task> {
        started(py.detach(|| self.run.wipe(threads)))
    }

    fn remove(&self, py: Python<'_>, threads: usize) -> PyResult<Task> {
        started(py.detach(|| self.run.remove(threads)))
    }
}

/// A task that was started, or what was refused.
pub(crate) fn started(task: engine::Result<engine::Task>) -> PyResult<Task> {
    task.map(Task).map_err(of_engine)
}

/// Work under way on native threads: poll it, cancel it, collect its result.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Task(engine::Task);

#[pymethods]
impl Task {
    #[getter]
    fn done_entries(&self) -> u64 {
        self.0.done_entries()
    }

    #[getter]
    fn total_entries(&self) -> u64 {
        self.0.total_entries()
    }

    #[getter]
    fn done_bytes(&self) -> u64 {
        self.0.done_bytes()
    }

    #[getter]
    fn total_bytes(&self) -> u64 {
        self.0.total_bytes()
    }

    #[getter]
    fn finished(&self) -> bool {
        self.0.finished()
    }

    /// Stop soon, between two entries.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Calls in the kernel for longer than a limit, longest first: op, path, age.
    fn stuck(&self, after_ns: u64) -> Vec<(&'static str, String, u64)> {
        self.0.stuck(after_ns)
    }

    /// Wait, then return the finding or raise the first error.
    fn result(&self, py: Python<'_>) -> PyResult<Finding> {
        match py.detach(|| self.0.wait()) {
            Some(result) => result.map(Finding::from).map_err(of_task),
            None => Err(PyRuntimeError::new_err(
                "the task ended without a result; this is a bug",
            )),
        }
    }
}

/// The result of a task: what was done, and what did not fit.
#[pyclass(frozen, get_all, skip_from_py_object, module = "replayer._native")]
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    files: u64,
    directories: u64,
    links: u64,
    bytes: u64,
    mismatches: u64,
    first_mismatch: Option<String>,
    elapsed_ns: u64,
}

impl From<engine::Finding> for Finding {
    fn from(found: engine::Finding) -> Self {
        Self {
            files: found.files,
            directories: found.directories,
            links: found.links,
            bytes: found.bytes,
            mismatches: found.mismatches,
            first_mismatch: found.first_mismatch,
            elapsed_ns: found.elapsed_ns,
        }
    }
}

/// What statfs says of a target.
#[pyclass(frozen, get_all, skip_from_py_object, module = "replayer._native")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    bytes_total: u64,
    bytes_free: u64,
    inodes_total: u64,
    inodes_free: u64,
    block_bytes: u64,
    read_only: bool,
    kind: u64,
}

impl From<engine::Space> for Space {
    fn from(space: engine::Space) -> Self {
        Self {
            bytes_total: space.bytes_total,
            bytes_free: space.bytes_free,
            inodes_total: space.inodes_total,
            inodes_free: space.inodes_free,
            block_bytes: space.block_bytes,
            read_only: space.read_only,
            kind: space.kind,
        }
    }
}
