//! What is refused, as Python sees it: one exception for each way.

use pyo3::exceptions::{
    PyInterruptedError, PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use replayer_engine::{Error, Fault};
use replayer_recorder::RecorderError;
use replayer_trace::TraceError;
use std::path::Path;

pub(crate) fn of_engine(error: Error) -> PyErr {
    match error {
        Error::Value(message) => PyValueError::new_err(message),
        Error::Hinted { message, hint } => PyValueError::new_err((message, hint)),
        Error::State(message) => PyRuntimeError::new_err(message),
        Error::Os { errno, path } => of_errno(errno.raw_os_error(), path),
    }
}

pub(crate) fn of_task(fault: Fault) -> PyErr {
    match fault {
        Fault::Cancelled => PyInterruptedError::new_err("cancelled"),
        Fault::Os(errno, path) => of_errno(errno.raw_os_error(), path),
    }
}

/// Of traces: mistakes are a `ValueError` of message and hint; what the kernel refused keeps its errno.
pub(crate) fn of_trace(error: TraceError) -> PyErr {
    match error {
        TraceError::Io { path, source } => match source.raw_os_error() {
            Some(errno) => PyOSError::new_err((errno, source.to_string(), path)),
            None => PyValueError::new_err((
                format!("{}: {source}", path.display()),
                "the file is damaged or cut off".to_owned(),
            )),
        },
        TraceError::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
        error => PyValueError::new_err((error.to_string(), error.hint().to_owned())),
    }
}

/// Of the recorder: what is missing and what would be needed are a `RuntimeError`; what the kernel says of files keeps its errno.
pub(crate) fn of_recorder(error: RecorderError) -> PyErr {
    match error {
        RecorderError::File { path, source } => of_io(&source, &path),
        error => PyRuntimeError::new_err((error.to_string(), error.need().to_owned())),
    }
}

/// Of a file that is read or made.
pub(crate) fn of_io(error: &std::io::Error, path: &Path) -> PyErr {
    of_errno(
        error.raw_os_error().unwrap_or_default(),
        path.display().to_string(),
    )
}

/// An `OSError` (Python picks the subclass) with errno, its text and a path.
fn of_errno(errno: i32, path: String) -> PyErr {
    let error = std::io::Error::from_raw_os_error(errno).to_string();
    let text = error.split(" (os error").next().unwrap_or_default();
    PyOSError::new_err((errno, text.to_owned(), path))
}
