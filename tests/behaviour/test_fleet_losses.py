"""A worker that dies, hangs or leaves, and a master that goes: what is said, and what is kept."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replayer.measure.clients import ClientLoss
from replayer.measure.record import load_run
from tests.behaviour import parts
from tests.behaviour.parts import COUNTED, Meeting, buckets, counts, free_port, wait_for
from tests.behaviour.shell import Done, Process, Shell
from tests.processes import children_of, is_there

BOUND = ("--worker-timeout", "10")
LONG = """\
name: long
about: Transactions that are longer than Locust's master waits for.
users: {count: 4}
duration: 1s
datasets:
  work: {directory: true, per: user}
mix: {slow_save: 1}
transactions:
  slow_save:
    - open: {in: work, name: "note_{seq}", flags: [create, wronly]}
    - think: 4s
    - write: {size: 2KiB}
    - close
"""


@contextmanager
def led(
    shell: Shell, *more: str, count: int = 2, meeting: Meeting | None = None
) -> Iterator[tuple[Process, list[Process]]]:
    """Start a master and its workers on one target, for minutes."""
    (shell.home / "counted.yaml").write_text(COUNTED.replace("iterations: 60", "duration: 5m"))
    run = ("run", "counted.yaml")
    words = (*run, "--expect-workers", str(count), "-o", "out", *BOUND, *more)
    own = (*run, "--target", f"here={shell.target()}", "--quiet")
    lines = [(*own, "-o", f"part{number}") for number in range(count)]
    with parts.led(shell, meeting or Meeting(), words, lines) as found:
        yield found


@contextmanager
def forking(shell: Shell, *words: str | Path) -> Iterator[tuple[int, list[int]]]:
    """Start a command that forks two workers: the process that forked them, and they."""
    command = shell.start(
        "run", "tiny.yaml", "--target", shell.target(), "--processes", "2", *words
    )
    try:
        wait_for(lambda: children_of(command.pid))
        (parent,) = children_of(command.pid)
        wait_for(lambda: len(children_of(parent)) == 2)
        yield parent, children_of(parent)
    finally:
        command.kill()
        command.communicate()


def ended(process: Process) -> Done:
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def measured(folder: Path) -> bool:
    """Whether a second of the run has been written."""
    timeline = folder / "timeline.csv"
    return timeline.exists() and len(timeline.read_text().splitlines()) > 3


def seconds_of(folder: Path) -> int:
    """How many seconds of the run have been written."""
    timeline = folder / "timeline.csv"
    lines = timeline.read_text().splitlines()[1:] if timeline.exists() else []
    return len({line.partition(",")[0] for line in lines})


def wait_until_all_have_told(shell: Shell) -> None:
    """Wait until each process has written a second, and has had the time to send it."""
    wait_for(lambda: all(measured(shell.home / name) for name in ("out", "part0", "part1")))
    time.sleep(2)


def said(folder: Path) -> list[str]:
    lines = (folder / "events.jsonl").read_text().splitlines()
    return [event["what"] for line in lines if "what" in (event := json.loads(line))]


def test_nothing_is_lost_of_transactions_that_take_longer_than_locust_waits(shell: Shell) -> None:
    (shell.home / "long.yaml").write_text(LONG)
    done = shell.run("run", "long.yaml", "--processes", "2", "-o", "out", "--json", "--csv", "own")
    (target,) = done.document()["summary"]["targets"]
    (slow,) = target["overall"]["transactions"]
    assert slow["count"] == 4, done.err
    assert slow["cancelled"] == 0
    assert slow["latency"]["min_ns"] > 3.9e9
    rows = (shell.home / "own_stats.csv").read_text().splitlines()
    assert rows[1].split(",")[:3] == ["FILE", "slow_save", "4"]


def test_a_worker_that_is_killed_ends_the_run_with_what_was_measured(shell: Shell) -> None:
    with led(shell) as (master, (victim, other)):
        wait_until_all_have_told(shell)
        victim.kill()
        done = ended(master)
        assert done.code == 3, done.err
        assert "is lost: it sent nothing for 10 s" in done.err
        assert "--on-lost-worker continue" in done.err
        assert other.wait(20) == 0
    record = load_run(shell.home / "out")
    assert record.status == "failed"
    assert [client.status for client in record.run.clients].count("lost") == 1
    assert sum(counts(record).values()) > 0
    assert said(shell.home / "out") == ["lost"]
    assert list((shell.home / "mount").iterdir()) == []


@pytest.mark.nightly
def test_a_run_goes_on_without_a_killed_worker_if_it_may(shell: Shell) -> None:
    with led(shell, "--on-lost-worker", "continue", "--json") as (master, (victim, other)):
        wait_until_all_have_told(shell)
        victim.kill()
        wait_for(lambda: said(shell.home / "out") == ["lost"])
        time.sleep(3)
        master.send_signal(signal.SIGINT)
        done = ended(master)
        assert other.wait(20) == 0
    document = done.document()
    assert document["status"] == "interrupted", done.err
    (gone,) = [each for each in document["clients"] if each["status"] == "lost"]
    (left,) = [each for each in document["clients"] if each["status"] == "finished"]
    assert "sent nothing for" in gone["losses"][0]["why"]
    assert sum(share["count"] for share in gone["shares"]) > 0
    record = load_run(shell.home / "out")
    last_s = max(span.end_s for span in record.spans.values())
    assert last_s > gone["losses"][0]["at_s"] + 1
    (part,) = [
        found
        for number in range(2)
        if (found := load_run(shell.home / f"part{number}")).run.process.pid == left["pid"]
    ]
    ours = sum(share["count"] for share in left["shares"])
    theirs = sum(
        histogram.count
        for key, histogram in part.log.histograms.items()
        if key.op == "transaction" and key.segment.phase == "measured" and key.outcome == "ok"
    )
    assert ours == theirs
    assert list((shell.home / "mount").iterdir()) == []


@pytest.mark.nightly
def test_a_worker_that_was_stopped_for_a_while_is_told_of_and_loses_nothing(shell: Shell) -> None:
    with led(shell, "--on-lost-worker", "continue") as (master, processes):
        wait_until_all_have_told(shell)
        # Not the keeper, which we have started: the process that works.
        worker = load_run(shell.home / "part0").run.process.pid
        os.kill(worker, signal.SIGSTOP)
        wait_for(lambda: said(shell.home / "out") == ["lost"])
        os.kill(worker, signal.SIGCONT)
        wait_for(lambda: said(shell.home / "out") == ["lost", "back"])
        time.sleep(1)
        master.send_signal(signal.SIGINT)
        done = ended(master)
        assert [process.wait(20) for process in processes] == [0, 0]
    record = load_run(shell.home / "out")
    assert [client.status for client in record.run.clients] == ["finished", "finished"]
    assert any("was lost from" in warning.message for warning in record.run.warnings), done.err
    parts = [load_run(shell.home / f"part{number}") for number in range(2)]
    assert buckets([record]) == buckets(parts)


@pytest.mark.nightly
def test_a_worker_of_a_master_that_dies_before_it_orders_anything_has_failed(shell: Shell) -> None:
    (shell.home / "counted.yaml").write_text(COUNTED)
    run = ("run", "counted.yaml")
    waits = (*run, "--expect-workers", "2", "-o", "out")
    line = (*run, "--target", f"here={shell.target()}", "-o", "part")
    with parts.led(shell, Meeting(), waits, [line]) as (master, (worker,)):
        assert master.stderr is not None
        while "1 of 2 connected" not in master.stderr.readline():
            assert master.poll() is None
        master.kill()
        assert worker.wait(90) == 3
        assert "the master sent nothing for 45 s" in worker.communicate()[1]
    assert list((shell.home / "mount").iterdir()) == []


@pytest.mark.nightly
def test_workers_of_a_killed_master_leave_and_clean_up(shell: Shell) -> None:
    with led(shell) as (master, processes):
        wait_until_all_have_told(shell)
        master.kill()
        assert [process.wait(30) for process in processes] == [3, 3]
        errors = [process.communicate()[1] for process in processes]
    assert all("the master sent nothing for 10 s" in error for error in errors)
    record = load_run(shell.home / "out")
    assert record.status == "killed"
    assert sum(counts(record).values()) > 0
    assert sum(counts(load_run(shell.home / "part0")).values()) > 0
    assert list((shell.home / "mount").iterdir()) == []


def test_forked_workers_without_an_order_end_with_what_forked_them(shell: Shell) -> None:
    nobody_leads = ("--worker", "--master-port", str(free_port()))
    with forking(shell, *nobody_leads) as (parent, forked):
        os.kill(parent, signal.SIGKILL)
        wait_for(lambda: not any(map(is_there, forked)), 20)


@pytest.mark.nightly
def test_forked_workers_of_a_killed_master_leave_and_clean_up(shell: Shell) -> None:
    with forking(shell, "-t", "5m", "-o", "out", *BOUND) as (parent, forked):
        wait_for(lambda: measured(shell.home / "out"))
        os.kill(parent, signal.SIGKILL)
        wait_for(lambda: not any(map(is_there, forked)), 40)
    assert load_run(shell.home / "out").status == "killed"
    assert list((shell.home / "mount").iterdir()) == []


@pytest.mark.nightly
def test_workers_of_a_killed_master_take_part_in_the_run_of_the_next_one(shell: Shell) -> None:
    meeting = Meeting()
    with led(shell, meeting=meeting) as (master, (one, other)):
        wait_until_all_have_told(shell)
        master.kill()
        done = shell.run(
            *("run", "counted.yaml", "--master", "--expect-workers", "2", "-t", "2s"),
            *("-o", "second", "--json", *meeting.of_master),
        )
        print(done.err)  # noqa: T201 - shown where the test fails
        document = done.document()
        assert [each["status"] for each in document["clients"]] == ["finished", "finished"]
        shares = [share["count"] for each in document["clients"] for share in each["shares"]]
        (target,) = document["summary"]["targets"]
        assert sum(each["count"] for each in target["overall"]["transactions"]) == sum(shares) > 0
        assert (one.wait(30), other.wait(30)) == (0, 0)
    first = load_run(shell.home / "out")
    assert first.status == "killed"
    assert sum(counts(first).values()) > 0
    assert sum(counts(load_run(shell.home / "part0-2")).values()) > 0
    shown = shell.run("report", "out", "--details")
    assert "2 clients began" in shown.out, shown.err
    assert list((shell.home / "mount").iterdir()) == []


def test_a_worker_may_be_ended_by_its_user(shell: Shell) -> None:
    with led(shell) as (master, (victim, other)):
        wait_until_all_have_told(shell)
        victim.send_signal(signal.SIGTERM)
        done = ended(master)
        assert done.code == 3
        assert "is lost: it left" in done.err
        assert victim.wait(20) == 4
        assert other.wait(20) == 0
    parts = [counts(load_run(shell.home / part)) for part in ("part0", "part1")]
    told = counts(load_run(shell.home / "out"))
    assert told == {name: sum(part.get(name, 0) for part in parts) for name in told}
    assert list((shell.home / "mount").iterdir()) == []


def short(shell: Shell, name: str, *more: str) -> Process:
    """Start a run of two processes that is over before a lost one is noticed by its silence."""
    (shell.home / "counted.yaml").write_text(COUNTED.replace("iterations: 60", "duration: 5s"))
    target = f"{name}={shell.target(name)}"
    return shell.start(
        *("run", "counted.yaml", "--processes", "2", "--target", target, "-o", f"{name}-out"),
        *("--worker-timeout", "6", "--json", *more),
    )


def kill_last_worker(folder: Path) -> None:
    """Kill one of a run's processes as soon as it has had its part in a second that is written.

    A process that came a little later than the other one has none in the first second.
    """
    wait_for(lambda: seconds_of(folder) > 1)
    os.kill(load_run(folder).run.clients[1].pid, signal.SIGKILL)


def loss_of_one(folder: Path) -> ClientLoss:
    """Return when the killed worker was lost, which is while it was measured."""
    record = load_run(folder)
    assert [client.status for client in record.run.clients] == ["finished", "lost"]
    assert all(client.shares for client in record.run.clients)
    (loss,) = record.run.clients[1].losses
    assert 0 < loss.at_s < max(span.end_s for span in record.spans.values())
    (event,) = [
        event
        for line in (folder / "events.jsonl").read_text().splitlines()
        if (event := json.loads(line)).get("what") == "lost"
    ]
    assert abs(event["t_s"] - loss.at_s) < 0.01
    assert f"was lost at {loss.at_s:.1f} s" in event["message"]
    return loss


@pytest.mark.nightly
def test_a_worker_that_dies_in_the_last_seconds_fails_the_run_unless_it_may_go_on(
    shell: Shell,
) -> None:
    strict = short(shell, "strict")
    kill_last_worker(shell.home / "strict-out")
    lenient = short(shell, "lenient", "--on-lost-worker", "continue")
    kill_last_worker(shell.home / "lenient-out")
    done = ended(strict)
    assert done.code == 3, done.err
    assert "is lost: it sent nothing for 6 s" in done.err
    assert "--on-lost-worker continue" in done.err
    assert done.document()["status"] == "failed"
    assert done.document()["verdict"]["exit_code"] == 3
    assert loss_of_one(shell.home / "strict-out").measuring
    went_on = ended(lenient)
    document = went_on.document()
    assert (document["status"], document["failure"]) == ("finished", None), went_on.err
    loss = loss_of_one(shell.home / "lenient-out")
    told = [each["message"] for each in document["warnings"] if "was lost" in each["message"]]
    assert [f"at {loss.at_s:.1f} s" in each for each in told] == [True]
    assert "figures come from at most 1 of 2 clients" in told[0]
    assert [list((shell.home / name).iterdir()) for name in ("strict", "lenient")] == [[], []]


def test_a_run_that_its_user_ends_is_interrupted_though_a_worker_has_just_died(
    shell: Shell,
) -> None:
    run = short(shell, "ended")
    kill_last_worker(shell.home / "ended-out")
    run.send_signal(signal.SIGINT)
    done = ended(run)
    assert done.code == 4, done.err
    document = done.document()
    assert (document["status"], document["failure"]) == ("interrupted", None)
    assert any("was lost at" in each["message"] for each in document["warnings"])
    loss_of_one(shell.home / "ended-out")
    assert list((shell.home / "ended").iterdir()) == []
