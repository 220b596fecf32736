//! Engines, and what they hand out.

use crate::error::of_engine;
use crate::folder::{Sandbox, Task, started};
use crate::record::{Interval, Row, parse_phase};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use replayer_engine::{
    self as engine, Bound as Budget, Course, Options, OutcomeData, Program, RunFolder, StuckData,
    TransactionData, Turn, check_order, look_ns, overhead_ns, prepare_clock,
};
use replayer_ops::outcome_name;
use std::sync::Arc;
use std::time::Duration;

/// How path calls are kept inside the run's folder in this process.
#[pyfunction]
pub(crate) fn confinement(py: Python<'_>) -> &'static str {
    py.detach(engine::confinement)
}

/// What a look at the engine's clock costs, in nanoseconds.
#[pyfunction]
pub(crate) fn clock_ns(py: Python<'_>) -> f64 {
    py.detach(|| {
        prepare_clock();
        look_ns()
    })
}

/// The users of one plan on one or more targets: native threads, recorded natively.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Engine {
    inner: engine::Engine,
}

/// Whether the event logs of an engine keep the order of a trace; what was found, as JSON.
#[pyfunction]
pub(crate) fn trace_check_order(py: Python<'_>, trace: &str, log: &str) -> PyResult<String> {
    let report = py.detach(|| check_order(trace, log));
    Ok(report.map_err(of_engine)?.json())
}

fn stuck(stuck: Vec<StuckData>) -> Vec<Stuck> {
    stuck.into_iter().map(Stuck::from).collect()
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (plan, targets, *, record=None, interval_ns=1_000_000_000, stuck_after_ns=5_000_000_000, null=false, event_log=None, turn=(0, 1), abreast=false))]
    #[expect(
        clippy::needless_pass_by_value,
        clippy::too_many_arguments,
        reason = "they are keywords of the contract, converted to what is owned"
    )]
    fn new(
        py: Python<'_>,
        plan: &Plan,
        targets: Vec<Vec<PyRef<'_, Sandbox>>>,
        record: Option<String>,
        interval_ns: u64,
        stuck_after_ns: u64,
        null: bool,
        event_log: Option<String>,
        turn: (u32, u32),
        abreast: bool,
    ) -> PyResult<Engine> {
        if cfg!(debug_assertions) {
            return Err(PyRuntimeError::new_err(
                "this is a debug build of the engine: it may not measure",
            ));
        }
        let targets: Vec<Vec<&RunFolder>> = targets
            .iter()
            .map(|mounts| mounts.iter().map(|sandbox| &sandbox.run).collect())
            .collect();
        let options = Options {
            record,
            interval_ns,
            stuck_after_ns,
            null,
            event_log,
            turn: Turn {
                first: turn.0,
                of: turn.1,
            },
            abreast,
        };
        let program = Arc::clone(&plan.program);
        let inner = py.detach(|| engine::Engine::open(program, &targets, &options));
        Ok(Engine {
            inner: inner.map_err(of_engine)?,
        })
    }

    #[getter]
    fn doorbell(&self) -> i32 {
        self.inner.doorbell()
    }

    #[getter]
    fn begin_epoch_ns(&self) -> u64 {
        self.inner.begin_epoch_ns()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    #[pyo3(signature = (target, round, warm_up_ns, measured_ns=None, *, beside=Vec::new(), phase="measured"))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are keywords of the contract"
    )]
    fn begin_segment(
        &self,
        py: Python<'_>,
        target: u16,
        round: u16,
        warm_up_ns: u64,
        measured_ns: Option<u64>,
        beside: Vec<u16>,
        phase: &str,
    ) -> PyResult<()> {
        let course = Course {
            round,
            warm_up_ns,
            measured_ns,
            phase: parse_phase(phase)?,
        };
        let targets: Vec<u16> = std::iter::once(target).chain(beside).collect();
        py.detach(|| self.inner.begin_segment(&targets, &course))
            .map_err(of_engine)
    }

    fn measure(&self, py: Python<'_>) {
        py.detach(|| self.inner.measure());
    }

    fn end_segment(&self, py: Python<'_>, grace_ns: u64) -> Vec<Stuck> {
        stuck(py.detach(|| self.inner.end_segment(grace_ns)))
    }

    fn start_user(&self, py: Python<'_>, user: u32) -> PyResult<()> {
        py.detach(|| self.inner.start_user(user)).map_err(of_engine)
    }

    fn stop_user(&self, py: Python<'_>, user: u32) {
        py.detach(|| self.inner.tell_stop(user));
    }

    fn cancel_user(&self, py: Python<'_>, user: u32) {
        py.detach(|| self.inner.tell_cancel(user));
    }

    fn running_users(&self) -> usize {
        self.inner.running_users()
    }

    fn busy_users(&self, py: Python<'_>) -> usize {
        py.detach(|| self.inner.busy_users())
    }

    fn stuck(&self, py: Python<'_>) -> Vec<Stuck> {
        stuck(py.detach(|| self.inner.stuck()))
    }

    fn drain_transactions(&self, py: Python<'_>) -> (Vec<Transaction>, u64) {
        let (transactions, dropped) = py.detach(|| self.inner.drain_transactions());
        (transactions.into_iter().map(Transaction).collect(), dropped)
    }

    #[pyo3(signature = (*, watched))]
    fn watch_transactions(&self, watched: bool) {
        self.inner.watch_transactions(watched);
    }

    fn drain_finished(&self, py: Python<'_>) -> Vec<u32> {
        py.detach(|| self.inner.drain_finished())
    }

    fn drain_intervals(&self, py: Python<'_>) -> PyResult<Vec<Interval>> {
        let intervals = py.detach(|| self.inner.drain_intervals());
        let intervals = intervals.iter();
        intervals
            .map(|interval| Interval::of(py, interval))
            .collect()
    }

    fn totals(&self, py: Python<'_>) -> PyResult<Vec<Row>> {
        let rows = py.detach(|| self.inner.totals());
        rows.iter().map(|row| Row::of(py, row)).collect()
    }

    fn record_error(&self, py: Python<'_>) -> Option<(&'static str, i32)> {
        py.detach(|| self.inner.record_error())
    }

    #[expect(clippy::unused_self, reason = "the contract makes it a method")]
    fn overhead_ns(&self, py: Python<'_>, ops: u64) -> PyResult<f64> {
        py.detach(|| overhead_ns(ops)).map_err(of_engine)
    }

    fn start_interactive(&self, py: Python<'_>, user: u32, target: u16) -> PyResult<()> {
        py.detach(|| self.inner.start_interactive(user, target))
            .map_err(of_engine)
    }

    fn submit(&self, py: Python<'_>, user: u32, command: &[u8]) -> PyResult<u64> {
        py.detach(|| self.inner.submit(user, command))
            .map_err(of_engine)
    }

    fn drain_outcomes(&self, py: Python<'_>) -> Vec<Outcome> {
        let outcomes = py.detach(|| self.inner.drain_outcomes());
        outcomes.into_iter().map(Outcome::from).collect()
    }

    fn run_queue_delay_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.run_queue_delay_ns())
    }

    fn in_call_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.in_call_ns())
    }

    fn outside_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.outside_ns())
    }

    fn divergences(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.divergences())
    }

    fn verification(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.inner.verification())
    }

    #[pyo3(signature = (target, threads, *, budget_ns))]
    fn read_back(
        &self,
        py: Python<'_>,
        target: u16,
        threads: usize,
        budget_ns: u64,
    ) -> PyResult<Task> {
        let budget = Duration::from_nanos(budget_ns);
        let bound = Budget { threads, budget };
        started(py.detach(|| self.inner.read_back(target, bound)))
    }

    fn interrupt(&self, py: Python<'_>) {
        py.detach(|| self.inner.interrupt());
    }

    fn close(&self, py: Python<'_>) -> Vec<Stuck> {
        stuck(py.detach(|| self.inner.close()))
    }
}

/// One finished transaction, for event listeners.
#[pyclass(frozen, module = "replayer._native")]
pub(crate) struct Transaction(pub(crate) TransactionData);

#[pymethods]
impl Transaction {
    #[getter]
    fn user(&self) -> u32 {
        self.0.user
    }
    #[getter]
    fn target(&self) -> u16 {
        self.0.target
    }
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }
    #[getter]
    fn end_ns(&self) -> u64 {
        self.0.end_ns
    }
    #[getter]
    fn latency_ns(&self) -> u64 {
        self.0.latency_ns
    }
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }
    #[getter]
    fn error(&self) -> Option<&str> {
        self.0.error.as_deref()
    }
}

/// An op that has been in the kernel for longer than the limit.
#[pyclass(frozen, get_all, module = "replayer._native")]
pub(crate) struct Stuck {
    user: u32,
    target: u16,
    op: &'static str,
    path: String,
    age_ns: u64,
}

impl From<StuckData> for Stuck {
    fn from(stuck: StuckData) -> Self {
        Self {
            user: stuck.user,
            target: stuck.target,
            op: stuck.op,
            path: String::from_utf8_lossy(&stuck.path).into_owned(),
            age_ns: stuck.age_ns,
        }
    }
}

/// The answer to one submitted command of an interactive user.
#[pyclass(frozen, get_all, module = "replayer._native")]
#[expect(clippy::struct_field_names, reason = "the contract names it so")]
pub(crate) struct Outcome {
    ticket: u64,
    value: u64,
    outcome: &'static str,
    expected: bool,
    service_ns: u64,
}

impl From<OutcomeData> for Outcome {
    fn from(answer: OutcomeData) -> Self {
        Self {
            ticket: answer.ticket,
            value: answer.value,
            outcome: outcome_name(answer.outcome),
            expected: answer.expected,
            service_ns: answer.service_ns,
        }
    }
}

/// A plan of format 1, checked and ready to run.
#[pyclass(frozen, module = "replayer._native")]
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
        let program = py.detach(|| Program::parse(document, &traces));
        Ok(Plan {
            program: Arc::new(program.map_err(of_engine)?),
        })
    }

    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.transaction_names())
    }

    #[getter]
    fn replay_lanes(&self, py: Python<'_>) -> PyResult<u16> {
        py.detach(|| self.program.replay_lanes()).map_err(of_engine)
    }

    #[getter]
    fn datasets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.program.dataset_names())
    }
}
