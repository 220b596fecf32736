"""Locustfiles whose users do other things beside file calls: requests of HTTP, waits cut off."""

import csv
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.behaviour.page import serve
from tests.behaviour.shell import Shell

LOCUST = ("-m", "locust")

EDITOR = """
from locust import constant, task

from replayer.locust import FileUser


class Editor(FileUser):
    wait_time = constant(0.02)

    @task
    def save(self):
        with self.fs.transaction("save"), self.fs.open("notes.txt", "w") as file:
            file.write(4096)
"""

MIXED = f"""
from locust import HttpUser
{EDITOR}

class Reader(HttpUser):
    host = "http://127.0.0.1:{{port}}"
    wait_time = constant(0.02)

    @task
    def read(self):
        self.client.get("/{{page}}")
"""

LOOKS = """
name: looks
duration: 1s
users: {count: 2}
datasets:
  documents: {files: 6000, sizes: 4KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: documents}
    - think: 5ms
"""

IMPATIENT = """
import gevent
from locust import constant, task

from replayer.locust import FileUser


class Impatient(FileUser):
    wait_time = constant(0.02)

    @task
    def work(self):
        with gevent.Timeout(0.05, False), self.fs.transaction("slow"):
            with self.fs.open("f", "a") as file:
                file.flock("exclusive")
                gevent.sleep(60)
        with self.fs.transaction("quick"):
            self.fs.stat("f")
"""

LATE = """
name: late
about: Two users who should begin a look every 10 ms, and take 200 ms for each.
users: {count: 2, every: 10ms}
duration: 1s
datasets:
  documents: {files: 5, sizes: 4KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: documents}
    - think: 200ms
"""

CROWDED = """
from locust import LoadTestShape


class Crowd(LoadTestShape):
    def tick(self):
        return (6, 100)
"""


class _Answer(BaseHTTPRequestHandler):
    """Knows one page."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/there" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """Where a server of HTTP listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def write_mixed(shell: Shell, port: int, page: str = "there") -> None:
    (shell.home / "mixed.py").write_text(MIXED.format(port=port, page=page))


def csv_rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open() as file:
        return {row["Name"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("several", [(), ("--processes", "2")])
def test_users_of_http_beside_a_scenario_are_not_waited_for(
    shell: Shell, port: int, several: tuple[str, ...]
) -> None:
    write_mixed(shell, port)
    done = shell.run(
        *("run", "tiny.yaml", "-f", "mixed.py", "-u", "6", "-t", "2s", "--target", shell.target()),
        *("--json", "--csv", "own", *several),
    )
    document = done.document()
    assert document["verdict"]["outcome"] != "fail", done.err
    (target,) = document["summary"]["targets"]
    assert target["overall"]["measured_s"] < 30  # users who never come are waited for 60 s
    rows = csv_rows(shell.home / "own_stats.csv")
    assert int(rows["/there"]["Request Count"]) > 0 == int(rows["/there"]["Failure Count"])
    ours = {each["name"]: each["count"] for each in target["overall"]["transactions"]}
    assert {name: int(rows[name]["Request Count"]) for name in ours} == ours


@pytest.mark.parametrize("several", [(), ("--processes", "2")])
def test_users_that_run_no_scenario_are_told_and_are_other_work(
    shell: Shell, port: int, several: tuple[str, ...]
) -> None:
    write_mixed(shell, port)
    target = str(shell.target())
    words = ("run", "tiny.yaml", "-u", "6", "-t", "1s", "--target", target, *several)
    for name, more in (("mixed", ("-f", "mixed.py")), ("plain", ())):
        assert shell.run(*words, "-o", name, *more).code in {0, 4}
    run = json.loads((shell.home / "mixed" / "run.json").read_text())
    assert (run["load"]["users"], run["user_kinds"]) == (
        6,
        [
            {"name": "Editor", "does": "file calls", "count": 2},
            {"name": "Reader", "does": "other", "count": 2},
            {"name": "ScenarioUser", "does": "scenario", "count": 2},
        ],
    )
    said = "6 (2 of 6 run the scenario; of the locustfile: 2 Editor, 2 Reader (in no figure here))"
    assert said in " ".join(shell.run("report", "mixed", "--details").out.split())
    refused = shell.run("compare", "mixed", "plain")
    assert refused.code == 2
    assert f"did different work: they differ in who works: {said} against 6" in refused.err
    compared = shell.run("compare", "mixed", "plain", "--different-plans", "--json")
    (users,) = (each for each in compared.document()["differences"] if each["what"] == "users")
    assert (users["values"], users["decides"]) == ([said, "6"], True)


@pytest.mark.parametrize("several", [(), ("--processes", "2")])
def test_requests_that_fail_fail_the_run_and_are_told(
    shell: Shell, port: int, several: tuple[str, ...]
) -> None:
    write_mixed(shell, port, "missing")
    done = shell.run(
        *("-f", "mixed.py", "--headless", "-u", "4", "-t", "1s", "--only-summary"),
        *("--target", shell.target(), "--results", "json"),
        *several,
        program=LOCUST,
    )
    document = done.document()
    assert (done.code, document["verdict"]["outcome"]) == (1, "fail"), done.err
    judgement = document["verdict"]["judgements"][-1]
    assert judgement["threshold"] == "other requests succeed"
    assert "failed, first GET /missing: requests.exceptions.HTTPError" in judgement["says"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tiny.yaml", "--target", "mount", "--target", "near"), "2 targets take turns"),
        (("tiny.yaml", "--target", "mount", "--rounds", "2"), "--rounds 2: tasks of a locustfile"),
        (("visibility", "--target", "mount"), "a scenario with roles needs all users"),
    ],
)
def test_turns_that_tasks_cannot_take_part_in_are_refused(
    shell: Shell, words: tuple[str, ...], says: str
) -> None:
    write_mixed(shell, 1)
    for name in ("mount", "near"):
        shell.target(name)
    done = shell.run("run", *words, "-f", "mixed.py")
    assert (done.code, done.out) == (2, "")
    assert says in done.err.splitlines()[0]
    assert not (shell.home / "replayer-runs").exists()


def test_verifying_is_refused_where_no_scenario_is_run(shell: Shell) -> None:
    write_mixed(shell, 1)
    done = shell.run("-f", "mixed.py", "--headless", "--verify", program=LOCUST)
    assert done.code == 2
    assert "--set (--verify) needs a scenario" in done.err


def test_users_of_http_on_a_page_ask_their_own_host(shell: Shell, port: int) -> None:
    write_mixed(shell, port)
    target = ("--target", f"mount={shell.target()}")
    with serve(shell, "tiny.yaml", "-f", "mixed.py", *target) as server:
        server.start(user_count="6")
        run = server.until("stopped")
        figures = json.loads(server.get("stats/requests"))
    assert run["outcome"] != "fail", run
    (row,) = [each for each in figures["stats"] if each["name"] == "/there"]
    assert row["num_requests"] > 0 == row["num_failures"]


def test_a_run_of_a_page_is_judged_when_its_last_segment_has_ended_and_leaves_the_next_alone(
    shell: Shell, port: int
) -> None:
    write_mixed(shell, port)
    (shell.home / "late.yaml").write_text(LATE)
    words = ("late.yaml", "-f", "mixed.py", "--target", f"mount={shell.target()}", "-o", "kept")
    summaries = []
    with serve(shell, *words, "--csv", "own") as server:
        for run_time in ("1s", "4s"):
            server.start(scenario="late", user_count="6", run_time=run_time)
            run = server.until("stopped")
            assert run["outcome"] == "inconclusive", run
            record = json.loads((shell.home / "kept" / run["id"] / "run.json").read_text())
            assert record["status"] == "finished"
            summaries.append(record["summary"]["targets"][0]["overall"])
    for summary in summaries:  # known from the end of the segment alone
        assert summary["unbegun"] > 50
        assert summary["drain_s"] is not None
    assert summaries[1]["measured_s"] > 3.9


def test_a_run_of_a_page_that_fails_while_its_users_work_is_told_as_failed(shell: Shell) -> None:
    (shell.home / "crowded.py").write_text(EDITOR + CROWDED)
    words = ("tiny.yaml", "-f", "crowded.py", "--target", f"mount={shell.target()}")
    with serve(shell, *words) as server:
        server.start(user_count="3", run_time="5s")
        run = server.until("stopped")
    assert run["outcome"] == "failed", run
    assert "the plan has 3 users" in run["failure"]


def test_thresholds_are_judged_on_transactions_that_tasks_name(shell: Shell, port: int) -> None:
    write_mixed(shell, port)
    limits = ("--threshold", "save.p50 < 1ns", "--threshold", "save/write.p50 < 9s")
    done = shell.run(
        *("-f", "mixed.py", "--headless", "-u", "4", "-t", "2s", "--only-summary", *limits),
        *("--target", shell.target(), "--results", "json"),
        program=LOCUST,
    )
    judged = {
        each["threshold"]: each["outcome"] for each in done.document()["verdict"]["judgements"]
    }
    assert judged["save/write.p50 < 9s"] == "pass"
    assert judged["save.p50 < 1ns"] in {"fail", "inconclusive"}


def test_transactions_that_are_cut_off_end_there_and_the_next_ones_are_their_own(
    shell: Shell,
) -> None:
    (shell.home / "impatient.py").write_text(IMPATIENT)
    done = shell.run(
        *("-f", "impatient.py", "--headless", "-u", "2", "-t", "4s", "--only-summary"),
        *("--target", shell.target(), "--results", "json", "--threshold", "quick.errors == 0"),
        program=LOCUST,
    )
    (target,) = done.document()["summary"]["targets"]
    found = {each["name"]: each for each in target["overall"]["transactions"]}
    assert found["slow"]["count"] == found["slow"]["errors"] > 16
    assert abs(found["quick"]["count"] - found["slow"]["count"]) <= 2
    assert found["quick"]["errors"] == 0
    assert {op["op"] for op in found["quick"]["ops"]} == {"stat"}


def test_tasks_begin_when_caches_are_prepared_and_the_run_begins(shell: Shell) -> None:
    (shell.home / "editor.py").write_text(EDITOR)
    (shell.home / "looks.yaml").write_text(LOOKS)
    done = shell.run(
        *("run", "looks.yaml", "-f", "editor.py", "-u", "4", "-t", "1s", "--cache", "warm"),
        *("--set", "warm_up=500ms", "--target", shell.target(), "-o", "r", "--json"),
    )
    (target,) = done.document()["summary"]["targets"]
    assert {"look", "save"} <= {each["name"] for each in target["overall"]["transactions"]}
    events = map(json.loads, (shell.home / "r/events.jsonl").read_text().splitlines())
    began = {each["phase"]: each["t_s"] for each in events if each["kind"] == "phase"}
    with (shell.home / "r/timeline.csv").open() as file:
        first = {row["phase"]: float(row["start_s"]) for row in reversed([*csv.DictReader(file)])}
    assert first["measured"] >= began["measured"] - 1e-3
    assert first["warm-up"] >= began["warm-up"] - 1e-3
