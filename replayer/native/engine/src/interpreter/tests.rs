use super::{Interpreter, Journal, Setting};
use crate::clock::now_ns;
use crate::histogram;
use crate::ops::{OK, Op};
use crate::overhead::setting;
use crate::record::Phase;
use crate::sys::{Folder, Guarded, Kernel, Null};
use crate::thread_state::{CUT, ThreadState};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn plan(steps: &Value) -> Setting {
    setting(&document(steps).to_string()).unwrap()
}

fn document(steps: &Value) -> Value {
    json!({
        "format": 1, "name": "test", "seed": 7, "users": 4, "written": "zeros", "pool_bytes": 8192,
        "tables": [[10, 20]], "mix": [1], "warm_up_ns": 0,
        "datasets": [{"name": "d", "directory": "d", "laid_out": true, "scope": "user", "content": "random",
            "entries": [["sub", "d", 0, 0o755, ""], ["sub/one.txt", "f", 20, 0o640, ""], ["l", "l", 0, 0o777, "sub"]]}],
        "pickers": [{"dataset": 0, "types": "f", "kind": "sequential"}],
        "transactions": [{"name": "t", "steps": steps}],
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": null, "transactions": null},
    })
}

fn transact<K: Kernel>(
    setting: &Setting,
    kernel: K,
    thread_state: &Arc<ThreadState>,
) -> (u64, Option<String>) {
    let shard = setting.recorder.shard(thread_state.user);
    let recorder = Arc::clone(&setting.recorder);
    let journal = Journal::new(
        recorder,
        shard,
        Arc::clone(thread_state),
        0,
        setting.begin_ns,
    );
    let mut interpreter = Interpreter::new(setting, thread_state, kernel, journal, 0);
    interpreter.transact(now_ns());
    interpreter.journal.flush();
    let failed = interpreter.journal.failed.take();
    let failed = failed.map(|failed| format!("{:?} {}", failed.op, failed.outcome));
    (
        interpreter
            .journal
            .finished
            .map_or(0, |finished| finished.bytes),
        failed,
    )
}

/// A run's folder with what the plan expects of user 3.
fn folder(at: &Path) -> Arc<Folder> {
    let folder = Folder::make(at.to_str().unwrap(), "run").unwrap();
    fs::create_dir_all(at.join("run/d/u3/sub")).unwrap();
    Arc::new(folder)
}

#[test]
fn entries_of_a_user_are_found_below_its_own_directory() {
    let at = tempfile::tempdir().unwrap();
    let setting = plan(&json!([
        {"do": "bind", "slot": 2, "pick": 0},
        {"do": "call", "op": "open", "path": 2, "flags": 0o101, "mode": null, "expect": ["ok"]},
        {"do": "call", "op": "write", "file": 2, "total": {"size_of": 2}, "block": {"const": 8}, "expect": ["ok"]},
        {"do": "bind", "slot": 3, "name": {"dataset": 0, "parts": [
            {"name_of": 2}, "-", {"draw": {"table": 0}}, "-", {"path_of": 2}]}},
        {"do": "bind", "slot": 4, "name": {"dataset": 0, "parts": ["copy-of-", {"name_of": 2}]}},
        {"do": "call", "op": "link", "path": 2, "to": 4, "expect": ["ok"]},
        {"do": "call", "op": "stat", "path": 3, "expect": ["ENOENT"]},
    ]));
    let folder = folder(at.path());
    let thread_state = Arc::new(ThreadState::new(3));
    let (bytes, failed) = transact(&setting, Guarded::enter(&folder).unwrap(), &thread_state);
    assert_eq!((bytes, failed), (20, None));
    assert_eq!(
        fs::metadata(at.path().join("run/d/u3/copy-of-one.txt"))
            .unwrap()
            .len(),
        20
    );
    let text = String::from_utf8(thread_state.texts[3].copy()).unwrap();
    assert!(
        text.starts_with("d/u3/one.txt-") && text.ends_with("0-sub/one.txt"),
        "{text}"
    );
    assert!(thread_state.doing().is_none());
}

#[test]
fn links_are_made_as_the_entry_says() {
    let at = tempfile::tempdir().unwrap();
    let setting = plan(&json!([
        {"do": "each", "dataset": 0, "slot": 0, "reverse": false, "f": [], "d": [], "l": [
            {"do": "call", "op": "symlink", "path": 0, "target": null, "expect": ["ok"]}]},
    ]));
    let folder = folder(at.path());
    let (_, failed) = transact(
        &setting,
        Guarded::enter(&folder).unwrap(),
        &Arc::new(ThreadState::new(3)),
    );
    assert_eq!(failed, None);
    assert_eq!(
        fs::read_link(at.path().join("run/d/u3/l")).unwrap(),
        Path::new("sub")
    );
}

#[test]
fn the_first_unexpected_outcome_ends_the_transaction() {
    let at = tempfile::tempdir().unwrap();
    let setting = plan(&json!([
        {"do": "bind", "slot": 0, "name": {"dataset": 0, "parts": ["missing"]}},
        {"do": "call", "op": "unlink", "path": 0, "expect": ["ok"]},
        {"do": "call", "op": "mkdir", "path": 0, "mode": 0o755, "expect": ["ok"]},
    ]));
    let folder = folder(at.path());
    let (_, failed) = transact(
        &setting,
        Guarded::enter(&folder).unwrap(),
        &Arc::new(ThreadState::new(3)),
    );
    assert_eq!(failed.as_deref(), Some("Unlink 2"));
    assert!(!at.path().join("run/d/u3/missing").exists());
}

#[test]
fn a_cut_transaction_does_nothing_more() {
    let setting = plan(&json!([
        {"do": "repeat", "times": {"const": 1_000_000_000}, "steps": [
            {"do": "bind", "slot": 0, "pick": 0},
            {"do": "call", "op": "stat", "path": 0, "expect": ["ok"]}]},
    ]));
    let thread_state = Arc::new(ThreadState::new(0));
    thread_state.raise(CUT);
    let (bytes, failed) = transact(&setting, Null, &thread_state);
    assert_eq!((bytes, failed), (0, None));
}

/// A plan that looks for a name in its own directory.
fn looking(limit_ns: u64, expect: &Value) -> Setting {
    plan(&json!([
        {"do": "bind", "slot": 0, "name": {"dataset": 0, "parts": ["new"]}},
        {"do": "until", "every": {"const": 1_000_000}, "limit": {"const": limit_ns}, "since": null, "expect": expect, "steps": [
            {"do": "call", "op": "open", "path": 0, "flags": 0, "mode": null, "expect": ["ok"]},
            {"do": "call", "op": "read", "file": 0, "size": {"const": 8}, "until_end": true, "check_size": false, "expect": ["ENOENT"]}]},
    ]))
}

#[test]
fn what_is_not_seen_within_the_limit_is_unmet() {
    let at = tempfile::tempdir().unwrap();
    let folder = folder(at.path());
    for (expect, failure) in [
        (json!(["ok"]), Some("Until 139")),
        (json!(["ok", "UNMET"]), None),
    ] {
        let setting = looking(3_000_000, &expect);
        let thread_state = Arc::new(ThreadState::new(3));
        let (_, failed) = transact(&setting, Guarded::enter(&folder).unwrap(), &thread_state);
        assert_eq!(failed.as_deref(), failure);
    }
}

#[test]
fn a_fault_ends_the_looking() {
    let at = tempfile::tempdir().unwrap();
    let folder = folder(at.path());
    fs::write(at.path().join("run/d/u3/file"), "").unwrap();
    let setting = plan(&json!([
        {"do": "bind", "slot": 0, "name": {"dataset": 0, "parts": ["file/below"]}},
        {"do": "until", "every": {"const": 1}, "limit": {"const": 60_000_000_000_u64}, "since": null, "expect": ["ok"], "steps": [
            {"do": "call", "op": "stat", "path": 0, "expect": ["ok"]}]},
    ]));
    let thread_state = Arc::new(ThreadState::new(3));
    let (_, failed) = transact(&setting, Guarded::enter(&folder).unwrap(), &thread_state);
    assert_eq!(failed.as_deref(), Some("Stat 20"));
}

#[test]
fn a_user_waits_for_the_signal_of_its_own_transaction() {
    let setting = plan(&json!([
        {"do": "signal", "signal": 2},
        {"do": "await", "signal": 2, "limit": {"const": 0}, "expect": ["ok"]},
        {"do": "await", "signal": 3, "limit": {"const": 0}, "expect": ["UNMET"]},
        {"do": "await", "signal": 3, "limit": {"const": 0}, "expect": ["ok"]},
    ]));
    let (_, failed) = transact(&setting, Null, &Arc::new(ThreadState::new(0)));
    assert_eq!(failed.as_deref(), Some("Await 139"));
}

#[test]
fn only_what_can_be_repeated_may_be_looked_for() {
    for step in [
        json!({"do": "bind", "slot": 0, "pick": 0}),
        json!({"do": "think", "time": {"const": 1}}),
        json!({"do": "call", "op": "write", "file": 0, "total": {"const": 1}, "block": {"const": 1}, "expect": ["ok"]}),
    ] {
        let steps = json!([{"do": "until", "every": {"const": 1}, "limit": {"const": 1}, "since": null, "expect": ["ok"], "steps": [step]}]);
        let refused = setting(&document(&steps).to_string()).err().unwrap();
        assert!(refused.to_string().contains("may hold names and calls"));
    }
}

/// Run a transaction where looks at the clock are spared; its latency, and the time in its calls.
fn spared(steps: &Value) -> (u64, u64) {
    let setting = plan(steps);
    let thread_state = Arc::new(ThreadState::new(0));
    let journal = Journal::new(
        Arc::clone(&setting.recorder),
        setting.recorder.shard(0),
        Arc::clone(&thread_state),
        0,
        setting.begin_ns,
    );
    let mut interpreter = Interpreter::new(&setting, &thread_state, Null, journal, 0);
    interpreter.spares_looks = true;
    interpreter.transact(u64::MAX);
    interpreter.journal.flush();
    let latency_ns = interpreter.journal.finished.map(|done| done.latency_ns);
    (latency_ns.unwrap(), thread_state.in_call_ns())
}

#[test]
fn where_looks_are_spared_calls_follow_each_other_without_a_gap() {
    let stat = json!({"do": "call", "op": "stat", "path": 2, "expect": ["ok"]});
    let (latency_ns, in_call_ns) =
        spared(&json!([{"do": "bind", "slot": 2, "pick": 0}, stat, stat, stat]));
    assert!(latency_ns > 0);
    assert_eq!(latency_ns, in_call_ns);
}

#[test]
fn where_looks_are_spared_no_call_begins_before_a_thought_has_ended() {
    let stat = json!({"do": "call", "op": "stat", "path": 2, "expect": ["ok"]});
    let think = json!({"do": "think", "time": {"const": 3_000_000}});
    let compute = json!({"do": "think", "time": {"const": 40_000}});
    let (latency_ns, in_call_ns) =
        spared(&json!([{"do": "bind", "slot": 2, "pick": 0}, stat, think, stat, compute, stat]));
    assert!(
        latency_ns >= in_call_ns + 3_040_000,
        "{in_call_ns} of {latency_ns}"
    );
}

#[test]
fn what_ended_in_the_warm_up_is_not_measured_however_late_it_is_handed_over() {
    let setting = plan(&json!([]));
    let recorder = &setting.recorder;
    let mut journal = Journal::new(
        Arc::clone(recorder),
        recorder.shard(0),
        Arc::new(ThreadState::new(0)),
        0,
        setting.begin_ns,
    );
    recorder.begin_segment(0, 0, 3_600_000_000_000);
    journal.begin(0, now_ns(), now_ns());
    journal.record(Op::Stat, (OK, true), 0, (7, now_ns()));
    journal.flush();
    journal.record(Op::Stat, (OK, true), 0, (7, now_ns()));
    recorder.measure();
    journal.record(Op::Lstat, (OK, true), 0, (7, now_ns()));
    journal.end(OK, now_ns());
    journal.flush();
    recorder.close();
    let seen: Vec<_> = recorder
        .totals()
        .iter()
        .map(|row| {
            (
                row.key.phase,
                row.key.op.to_string(),
                histogram::unpack(&row.histogram).unwrap().count(),
            )
        })
        .collect();
    let has = |phase, op: &str| seen.contains(&(phase, op.to_owned(), 1));
    assert!(has(Phase::WarmUp, "stat"));
    assert!(has(Phase::Measured, "lstat"));
    assert!(!has(Phase::Measured, "stat"), "{seen:?}");
}

#[test]
fn a_call_of_an_order_that_is_broken_off_is_not_told_as_done() {
    let setting = plan(&json!([
        {"do": "bind", "slot": 0, "pick": 0},
        {"do": "call", "op": "stat", "path": 0, "expect": ["ok"]},
    ]));
    let thread_state = Arc::new(ThreadState::new(0));
    let shard = setting.recorder.shard(0);
    let recorder = Arc::clone(&setting.recorder);
    let journal = Journal::new(
        recorder,
        shard,
        Arc::clone(&thread_state),
        0,
        setting.begin_ns,
    );
    let mut interpreter = Interpreter::new(&setting, &thread_state, Null, journal, 0);
    let steps = &setting.program.transactions[0].steps;
    let [pick, crate::program::Step::Call(stat)] = &steps[..] else {
        panic!("two steps")
    };
    interpreter.steps(std::slice::from_ref(pick)).unwrap();
    assert_eq!(interpreter.call_once(stat), Ok(0));
    thread_state.raise(CUT);
    assert_eq!(interpreter.call_once(stat), Err(super::Halt::Cut));
}
