//! The Python door of engines: conversions and the release of the GIL, no logic.

use crate::core::StuckData;
use crate::door::{Plan, Sandbox};
use crate::door_values::{Outcome, Stuck, Transaction};
use crate::engine;
use crate::error::Error;
use crate::layout::{Bound, Task};
use crate::options::Options;
use crate::overhead::overhead_ns;
use crate::pace::Turn;
use crate::record::{Interval, Row};
use crate::replay::order::check_order;
use crate::sys::Folder;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The users of one plan on one or more targets: native threads, recorded natively.
#[pyclass(frozen, module = "replayer.engine._native")]
pub(crate) struct Engine {
    inner: engine::Engine,
}

/// Whether the event logs of an engine keep the order of a trace; what was found, as JSON.
#[pyfunction]
pub(crate) fn trace_check_order(py: Python<'_>, trace: &str, log: &str) -> PyResult<String> {
    Ok(py.detach(|| check_order(trace, log))?.json())
}

fn stuck(stuck: Vec<StuckData>) -> Vec<Stuck> {
    stuck.into_iter().map(Stuck).collect()
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (plan, targets, *, record=None, interval_ns=1_000_000_000, stuck_after_ns=5_000_000_000, null=false, event_log=None, turn=(0, 1)))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are keywords of the contract"
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
    ) -> PyResult<Engine> {
        if cfg!(debug_assertions) {
            return Err(
                Error::state("this is a debug build of the engine: it may not measure").into(),
            );
        }
        let targets: Vec<Vec<Arc<Folder>>> = targets
            .into_iter()
            .map(|mounts| {
                mounts
                    .iter()
                    .map(|sandbox| sandbox.folder_of_run())
                    .collect()
            })
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
        };
        let program = Arc::clone(&plan.program);
        let inner = py.detach(|| engine::Engine::new(program, targets, &options))?;
        Ok(Engine { inner })
    }

    #[getter]
    fn doorbell(&self) -> i32 {
        self.inner.core().doorbell.descriptor()
    }

    #[getter]
    fn begin_epoch_ns(&self) -> u64 {
        self.inner.begin_epoch_ns()
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    #[pyo3(signature = (target, round, warm_up_ns, measured_ns=None))]
    fn begin_segment(
        &self,
        py: Python<'_>,
        target: u16,
        round: u16,
        warm_up_ns: u64,
        measured_ns: Option<u64>,
    ) -> PyResult<()> {
        Ok(py.detach(|| {
            self.inner
                .begin_segment((target, round), warm_up_ns, measured_ns)
        })?)
    }

    fn measure(&self, py: Python<'_>) {
        py.detach(|| self.inner.measure());
    }

    fn end_segment(&self, py: Python<'_>, grace_ns: u64) -> Vec<Stuck> {
        stuck(py.detach(|| self.inner.end_segment(grace_ns)))
    }

    fn start_user(&self, py: Python<'_>, user: u32) -> PyResult<()> {
        Ok(py.detach(|| self.inner.start_user(user))?)
    }

    fn stop_user(&self, py: Python<'_>, user: u32) {
        py.detach(|| self.inner.tell_stop(user));
    }

    fn cancel_user(&self, py: Python<'_>, user: u32) {
        py.detach(|| self.inner.tell_cancel(user));
    }

    fn running_users(&self) -> usize {
        self.inner.core().crowd.running()
    }

    fn busy_users(&self, py: Python<'_>) -> usize {
        py.detach(|| self.inner.core().crowd.busy())
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
        self.inner.core().watched.store(watched, Ordering::Relaxed);
    }

    fn drain_finished(&self, py: Python<'_>) -> Vec<u32> {
        py.detach(|| self.inner.core().drain_finished())
    }

    fn drain_intervals(&self, py: Python<'_>) -> Vec<Interval> {
        let intervals = py.detach(|| self.inner.drain_intervals());
        intervals.into_iter().map(Interval::from).collect()
    }

    fn totals(&self, py: Python<'_>) -> Vec<Row> {
        let rows = py.detach(|| self.inner.totals());
        rows.into_iter().map(Row::from).collect()
    }

    fn record_error(&self, py: Python<'_>) -> Option<(&'static str, i32)> {
        py.detach(|| self.inner.record_error())
    }

    #[expect(clippy::unused_self, reason = "the contract makes it a method")]
    fn overhead_ns(&self, py: Python<'_>, ops: u64) -> PyResult<f64> {
        Ok(py.detach(|| overhead_ns(ops))?)
    }

    fn start_interactive(&self, py: Python<'_>, user: u32, target: u16) -> PyResult<()> {
        Ok(py.detach(|| self.inner.start_interactive(user, target))?)
    }

    fn submit(&self, py: Python<'_>, user: u32, command: &[u8]) -> PyResult<u64> {
        Ok(py.detach(|| self.inner.submit(user, command))?)
    }

    fn drain_outcomes(&self, py: Python<'_>) -> Vec<Outcome> {
        let outcomes = py.detach(|| self.inner.drain_outcomes());
        outcomes.into_iter().map(Outcome).collect()
    }

    fn run_queue_delay_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.inner.core().setting.run_queue.delay_ns())
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
        let bound = Bound { threads, budget };
        Ok(py.detach(|| self.inner.read_back(target, bound))?)
    }

    fn interrupt(&self, py: Python<'_>) {
        py.detach(|| self.inner.interrupt());
    }

    fn close(&self, py: Python<'_>) -> Vec<Stuck> {
        stuck(py.detach(|| self.inner.close()))
    }
}
