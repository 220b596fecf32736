"""The page of a master: its runs on workers, one after the other, and a lost worker."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from replayer.measure.record import load_run
from tests.behaviour.page import Server, serve
from tests.behaviour.parts import Meeting, counts, wait_for, workers
from tests.behaviour.shell import Process, Shell

TARGET = ("--target", "mount=mount")


def rows(server: Server) -> list[dict[str, object]]:
    """Return the rows of the File operations tab."""
    found = json.loads(server.get("stats/requests"))
    (table,) = found["extended_stats"]
    data: list[dict[str, object]] = table["data"]
    return data


def shares(shell: Shell, run: str) -> list[int]:
    record = load_run(shell.home / "kept" / run)
    return [sum(share.count for share in client.shares) for client in record.run.clients]


def transactions(shell: Shell, run: str) -> int:
    record = load_run(shell.home / "kept" / run)
    assert record.run.summary is not None
    (target,) = record.run.summary.targets
    return sum(found.count for found in target.overall.transactions)


def run_with_both_and_end(shell: Shell, server: Server) -> None:
    """Let the page's two workers run once more, then end the page."""
    server.start(user_count="4")
    run = server.until("stopped")
    assert run["failure"] is None
    assert len(shares(shell, run["id"])) == 2
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(30) == 0


@contextmanager
def leading(shell: Shell) -> Iterator[tuple[Server, list[Process], Meeting]]:
    """Start a page that leads two workers."""
    meeting = Meeting()
    lines = [("web", *TARGET, "--quiet", "-o", f"part{number}") for number in range(2)]
    page = ("--master", "--expect-workers", "2", *meeting.of_master, *TARGET, "-o", "kept")
    with (
        workers(shell, meeting, lines) as processes,
        serve(shell, "tiny.yaml", *page, "--worker-timeout", "4") as server,
    ):
        yield server, processes, meeting


def test_a_page_plays_scenarios_and_traces_on_processes_of_its_own(shell: Shell) -> None:
    mount = shell.target()
    with serve(
        *(shell, "tiny.yaml", *TARGET, "--offer", "look.yaml", "--processes", "2", "-o", "kept"),
    ) as server:
        server.start(user_count="4")
        first = server.until("stopped")
        assert first["failure"] is None
        assert {row["op"] for row in rows(server)} >= {"open", "read", "close"}
        series = json.loads(server.get("replayer/series"))
        assert series
        server.start(user_count="3", scenario="look")
        laid_out = json.loads(server.get("stats/requests"))
        assert [row["num_requests"] for row in laid_out["stats"]] == [0]
        second = server.until("stopped")
        assert second["failure"] is None
        code, text = server.post(
            "replayer/replay",
            {"trace": "wordpress/front-warm", "user_count": "2", "pace": "asap", "cache": "as-is"},
        )
        assert (code, json.loads(text)["success"]) == (200, True), text
        third = server.until("stopped")
        assert third["failure"] is None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 0
    for run, users in ((first, 4), (second, 3), (third, 2)):
        record = load_run(shell.home / "kept" / run["id"])
        assert sum(client.users for client in record.run.clients) == users
        assert sum(shares(shell, run["id"])) == transactions(shell, run["id"]) > 0
        assert all(shares(shell, run["id"]))
    assert list(mount.iterdir()) == []


@pytest.mark.nightly
def test_a_page_says_that_a_worker_is_lost_and_plays_on_with_others(shell: Shell) -> None:
    mount = shell.target()
    with leading(shell) as (server, (victim, other), meeting):
        server.start(run_time="10m", user_count="4")
        wait_for(lambda: (server.now()["run"]["rate"] or 0) > 0)
        wait_for(lambda: len(rows(server)) > 3)
        victim.kill()
        run = server.until("stopped")
        assert "is lost: it sent nothing for 4 s" in run["failure"]
        assert any("was lost" in warning["message"] for warning in run["warnings"])
        assert transactions(shell, run["id"]) > 0
        assert sum(shares(shell, run["id"])) == transactions(shell, run["id"])
        page = server.get(f"replayer/runs/{run['id']}/report.html")
        assert "Share of each client" in page
        late = ("web", *TARGET, "--quiet", "-o", "late")
        with workers(shell, meeting, [late]) as (third,):
            run_with_both_and_end(shell, server)
            assert (other.wait(30), third.wait(30)) == (0, 0)
    assert sum(counts(load_run(shell.home / "late")).values()) > 0
    assert list(mount.iterdir()) == []


@pytest.mark.nightly
def test_a_worker_that_was_stopped_meanwhile_is_there_for_the_next_run(shell: Shell) -> None:
    mount = shell.target()
    with leading(shell) as (server, processes, _):
        server.start(run_time="10m", user_count="4")
        wait_for(lambda: all((shell.home / f"part{n}" / "run.json").exists() for n in range(2)))
        wait_for(lambda: (server.now()["run"]["rate"] or 0) > 0)
        asleep = load_run(shell.home / "part0").run.process.pid
        os.kill(asleep, signal.SIGSTOP)
        run = server.until("stopped")
        os.kill(asleep, signal.SIGCONT)
        assert "sent nothing" in run["failure"]
        run_with_both_and_end(shell, server)
        assert [process.wait(30) for process in processes] == [0, 0]
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("replay", "wordpress/login", "--processes", "2", "--check-order"), "--check-order needs"),
        (("replay", "wordpress/login", "--worker", "--event-log", "there"), "--event-log needs"),
        (("run", "tiny.yaml", "--worker", "--junit", "v.xml"), "--junit has no effect on a worker"),
        (("run", "tiny.yaml", "--offer", "look.yaml"), "--offer needs the web page"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused_before_anything_is_made(
    shell: Shell, words: tuple[str, ...], says: str
) -> None:
    done = shell.run(*words)
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in shell.home.iterdir()) == ["look.yaml", "tiny.yaml"]
