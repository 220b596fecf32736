//! Traces: imports, and questions to a trace.

#![allow(
    clippy::needless_pass_by_value,
    reason = "Python hands over what it converted"
)]

use crate::error::of_trace;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use replayer_trace::{
    Applicability, Names, NewNames, Request, Trace, call_columns, event_columns, format_names,
    history, import, is_applicable, label_name, names, rewrite, statistics,
};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Walks through hostile trees of links go deep.
const STACK_BYTES: usize = 64 << 20;
/// How often progress is told and signals are looked for.
const TICK: Duration = Duration::from_millis(100);

/// Names of the formats that can be imported.
#[pyfunction]
fn trace_formats() -> Vec<&'static str> {
    format_names()
}

/// Whether a format's importer can read what begins with these bytes: `yes`, `no` or `need more`.
#[pyfunction]
fn trace_is_applicable(name: &str, head: &[u8]) -> PyResult<&'static str> {
    is_applicable(name, head)
        .map(Applicability::name)
        .ok_or_else(|| PyValueError::new_err((format!("unknown format {name}"), String::new())))
}

/// Import logs into a trace folder; `options` is JSON. Returns the text of its trace.json.
#[pyfunction]
fn trace_import(
    py: Python<'_>,
    files: Vec<PathBuf>,
    target: PathBuf,
    roots: Vec<Vec<u8>>,
    options: &str,
    progress: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let options: Request = serde_json::from_str(options)
        .map_err(|error| PyValueError::new_err((format!("options of an import: {error}"), "")))?;
    let request = Request {
        files,
        target,
        roots,
        ..options
    };
    let lines = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let (request, lines, stop) = (&request, &lines, &stop);
        let spawned = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || {
                let result = import(request, &mut |count| {
                    lines.store(count, Ordering::Relaxed);
                    !stop.load(Ordering::Relaxed)
                });
                // The other end waits until it has this.
                let _ = sender.send(result);
            });
        let worker = spawned.map_err(|error| PyOSError::new_err(error.to_string()))?;
        let receiver = Mutex::new(receiver);
        let wait = || match receiver.lock() {
            Ok(receiver) => receiver.recv_timeout(TICK),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        let mut signal = None;
        let result = loop {
            match py.detach(wait) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Disconnected) => {
                    // A panic of the worker ends here, and not this process.
                    let _ = worker.join();
                    return Err(PyValueError::new_err((
                        "the import ended without a result",
                        "",
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let told = py
                .check_signals()
                .and_then(|()| progress.call1((lines.load(Ordering::Relaxed),)).map(drop));
            if let Err(error) = told {
                stop.store(true, Ordering::Relaxed);
                signal.get_or_insert(error);
            }
        };
        match (signal, result) {
            (Some(error), _) => Err(error),
            (None, result) => result.map_err(of_trace),
        }
    })
}

/// The text of a trace's trace.json, after its version and the checksums of its tables have been checked.
#[pyfunction]
fn trace_open(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    py.detach(|| Trace::open(&directory).map(|trace| trace.document().to_owned()))
        .map_err(of_trace)
}

/// Count what a trace asks of a file system, all of it or the requests of one label. Returns JSON.
#[pyfunction]
fn trace_statistics(py: Python<'_>, folder: PathBuf, request: Option<String>) -> PyResult<String> {
    py.detach(|| statistics(&folder, request.as_deref()))
        .map_err(of_trace)
}

/// Tell which events led to one, newest first, at most `limit`. Returns JSON.
#[pyfunction]
fn trace_history(py: Python<'_>, folder: PathBuf, row: u64, limit: usize) -> PyResult<String> {
    py.detach(|| history(&folder, row, limit)).map_err(of_trace)
}

/// The bytes of six columns, and paths with their labels.
type Columns<'py> = ([Bound<'py, PyBytes>; 6], Vec<(String, String)>);

/// Tell what a timeline shows of each event of a trace: columns, and the paths that one of them names by row.
#[pyfunction]
fn trace_events(py: Python<'_>, folder: PathBuf) -> PyResult<Columns<'_>> {
    let found = py.detach(|| event_columns(&folder)).map_err(of_trace)?;
    let columns = [
        bytes(py, &found.thread, u32::to_ne_bytes),
        bytes(py, &found.start_ns, i64::to_ne_bytes),
        bytes(py, &found.duration_ns, i64::to_ne_bytes),
        PyBytes::new(py, &found.op),
        bytes(py, &found.path, i32::to_ne_bytes),
        bytes(py, &found.result, i64::to_ne_bytes),
    ];
    let paths = found.paths.into_iter().map(|named| {
        let path = String::from_utf8_lossy(&named.path).into_owned();
        (path, named.label)
    });
    Ok((columns, paths.collect()))
}

fn bytes<'py, T: Copy, const SIZE: usize>(
    py: Python<'py>,
    column: &[T],
    of: impl Fn(T) -> [u8; SIZE],
) -> Bound<'py, PyBytes> {
    let all: Vec<u8> = column.iter().copied().flat_map(of).collect();
    PyBytes::new(py, &all)
}

/// Columns of calls; paths; rows of the tree: path, type, size, mode, link; pieces of requests: number, label, thread, first and last
/// event, begin and end.
type Calls<'py> = (
    Vec<Bound<'py, PyBytes>>,
    Vec<Bound<'py, PyBytes>>,
    Vec<(u32, char, u64, Option<u32>, Option<Bound<'py, PyBytes>>)>,
    Vec<(u32, String, u32, u64, u64, u64, u64)>,
);

/// Tell what each call of a trace was asked and returned, the tree before, and the pieces of its requests.
#[pyfunction]
fn trace_calls(py: Python<'_>, folder: PathBuf) -> PyResult<Calls<'_>> {
    let found = py.detach(|| call_columns(&folder)).map_err(of_trace)?;
    let tree = found.tree.iter().map(|entry| {
        let link = entry.link.as_deref().map(|link| PyBytes::new(py, link));
        (entry.path, entry.kind, entry.size, entry.mode, link)
    });
    let requests = found.requests.into_iter().map(|piece| {
        let (first, last) = (piece.first_event, piece.last_event);
        let (start_ns, end_ns) = (piece.start_ns, piece.end_ns);
        (
            piece.request,
            label_name(&piece.label).to_owned(),
            piece.thread,
            first,
            last,
            start_ns,
            end_ns,
        )
    });
    let columns = found.columns.iter();
    let paths = found
        .paths
        .iter()
        .map(|named| PyBytes::new(py, &named.path));
    Ok((
        columns
            .map(|column| bytes(py, column, i64::to_ne_bytes))
            .collect(),
        paths.collect(),
        tree.collect(),
        requests.collect(),
    ))
}

/// Paths; links of the tree with the rows of their paths; texts of events with their op and the row of their path; labels
/// of requests; owners.
type Named<'py> = (
    Vec<Bound<'py, PyBytes>>,
    Vec<(u32, Bound<'py, PyBytes>)>,
    Vec<(u8, Option<u32>, Bound<'py, PyBytes>)>,
    Vec<String>,
    Vec<i64>,
);

/// Tell all that a trace names, each name once.
#[pyfunction]
fn trace_names(py: Python<'_>, folder: PathBuf) -> PyResult<Named<'_>> {
    let found = py.detach(|| names(&folder)).map_err(of_trace)?;
    let of = |name: &[u8]| PyBytes::new(py, name);
    Ok((
        found.paths.iter().map(|path| of(path)).collect(),
        found
            .links
            .iter()
            .map(|(row, link)| (*row, of(link)))
            .collect(),
        found
            .texts
            .iter()
            .map(|(op, path, text)| (*op, *path, of(text)))
            .collect(),
        found.labels,
        found.owners,
    ))
}

/// What `trace_names` tells, as Python hands it back.
type Told = (
    Vec<Vec<u8>>,
    Vec<(u32, Vec<u8>)>,
    Vec<(u8, Option<u32>, Vec<u8>)>,
    Vec<String>,
    Vec<i64>,
);

/// New paths, links, texts, labels and owners, in the order in which `trace_names` tells the old ones.
type Renamed = (
    Vec<Vec<u8>>,
    Vec<Vec<u8>>,
    Vec<Vec<u8>>,
    Vec<String>,
    Vec<i64>,
);

/// Write a trace with other names into a new folder. Returns the text of its trace.json.
#[pyfunction]
fn trace_rewrite(
    py: Python<'_>,
    folder: PathBuf,
    target: PathBuf,
    told: Told,
    renamed: Renamed,
    shift_ns: i64,
    document: String,
) -> PyResult<String> {
    let (paths, links, texts, labels, owners) = told;
    let old = Names {
        paths,
        links,
        texts,
        labels,
        owners,
    };
    let (paths, links, texts, labels, owners) = renamed;
    let new = NewNames {
        paths,
        links,
        texts,
        labels,
        owners,
        shift_ns,
        document,
    };
    py.detach(|| rewrite(&folder, &target, &old, &new))
        .map_err(of_trace)
}

/// Put the functions into a module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_formats, module)?)?;
    module.add_function(wrap_pyfunction!(trace_is_applicable, module)?)?;
    module.add_function(wrap_pyfunction!(trace_import, module)?)?;
    module.add_function(wrap_pyfunction!(trace_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(trace_history, module)?)?;
    module.add_function(wrap_pyfunction!(trace_events, module)?)?;
    module.add_function(wrap_pyfunction!(trace_calls, module)?)?;
    module.add_function(wrap_pyfunction!(trace_names, module)?)?;
    module.add_function(wrap_pyfunction!(trace_rewrite, module)?)?;
    module.add_function(wrap_pyfunction!(trace_open, module)?)
}
