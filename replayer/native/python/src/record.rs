//! Rows and intervals of recordings, and the files that they are written to and read from.

use crate::error::of_io;
use crate::histogram::Histogram;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use replayer_engine as engine;
use replayer_engine::{IntervalData, IntervalLines, Line, LogKey, Phase, RowData, Slots, SpanS};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Target, round, phase, transaction, and when it was recorded.
type Intervals = (u16, u16, &'static str, String, Vec<SpanS>);
/// Slots, bins and counts, 64 bits each.
type Columns<'py> = [Bound<'py, PyBytes>; 3];

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was measured of one key in one interval.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Row {
    key: LogKey,
    #[pyo3(get)]
    bytes: u64,
    #[pyo3(get)]
    histogram: Py<Histogram>,
}

impl Row {
    pub(crate) fn of(py: Python<'_>, data: &RowData) -> PyResult<Self> {
        let times = Histogram::from_v2(&data.histogram)?;
        Self::made(py, data.key.clone(), data.bytes, times)
    }

    fn made(py: Python<'_>, key: LogKey, bytes: u64, times: Histogram) -> PyResult<Self> {
        Ok(Self {
            key,
            bytes,
            histogram: Py::new(py, times)?,
        })
    }
}

#[pymethods]
impl Row {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "a row has so many columns")]
    fn new(
        target: u16,
        round: u16,
        phase: &str,
        transaction: String,
        op: String,
        outcome: String,
        expected: bool,
        bytes: u64,
        histogram: Py<Histogram>,
    ) -> PyResult<Self> {
        Ok(Self {
            key: LogKey {
                target,
                round,
                phase: parse_phase(phase)?,
                transaction: transaction.into(),
                op: op.into(),
                outcome: outcome.into(),
                expected,
            },
            bytes,
            histogram,
        })
    }

    #[getter]
    fn target(&self) -> u16 {
        self.key.target
    }

    #[getter]
    fn round(&self) -> u16 {
        self.key.round
    }

    #[getter]
    fn phase(&self) -> &'static str {
        self.key.phase.name()
    }

    #[getter]
    fn transaction(&self) -> &str {
        &self.key.transaction
    }

    #[getter]
    fn op(&self) -> &str {
        &self.key.op
    }

    #[getter]
    fn outcome(&self) -> &str {
        &self.key.outcome
    }

    #[getter]
    fn expected(&self) -> bool {
        self.key.expected
    }
}

/// One interval, or what is left of one at a boundary, of recordings.
#[pyclass(frozen, get_all, module = "replayer._native")]
pub(crate) struct Interval {
    start_ns: u64,
    end_ns: u64,
    users: u32,
    rows: Py<PyTuple>,
}

impl Interval {
    pub(crate) fn of(py: Python<'_>, data: &IntervalData) -> PyResult<Self> {
        let rows = data.rows.iter().map(|row| Row::of(py, row));
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        Ok(Self {
            start_ns: data.start_ns,
            end_ns: data.end_ns,
            users: data.users,
            rows: PyTuple::new(py, rows)?.unbind(),
        })
    }
}

#[pymethods]
impl Interval {
    #[new]
    fn new(
        py: Python<'_>,
        start_ns: u64,
        end_ns: u64,
        users: u32,
        rows: Vec<Py<Row>>,
    ) -> PyResult<Self> {
        Ok(Self {
            start_ns,
            end_ns,
            users,
            rows: PyTuple::new(py, rows)?.unbind(),
        })
    }
}

/// histograms.hlog and timeline.csv of a run folder.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Recording(Mutex<engine::Recording>);

#[pymethods]
impl Recording {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "as Python hands it over")]
    fn new(folder: PathBuf, begin_epoch_ns: u64) -> Self {
        Self(Mutex::new(engine::Recording::open(&folder, begin_epoch_ns)))
    }

    /// Append an interval: one write for each file.
    fn append(&self, py: Python<'_>, interval: &Interval) -> PyResult<()> {
        let (start_ns, end_ns) = (interval.start_ns, interval.end_ns);
        let mut lines = IntervalLines::new(start_ns, end_ns, interval.users);
        for row in interval.rows.bind(py) {
            let row = row.cast::<Row>()?.get();
            let times = row.histogram.get().held();
            lines.push(&Line {
                key: &row.key,
                bytes: row.bytes,
                times: &times,
                packed: &times.to_v2(),
            });
        }
        hold(&self.0).append(&lines);
        Ok(())
    }

    fn append_events(&self, lines: &str) {
        hold(&self.0).append_events(lines);
    }

    /// Append what waits.
    fn finish(&self) {
        hold(&self.0).finish();
    }

    #[getter]
    fn error(&self) -> Option<(&'static str, i32)> {
        hold(&self.0).error()
    }
}

/// The histograms of a log, added up by key, when each transaction was recorded, and how many lines are damaged.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python hands it over")]
pub(crate) fn read_log(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<Row>, Vec<Intervals>, u64)> {
    let log = py
        .detach(|| engine::read_log(&path))
        .map_err(|error| of_io(&error, &path))?;
    let rows = log.histograms.into_iter();
    let rows = rows.map(|(key, times)| Row::made(py, key, 0, times.into()));
    let intervals = log.intervals.into_iter();
    let intervals = intervals.map(|((target, round, phase, name), spans)| {
        (target, round, phase.name(), name.to_string(), spans)
    });
    Ok((
        rows.collect::<PyResult<_>>()?,
        intervals.collect(),
        log.damaged,
    ))
}

/// The counts of some keys of a log by slot and latency bin.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python hands it over")]
pub(crate) fn read_slices(
    py: Python<'_>,
    path: PathBuf,
    begins_s: Vec<f64>,
    bins: (u32, u32),
    keys: Vec<Py<Row>>,
) -> PyResult<Vec<Columns<'_>>> {
    let (bins_per_octave, count) = bins;
    let slots = Slots {
        begins_s,
        bins_per_octave,
        last_bin: count.saturating_sub(1),
    };
    let keys: Vec<LogKey> = keys.iter().map(|row| row.get().key.clone()).collect();
    let found = py
        .detach(|| engine::read_slices(&path, &slots, &keys))
        .map_err(|error| of_io(&error, &path))?;
    Ok(found.iter().map(|slices| columns(py, slices)).collect())
}

fn columns<'py>(py: Python<'py>, slices: &engine::Slices) -> Columns<'py> {
    let bytes = |numbers: &mut dyn Iterator<Item = u64>| {
        let column: Vec<u8> = numbers.flat_map(u64::to_ne_bytes).collect();
        PyBytes::new(py, &column)
    };
    [
        bytes(&mut slices.keys().map(|(slot, _)| *slot as u64)),
        bytes(&mut slices.keys().map(|(_, bin)| u64::from(*bin))),
        bytes(&mut slices.values().copied()),
    ]
}

/// The phase of a name.
pub(crate) fn parse_phase(name: &str) -> PyResult<Phase> {
    Phase::of(name).ok_or_else(|| PyValueError::new_err(format!("unknown phase {name:?}")))
}
