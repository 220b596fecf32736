"""Folders that the native engine wrote: what is read from them is what it says it measured."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Engine, Histogram, Plan, Row, Sandbox
from replayer.measure.hlog import Key, Segment, read_log
from replayer.measure.record import load_run, read_events
from replayer.measure.runfolder import RunFolder
from replayer.measure.summarise import summarise
from replayer.measure.timeline import read_timeline
from replayer.report.composition import compose
from replayer.report.table import render_table
from tests.unit.runs import make_load, make_run, make_target

GOLDEN = Path(__file__).parents[2] / "golden" / "engine-run"
OK = ["ok"]
READ: list[dict[str, Any]] = [
    {"do": "bind", "slot": 0, "pick": 0},
    {"do": "call", "op": "open", "path": 0, "flags": 0, "mode": 0, "expect": OK},
    {"do": "call", "op": "read", "file": 0, "size": {"const": 4096}, "until_end": True,
     "check_size": True, "expect": OK},
    {"do": "call", "op": "close", "file": 0, "expect": OK},
]  # fmt: skip
MISS: list[dict[str, Any]] = [
    {"do": "bind", "slot": 1, "name": {"dataset": 0, "parts": ["gone"]}},
    {"do": "call", "op": "stat", "path": 1, "expect": ["ENOENT"]},
    {"do": "call", "op": "unlink", "path": 1, "expect": OK},
]
PLAN = {
    "format": 1,
    "name": "small",
    "seed": 1,
    "users": 2,
    "written": "random",
    "pool_bytes": 1 << 20,
    "tables": [],
    "datasets": [
        {"name": "files", "directory": "files", "laid_out": True, "scope": "shared",
         "content": "random", "entries": [[f"f{n}", "f", 8192, 0o644, ""] for n in range(20)]},
    ],
    "pickers": [
        {"dataset": 0, "types": "f", "kind": "segments", "segments": [[1, 0, 20]], "shuffle": None},
    ],
    "transactions": [{"name": "read", "steps": READ}, {"name": "miss", "steps": MISS}],
    "mix": [9, 1],
    "pace": {"kind": "closed", "think": {"const": 1_000_000}},
    "stop": {"duration_ns": None, "transactions": None},
    "warm_up_ns": 0,
}  # fmt: skip
RUN = make_run(
    status="running",
    targets=(make_target(), make_target(1, "other")),
    load=make_load(users=2, rounds=2),
)


def recorded(folder: Path, targets: Path) -> Sequence[Row]:
    """Run two rounds on two targets, 0.1 s each, and return the engine's own totals."""
    plan = Plan(json.dumps(PLAN).encode())
    sandboxes = []
    for name in ("a", "b"):
        (targets / name).mkdir(parents=True)
        sandboxes.append([Sandbox.create(str(targets / name), "test", "{}")])
        sandboxes[-1][0].lay_out(plan, 1).result()
    folder.mkdir()
    RunFolder(folder, RUN.id).write_run(RUN)
    engine = Engine(plan, sandboxes, record=str(folder), interval_ns=50_000_000)
    for user in range(2):
        engine.start_user(user)
    for number in range(2):
        for target in range(2):
            engine.begin_segment(target, number, 20_000_000)
            time.sleep(0.12)
            assert engine.end_segment(1_000_000_000) == []
    totals = engine.totals()
    engine.close()
    return totals


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sequence[Row]]:
    place = tmp_path_factory.mktemp("real")
    totals = recorded(place / "run", place / "targets")
    return place / "run", totals


def test_the_log_holds_what_the_engine_counted(real: tuple[Path, Sequence[Row]]) -> None:
    folder, totals = real
    record = load_run(folder)
    found = {
        (key.segment.target, key.segment.round, key.segment.phase, key.transaction, key.op,
         key.outcome, key.expected): (histogram.count, histogram.max, record.bytes.get(key, 0))
        for key, histogram in record.log.histograms.items()
    }  # fmt: skip
    assert found == {
        (row.target, row.round, row.phase, row.transaction, row.op, row.outcome, row.expected): (
            row.histogram.count, row.histogram.max, row.bytes)
        for row in totals
    }  # fmt: skip
    assert record.losses.total == 0


def test_histograms_have_the_figures_that_the_engine_gives(
    real: tuple[Path, Sequence[Row]],
) -> None:
    record = load_run(real[0])
    for row in real[1]:
        segment = Segment(row.target, row.round, row.phase)
        key = Key(segment, row.transaction, row.op, row.outcome, row.expected)
        ours, theirs = record.log.histograms[key], row.histogram
        assert ours.buckets() == theirs.buckets()
        assert (ours.count, ours.min, ours.max) == (theirs.count, theirs.min, theirs.max)
        assert ours.mean == pytest.approx(theirs.mean)
        assert ours.stdev == pytest.approx(theirs.stdev)
        for percent in (0.0, 50.0, 95.0, 99.0, 99.9, 100.0):
            assert ours.percentile(percent) == theirs.percentile(percent)


def test_the_largest_values_survive_the_way_from_the_engine() -> None:
    theirs = Histogram()
    values = (0, 1, 2047, 2048, 10**9, 86_400_000_000_000)
    for value in values:
        theirs.record(value, 2**40)
    buckets = Histogram(theirs.to_v2()).buckets()
    assert buckets == theirs.buckets()
    assert [count for _, count in buckets] == [2**40] * len(values)


def test_each_round_lasted_as_long_as_it_was_asked_to(real: tuple[Path, Sequence[Row]]) -> None:
    summary = summarise(load_run(real[0]))
    for target in summary.targets:
        assert [part.number for part in target.rounds] == [0, 1]
        for part in target.rounds:
            # 120 ms less 20 ms warm-up; a busy machine may see the end of either late, never early.
            assert 0.05 < part.measured_s < 10


def test_errors_and_expected_errnos_are_told_apart(real: tuple[Path, Sequence[Row]]) -> None:
    overall = summarise(load_run(real[0])).targets[0].overall
    ops = {op.op: op for op in overall.ops}
    assert ops["stat"].errors == 0
    assert ops["unlink"].errors == ops["unlink"].count == overall.errors
    assert ops["read"].bytes == 8192 * ops["open"].count


def logged(file: Path) -> tuple[int, int]:
    log = read_log(file)
    return len(log.histograms), log.damaged


def timed(file: Path) -> tuple[int, int]:
    rows = list(read_timeline(file))
    return len(rows) - rows.count(None), rows.count(None)


def noted(file: Path) -> tuple[int, int]:
    events, damaged = read_events(file)
    return len(events), damaged


def test_files_of_the_engine_cut_at_every_byte_of_their_end_still_read(
    real: tuple[Path, Sequence[Row]], tmp_path: Path
) -> None:
    readers: dict[str, Callable[[Path], tuple[int, int]]] = {
        "histograms.hlog": logged,
        "timeline.csv": timed,
        "events.jsonl": noted,
    }
    for name, read in readers.items():
        lines = (real[0] / name).read_bytes().splitlines(keepends=True)
        head, last = b"".join(lines[:4]), b"".join(lines[-8:])
        for cut in range(len(last) + 1):
            (tmp_path / name).write_bytes(head + last[:cut])
            found, damaged = read(tmp_path / name)
            assert damaged == (cut > 0 and not last[:cut].endswith(b"\n"))
            assert found >= last[:cut].count(b"\n")


CRASHING = """
import json, os, pathlib, sys, time
sys.path.insert(0, sys.argv[2])
from replayer.measure.run import this_process
from tests.unit.measure import test_engine_folder as here
plan = here.Plan(json.dumps(here.PLAN).encode())
place = pathlib.Path(sys.argv[1])
sandbox = here.Sandbox.create(str(place), "test", "{}")
sandbox.lay_out(plan, 1).result()
(place / "run").mkdir()
run = here.RUN.model_copy(update={"process": this_process()})
here.RunFolder(place / "run", run.id).write_run(run)
engine = here.Engine(plan, [[sandbox]], record=str(place / "run"), interval_ns=50_000_000)
engine.start_user(0)
engine.begin_segment(0, 0, 0)
print("running", flush=True)
time.sleep(60)
"""


def read_transactions(folder: Path) -> int:
    histograms = load_run(folder).log.histograms
    return sum(
        histogram.count
        for key, histogram in histograms.items()
        if (key.transaction, key.op, key.segment.phase) == ("read", "transaction", "measured")
    )


def test_a_run_killed_with_9_is_reported_with_all_but_its_last_interval(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", CRASHING, str(tmp_path), root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.5)
        while read_transactions(tmp_path / "run") <= 20:  # on a busy machine
            assert process.poll() is None
            time.sleep(0.05)
        assert load_run(tmp_path / "run").status == "running"
        process.send_signal(signal.SIGKILL)
    found = compose(load_run(tmp_path / "run"))
    assert (found.status, found.verdict.outcome) == ("killed", "inconclusive")
    overall = found.summary.targets[0].overall
    assert overall.measured_s > 0.2
    counts = {each.name: each.count for each in overall.transactions}
    assert counts["read"] > 20
    assert "the run was killed" in render_table(found)


def rounded(node: object) -> object:
    """The same with floats of nine digits: the last ones depend on the order of additions."""
    if isinstance(node, dict):
        return {key: rounded(value) for key, value in node.items()}
    if isinstance(node, list):
        return [rounded(value) for value in node]
    return float(f"{node:.9g}") if isinstance(node, float) else node


def test_a_folder_of_an_earlier_engine_still_gives_the_same_summary(tmp_path: Path) -> None:
    if os.environ.get("REPLAYER_BLESS") == "1":
        shutil.rmtree(GOLDEN, ignore_errors=True)
        recorded(GOLDEN, tmp_path)
        blessed = summarise(load_run(GOLDEN))
        (GOLDEN / "summary.json").write_text(blessed.model_dump_json(indent=1) + "\n")
    found = summarise(load_run(GOLDEN)).model_dump_json()
    approved = (GOLDEN / "summary.json").read_text()
    assert rounded(json.loads(found)) == rounded(json.loads(approved))
