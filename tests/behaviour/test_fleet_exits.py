"""A master or worker that is told to end does so in time, and a run without workers ends by itself.

Workers are stopped rather than killed where a state shall last: what they would say never comes.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from replayer.measure.record import load_run
from tests.behaviour.parts import COUNTED, Meeting, counts, wait_for, workers
from tests.behaviour.shell import Done, Process, Shell
from tests.processes import children_of

STOP_S = 1
BOUND_S = STOP_S + 5
BUSY_S = 3
"""What a busy machine may add to that."""
ESTABLISHED = "01"  # proc_net_tcp(5)
LARGE = """\
name: large
about: A tree that takes long to lay out and to remove.
users: {count: 4, think_time: 2ms}
duration: 5m
datasets:
  files: {files: 30000, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
"""
BLOCKER = """\
from gevent.monkey import get_original
from locust import events
from locust.runners import {role} as Role

@events.test_start.add_listener
def block(environment, **_):
    if isinstance(environment.runner, Role):
        open("blocked", "w").close()
        get_original("time", "sleep")(3600)
"""
Way = Literal["SIGTERM", "SIGINT twice"]
WAYS: Sequence[Way] = ("SIGTERM", "SIGINT twice")


@dataclass
class Led:
    """A master and its workers, or a command that forks them."""

    home: Path
    master: Process
    others: list[Process]
    port: int

    def is_met(self) -> bool:
        """Whether a worker has connected to the master, who waits for another one by then."""
        rows = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return any(row[1].endswith(f":{self.port:04X}") and row[3] == ESTABLISHED for row in rows)

    def pids(self) -> list[int]:
        """Return the processes that work; each is the child of one that keeps or leads it."""
        keepers = [each.pid for each in self.others] or children_of(self.master.pid)
        return [pid for keeper in keepers for pid in children_of(keeper)]

    def signal_workers(self, number: signal.Signals) -> None:
        for pid in self.pids():
            os.kill(pid, number)

    def is_measured(self) -> bool:
        timeline = self.home / "out" / "timeline.csv"
        return timeline.exists() and len(timeline.read_text().splitlines()) > 8

    def is_laying_out(self) -> bool:
        return any(path.is_file() for path in (self.home / "mount").glob("replayer-*/*/*"))

    def makes_engines(self) -> bool:
        return any(self.home.glob("part*/histograms.hlog"))

    def is_over(self) -> bool:
        events = self.home / "out" / "events.jsonl"
        return events.exists() and '"idle"' in events.read_text()

    def ended(self) -> Done:
        out, err = self.master.communicate(timeout=90)
        return Done(self.master.returncode, out, err)


@contextmanager
def led(
    shell: Shell,
    *more: str,
    scenario: str = "counted",
    count: int = 2,
    expected: int | None = None,
    of_workers: Sequence[str] = (),
) -> Iterator[Led]:
    """Start a master and workers; a count of 0 has the master fork two."""
    (shell.home / "counted.yaml").write_text(COUNTED.replace("iterations: 60", "duration: 5m"))
    (shell.home / "large.yaml").write_text(LARGE)
    run, target = ("run", f"{scenario}.yaml"), f"here={shell.target()}"
    words = (*run, "-o", "out", "--worker-timeout", "8", "--stop-timeout", str(STOP_S), *more)
    meeting = Meeting()
    own = (*run, "--target", target, "--quiet", "--stop-timeout", str(STOP_S), *of_workers)
    with workers(shell, meeting, [(*own, "-o", f"part{at}") for at in range(count)]) as others:
        if count:
            leads = ("--master", "--expect-workers", str(expected or count), *meeting.of_master)
        else:
            leads = ("--processes", "2", "--target", target)
        found = Led(shell.home, shell.start(*words, *leads), others, meeting.port)
        try:
            yield found
        finally:
            for pid in found.pids():
                os.kill(pid, signal.SIGKILL)
            found.master.kill()
            if found.master.stderr is not None and not found.master.stderr.closed:
                print(found.master.communicate()[1])  # noqa: T201 - shown where a test fails
            for each in others:
                each.kill()
                print(each.communicate()[1])  # noqa: T201 - as above


def tell_to_end(process: Process, way: Way) -> float:
    """Tell a process to end, and return how long it took."""
    process.send_signal(signal.SIGTERM if way == "SIGTERM" else signal.SIGINT)
    if way == "SIGINT twice":
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    begin_s = time.monotonic()
    process.wait(60)
    return time.monotonic() - begin_s


def status_of(folder: Path) -> str:
    """Return what a run folder says itself; a reader of one takes a dead process into account."""
    found: str = json.loads((folder / "run.json").read_text())["status"]
    return found


@pytest.mark.parametrize(
    ("count", "number"),
    [
        (1, signal.SIGKILL),
        pytest.param(2, signal.SIGSTOP, marks=pytest.mark.nightly),
        pytest.param(0, signal.SIGKILL, marks=pytest.mark.nightly),
        pytest.param(0, signal.SIGSTOP, marks=pytest.mark.nightly),
    ],
    ids=["one killed", "two stopped", "forked and killed", "forked and stopped"],
)
def test_a_run_that_loses_its_last_worker_ends_with_what_was_measured(
    shell: Shell, count: int, number: signal.Signals
) -> None:
    with led(shell, count=count) as run:
        wait_for(run.is_measured)
        run.signal_workers(number)
        done = run.ended()
    assert done.code == 3, done.err
    assert "is lost: it sent nothing for 8 s" in done.err
    mount = shell.home / "mount"
    assert (
        f"may have left folders behind; remove them there with: replayer clean {mount}" in done.err
    )
    assert "Traceback" not in done.err
    assert status_of(shell.home / "out") == "failed"
    record = load_run(shell.home / "out")
    assert {client.status for client in record.run.clients} == {"lost"}
    assert sum(counts(record).values()) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("count", [2, 0], ids=["of its own", "forked"])
def test_a_run_whose_workers_all_die_while_they_lay_out_ends(shell: Shell, count: int) -> None:
    with led(shell, scenario="large", count=count) as run:
        wait_for(run.is_laying_out)
        run.signal_workers(signal.SIGKILL)
        done = run.ended()
    assert done.code == 3, done.err
    assert "may have left folders behind; remove them there with: replayer clean" in done.err
    assert status_of(shell.home / "out") == "failed"


def test_processes_that_die_before_they_said_hello_are_not_waited_for(shell: Shell) -> None:
    with led(shell, count=0) as run:
        wait_for(run.pids)
        run.signal_workers(signal.SIGKILL)
        done = run.ended()
    assert done.code == 3, done.err
    assert "of 2 processes ended before the run started" in done.err or "is lost" in done.err


@pytest.mark.nightly
def test_a_short_silence_of_the_only_worker_ends_nothing(shell: Shell) -> None:
    with led(shell, "-t", "9s", "--worker-timeout", "20", count=1) as run:
        wait_for(run.is_measured)
        run.signal_workers(signal.SIGSTOP)
        time.sleep(7)  # Locust alone would stop the test after 4 s
        run.signal_workers(signal.SIGCONT)
        done = run.ended()
    assert done.code in {0, 4}, done.err
    record = load_run(shell.home / "out")
    assert record.status == "finished"
    assert max(span.end_s for span in record.spans.values()) > 8.5
    assert [client.losses for client in record.run.clients] == [()]


def stopped(run: Led, is_so: Callable[[], bool]) -> None:
    wait_for(is_so)
    run.signal_workers(signal.SIGSTOP)


STATES: dict[str, tuple[dict[str, object], Callable[[Led], None]]] = {
    "waiting for workers": ({"expected": 3}, lambda run: wait_for(run.is_met)),
    "laying out": ({"scenario": "large"}, lambda run: stopped(run, run.is_laying_out)),
    "making engines": ({}, lambda run: stopped(run, run.makes_engines)),
    "measuring": ({}, lambda run: wait_for(run.is_measured)),
    "measuring without workers": ({}, lambda run: stopped(run, run.is_measured)),
    "finishing": ({"scenario": "large"}, lambda run: stopped(run, run.is_over)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(state, marks=[] if state == "measuring" else [pytest.mark.nightly])
        for state in STATES
    ],
)
def test_a_master_that_is_told_to_end_does_so_in_time(shell: Shell, state: str, way: Way) -> None:
    how, reach = STATES[state]
    more = ("-t", "1s") if state == "finishing" else ()
    with led(shell, *more, **how) as run:  # type: ignore[arg-type] # a table of some arguments
        reach(run)
        if state == "waiting for workers":
            time.sleep(3)
        assert tell_to_end(run.master, way) < BOUND_S + BUSY_S
        done = run.ended()
    assert done.code in {3, 4}, done.err
    assert "Traceback" not in done.err
    assert "replayer: " in done.err
    if state != "waiting for workers":
        assert status_of(shell.home / "out") in {"interrupted", "failed"}
    if list((shell.home / "mount").iterdir()):
        assert f"replayer clean {shell.home / 'mount'}" in done.err


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
def test_a_master_whose_hub_is_blocked_ends_in_time_and_says_what_is_left(
    shell: Shell, way: Way
) -> None:
    (shell.home / "blocker.py").write_text(BLOCKER.format(role="MasterRunner"))
    with led(shell, "-f", "blocker.py", count=1) as run:
        wait_for((shell.home / "blocked").exists)
        assert tell_to_end(run.master, way) < BOUND_S + BUSY_S
        done = run.ended()
    assert done.code == 3, done.err
    assert f"did not end within {BOUND_S} s of the signal" in done.err
    assert f"results so far are in {shell.home / 'out'}" in done.err
    assert f"replayer clean {shell.home / 'mount'}" in done.err
    assert status_of(shell.home / "out") == "failed"


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", ["idle", "laying out", "measuring", "blocked"])
def test_a_worker_that_is_told_to_end_does_so_in_time_though_its_master_is_silent(
    shell: Shell, state: str, way: Way
) -> None:
    (shell.home / "blocker.py").write_text(BLOCKER.format(role="WorkerRunner"))
    blocks = ("-f", "blocker.py") if state == "blocked" else ()
    reached: dict[str, Callable[[Led], object]] = {
        "idle": Led.is_met,
        "laying out": Led.is_laying_out,
        "measuring": Led.is_measured,
        "blocked": lambda run: (run.home / "blocked").exists(),
    }
    scenario, expected = (
        "large" if state == "laying out" else "counted",
        2 if state == "idle" else 1,
    )
    with led(shell, scenario=scenario, count=1, expected=expected, of_workers=blocks) as run:
        wait_for(lambda: reached[state](run))
        if state == "idle":
            time.sleep(3)
        (leader,) = children_of(run.master.pid)
        os.kill(leader, signal.SIGSTOP)
        (worker,) = run.others
        assert tell_to_end(worker, way) < BOUND_S + BUSY_S
        _, err = worker.communicate()
        os.kill(leader, signal.SIGKILL)
    assert worker.returncode in {3, 4, -signal.SIGTERM}, err
    assert "Traceback" not in err
    if state != "idle":
        assert status_of(shell.home / "part0") == "failed"
    if state == "blocked":
        assert f"replayer clean {shell.home / 'mount'}" in err
