//! The engine's own cost of an op: a plan of plain `stat`s against a target that makes no calls.

use crate::clock::{now_ns, since_ns};
use crate::error::{Error, Result, errno_of};
use crate::interpreter::{Interpreter, Setting};
use crate::plan::parse_plan;
use crate::record::{Recorder, RecorderConfig};
use crate::sys::Null;
use crate::thread_state::ThreadState;
use std::sync::Arc;

/// Ops of one transaction of the plan below.
const TURNS: u64 = 100;

/// One picked entry and one stat, a hundred times a transaction.
pub(crate) const PLAN: &str = r#"{"format": 1, "name": "overhead", "seed": 1, "users": 1, "written": "random",
"pool_bytes": 4096, "tables": [], "mix": [1],
"datasets": [{"name": "d", "directory": "d", "laid_out": false, "scope": "shared", "content": "random",
 "entries": [["a/b/one.php", "f", 1, 420, ""], ["a/b/two.php", "f", 1, 420, ""], ["a/c/three.php", "f", 1, 420, ""]]}],
"pickers": [{"dataset": 0, "types": "f", "kind": "segments", "segments": [[1, 0, 3]], "shuffle": null}],
"transactions": [{"name": "overhead", "steps": [{"do": "repeat", "times": {"const": 100}, "steps": [
 {"do": "bind", "slot": 0, "pick": 0}, {"do": "call", "op": "stat", "path": 0, "expect": ["ok"]}]}]}],
"pace": {"kind": "closed", "think": {"const": 0}},
"stop": {"duration_ns": null, "transactions": null}, "warm_up_ns": 0}"#;

/// Measure the mean cost of an op on this thread, in nanoseconds, recording into a recorder of its own.
///
/// # Errors
/// `ops` is 0.
pub fn overhead_ns(ops: u64) -> Result<f64> {
    if ops == 0 {
        return Err(Error::value("ops must be at least 1, got 0"));
    }
    let setting = setting(PLAN)?;
    let thread_state = Arc::new(ThreadState::new(0));
    let shard = setting.recorder.shard(0);
    setting.recorder.begin_segment(0, 0, 0);
    let journal = setting.journal(shard, &thread_state, 0);
    let mut interpreter = Interpreter::new(&setting, &thread_state, Null, journal, 0);
    let turns = ops.div_ceil(TURNS);
    // Meets every bucket and page once before it counts.
    interpreter.transact(now_ns());
    let start_ns = now_ns();
    for _ in 0..turns {
        interpreter.transact(now_ns());
    }
    let taken_ns = since_ns(start_ns);
    interpreter.journal.flush();
    setting.recorder.close();
    Ok(float(taken_ns) / float(turns * TURNS))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits of nanoseconds are 104 days"
)]
fn float(number: u64) -> f64 {
    number as f64
}

/// What one thread needs to run a plan, with a recorder of its own that writes nothing.
pub(crate) fn setting(plan: &str) -> Result<Setting> {
    let program = Arc::new(parse_plan(plan.as_bytes())?);
    let begin_ns = now_ns();
    let recorder = Recorder::start(RecorderConfig {
        transactions: program.transaction_names().map(str::to_owned).collect(),
        interval_ns: 1_000_000_000,
        homes: 0,
        directory: None,
        begin_epoch_ns: 0,
        begin_ns,
        users: Box::new(|| 1),
        rested: Box::new(|| None),
        doorbell: Box::new(|| {}),
    });
    let recorder = recorder.map_err(|error| Error::os(errno_of(&error), "recorder"))?;
    let read_bytes = program.read_bytes;
    Setting::new(program, recorder, begin_ns, read_bytes)
}
