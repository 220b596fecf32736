"""The web page over HTTP, with the real program behind it."""

import csv
import fcntl
import json
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from replayer.measure.summary import samples_needed
from tests.behaviour.page import LIMIT_S, ORDER, Server, serve
from tests.behaviour.shell import Shell, Until, make_shell

LOCKS = """\
name: locks
about: One file that is locked again and again.
users: {count: 1, think_time: 50ms}
duration: 1s
datasets:
  files: {files: 1, sizes: 1KiB}
mix: {hold: 1}
transactions:
  hold:
    - open: {from: files, pick: uniform}
    - flock: {kind: exclusive}
    - close
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    made = make_shell(tmp_path_factory.mktemp("web"))
    made.target()
    return made


@pytest.fixture(scope="module")
def server(house: Shell) -> Iterator[Server]:
    with serve(house, "tiny.yaml", "--target", "mount=mount", "-o", "kept") as found:
        yield found


def test_each_start_is_a_run_of_its_own(server: Server, house: Shell) -> None:
    names = []
    for _ in range(2):
        server.start()
        run = server.until("stopped")
        assert run["outcome"] in {"pass", "inconclusive"}, run
        assert run["failure"] is None
        names.append(run["id"])
    first, second = (
        json.loads((house.home / "kept" / name / "run.json").read_text()) for name in names
    )
    assert names[0] != names[1]
    for found in (first, second):
        assert (found["status"], found["load"]["users"], found["cache"]["asked"]) == (
            "finished",
            2,
            "warm",
        )
        assert found["load"]["duration_s"] == 1
    assert first["plan"]["fingerprint"] == second["plan"]["fingerprint"]
    assert list((house.home / "mount").iterdir()) == []


def test_locusts_figures_are_those_of_the_run_alone(server: Server, house: Shell) -> None:
    server.start()
    run = server.until("stopped")
    report = json.loads((house.home / "kept" / run["id"] / "run.json").read_text())
    (target,) = report["summary"]["targets"]
    ours = {each["name"]: each["count"] for each in target["overall"]["transactions"]}
    shown = json.loads(server.get("stats/requests"))
    theirs = {row["name"]: row["num_requests"] for row in shown["stats"]}
    assert theirs == {**ours, "Aggregated": sum(ours.values())}
    rows = shown["extended_stats"][0]["data"]
    ops = {
        (transaction["name"], op["op"]): op["count"]
        for transaction in target["overall"]["transactions"]
        for op in transaction["ops"]
    }
    whole = {(name, "whole transaction"): count for name, count in ours.items()}
    assert {(row["transaction"], row["op"]): row["count"] for row in rows} == {**ops, **whole}
    median = next(row for row in rows if row["transaction"] == "look" and row["count"] > 20)["p50"]
    known = next(each for each in target["overall"]["transactions"] if each["name"] == "look")
    assert median * 1000 == pytest.approx(known["latency"]["p50_ns"], rel=0.002)


def test_the_figures_of_the_last_run_are_gone_when_the_next_one_is_laid_out(server: Server) -> None:
    server.start()
    server.until("stopped")
    assert len(json.loads(server.get("stats/requests"))["stats"]) > 1
    server.start()
    shown = json.loads(server.get("stats/requests"))
    assert shown["state"] == "spawning"
    ((name, count, rate),) = [
        (row["name"], row["num_requests"], row["current_rps"]) for row in shown["stats"]
    ]
    assert (name, count, rate, shown["total_rps"]) == ("Aggregated", 0, 0, 0)
    assert server.now()["run"]["rate"] is None
    server.until("stopped")


def test_every_page_and_download_has_the_same_figures_and_no_unsupported_percentile(
    server: Server,
) -> None:
    server.start(run_time="1s", pace="no think time")
    server.until("stopped")
    server.start(run_time="3s", user_count="1")
    for _ in range(20):  # while it goes on, too
        check_figures(json.loads(server.get("stats/requests")))
    server.until("stopped")
    shown = json.loads(server.get("stats/requests"))
    check_figures(shown)
    sheet = {
        row["Name"]: row for row in csv.DictReader(server.get("stats/requests/csv").split("\n"))
    }
    told = re.search(r"window.templateArgs = (\{.*)", server.get("stats/report"))
    assert told is not None
    report = json.loads(told[1])
    for row, there, times in zip(
        shown["stats"],
        report["requests_statistics"],
        report["response_time_statistics"],
        strict=True,
    ):
        own = sheet[row["name"]]
        assert row == there
        assert [put(row[f"{name}_response_time"]) for name in ("median", "avg", "min", "max")] == [
            own[f"{name} Response Time"] for name in ("Median", "Average", "Min", "Max")
        ]
        for percent in (50, 80, 90, 95, 99, 100):
            assert put(times[f"{percent / 100}"]) == own[f"{percent}%"]
        samples = int(own["Request Count"]) - int(own["Failure Count"])
        unknown = {percent for percent in (80, 90, 95, 99) if own[f"{percent}%"] == "N/A"}
        assert unknown == {each for each in (80, 90, 95, 99) if samples < samples_needed(each)}


def put(figure: float | None) -> str:
    """Write a figure of JSON as CSV does."""
    return "N/A" if figure is None else str(figure)


def check_figures(shown: dict[str, Any]) -> None:
    """Hold the Statistics tab against the File operations tab of the same answer."""
    whole = {
        row["transaction"]: row
        for row in shown["extended_stats"][0]["data"]
        if row["op"] == "whole transaction"
    }
    rows = {row["name"]: row for row in shown["stats"] if row["method"]}
    assert rows.keys() == whole.keys()
    for name, row in rows.items():
        own = whole[name]
        assert row["num_requests"] == own["count"]
        figures = ("median_response_time", "response_time_percentile_0.95")
        shares = (*figures, "response_time_percentile_0.99", "max_response_time")
        for theirs, ours in zip(shares, ("p50", "p95", "p99", "max"), strict=True):
            figure = None if own[ours] == "\N{EN DASH}" else own[ours] / 1000
            assert row[theirs] == pytest.approx(figure, rel=0.001), (theirs, own)


def test_locusts_number_of_users_is_that_of_now(server: Server) -> None:
    server.start(run_time="10m", user_count="8", spawn_rate="2")
    users = 0
    while users < 8:
        users = server.now()["run"]["users"] or 0
        assert json.loads(server.get("stats/requests"))["user_count"] >= users
    assert server.post("stop", {})[0] == 200
    server.until("stopped")


def test_locusts_downloads_name_the_targets_that_ran(shell: Shell) -> None:
    targets = [f"--target={name}={shell.target(name)}" for name in ("near", "far")]
    with serve(shell, "tiny.yaml", *targets) as server:
        for chosen in ("far", "near"):
            server.start(targets=chosen)
            server.until("stopped")
            assert f'"host": "{chosen}"' in server.get("stats/report")
            for path in ("stats/requests/csv", "stats/report?download=1"):
                answer = requests.get(server.url + path, timeout=LIMIT_S)
                assert f"_{chosen}" in answer.headers["Content-Disposition"]


@pytest.mark.parametrize("place", ["mount", "kept"])
def test_a_run_whose_folder_was_renamed_says_why_it_is_worth_nothing(
    server: Server, house: Shell, place: str
) -> None:
    server.start(run_time="10m")
    while server.now()["run"]["phase"] is None:
        pass
    run = server.now()["run"]["id"]
    (folder,) = (house.home / place).glob(f"*{run}")
    folder.rename(house.home / "renamed")
    assert server.post("stop", {})[0] == 200
    found = server.until("stopped")
    shutil.rmtree(house.home / "renamed")
    says = found["failure"] or found["why"]
    assert found["outcome"] == ("failed" if place == "kept" else "inconclusive")
    assert str(folder) in says, found


def test_the_series_hold_every_transaction(server: Server) -> None:
    server.start()
    server.until("stopped")
    found = json.loads(server.get("replayer/series?transaction=look"))
    row = next(
        row for row in json.loads(server.get("stats/requests"))["stats"] if row["name"] == "look"
    )
    assert sum(count for column in found["heat"] for _, count in column) == row["num_requests"]
    assert list(found["lines"]) == ["transaction", "close", "open", "read"]
    again = json.loads(server.get(f"replayer/series?transaction=look&after={found['last']}"))
    assert again["columns"]["t"] == []


def test_a_run_that_goes_on_is_stopped_with_what_it_has(server: Server, house: Shell) -> None:
    server.start(run_time="10m")
    server.until("running")
    code, text = server.post("swarm", ORDER)
    assert (code, json.loads(text)["success"]) == (200, False)
    assert "only one run at a time" in text
    while server.now()["run"]["phase"] is None:
        pass
    assert server.post("stop", {})[0] == 200
    run = server.until("stopped")
    report = json.loads((house.home / "kept" / run["id"] / "run.json").read_text())
    assert (report["status"], run["outcome"]) == ("interrupted", "inconclusive")
    assert report["summary"]["targets"][0]["overall"]["measured_s"] < 60
    assert list((house.home / "mount").iterdir()) == []


def test_reports_and_comparisons_are_served(server: Server) -> None:
    names = []
    for _ in range(2):
        server.start()
        names.append(server.until("stopped")["id"])
    listed = server.get("replayer/runs")
    assert all(f'value="{name}"' in listed for name in names)
    assert "Conditions" in server.get(f"replayer/runs/{names[0]}")
    document = json.loads(server.get(f"replayer/runs/{names[0]}/report.json"))
    assert document["id"] == names[0]
    verdict = server.get(f"replayer/runs/{names[0]}/report.xml")
    assert f'<testsuite name="tiny" id="{names[0]}"' in verdict
    assert "Latency over time" in server.get(f"replayer/runs/{names[0]}/report.html")
    for form in ("html", "xml"):
        assert f"{names[0]}/report.{form}" in listed


def test_runs_of_the_same_work_are_compared_however_long_they_lasted(server: Server) -> None:
    names = []
    for changes in ({"run_time": "1s"}, {"run_time": "2s"}, {"user_count": "3"}):
        server.start(**changes)
        names.append(server.until("stopped")["id"])
    short, long, other = names
    page = server.get(f"replayer/compare?run={short}&run={long}")
    assert "look p50" in page
    assert "did different work" not in page
    page = server.get(f"replayer/compare?run={short}&run={other}")
    assert "did different work: they differ in" in page
    assert "users (2 and 3)" in page
    assert "Ranking" in server.get(f"replayer/compare.html?run={short}&run={long}")


def test_a_report_is_shown_as_if_it_came_from_nowhere(server: Server) -> None:
    if server.now()["run"] is None:
        server.start()
    run = server.until("stopped")["id"]
    answer = requests.get(f"{server.url}replayer/runs/{run}/report.html", timeout=LIMIT_S)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "allow-same-origin" not in policy
    assert (
        "unsafe-inline"
        not in requests.get(f"{server.url}replayer/runs/nothing/report.html", timeout=LIMIT_S)
        .headers["Content-Security-Policy"]
        .split("style-src")[0]
    )


def test_a_trace_is_replayed_by_several_users(server: Server, house: Shell) -> None:
    order = {"trace": "wordpress/front-warm", "user_count": "2", "pace": "asap", "cache": "as-is"}
    code, text = server.post("replayer/replay", {**order, "targets": "mount"})
    assert (code, json.loads(text)["success"]) == (200, True), text
    run = server.until("stopped")
    assert run["failure"] is None
    report = json.loads((house.home / "kept" / run["id"] / "run.json").read_text())
    assert report["load"]["users"] == 2
    overall = report["summary"]["targets"][0]["overall"]
    assert overall["errors"] == 0
    counts = {op["op"]: op["count"] for op in overall["ops"]}
    assert counts["stat"] == 2 * 460
    assert 'value="wordpress/front-warm"' in server.get("replayer/traces")


def test_strangers_start_nothing(server: Server, house: Shell) -> None:
    before = sorted((house.home / "kept").iterdir()) if (house.home / "kept").exists() else []
    for headers in ({"Origin": "http://evil.example"}, {"X-Replayer-Token": "guess"}):
        assert server.post("swarm", ORDER, **headers)[0] == 403
    assert server.post("swarm", {**ORDER, "html_file": str(house.home / "x.html")})[0] == 403
    assert server.post("swarm", {**ORDER, "targets": "/"})[0] == 403
    assert server.post("user", {"user_class_name": "ScenarioUser"})[0] == 403
    assert not (house.home / "x.html").exists()
    assert server.now()["state"] in {"ready", "stopped"}
    after = sorted((house.home / "kept").iterdir()) if (house.home / "kept").exists() else []
    assert before == after


def test_a_run_that_cannot_begin_says_why_and_another_can(server: Server, house: Shell) -> None:
    gone = house.home / "elsewhere"
    (house.home / "mount").rename(gone)
    try:
        server.start()
        run = server.until("stopped")
        assert "mount: " in run["failure"]
        assert run["outcome"] == "failed"
    finally:
        gone.rename(house.home / "mount")
    server.start()
    assert server.until("stopped")["failure"] is None


def test_a_call_that_hangs_is_shown_while_it_hangs(shell: Shell, until: Until) -> None:
    mount = shell.target()
    (shell.home / "locks.yaml").write_text(LOCKS)
    with serve(shell, "locks.yaml", "--target", f"mount={mount}") as server:
        server.start(scenario="locks", run_time="10m", user_count="1", cache="as-is")
        server.until("running")
        until(lambda: server.now()["run"]["phase"])
        (file,) = (path for path in mount.glob("replayer-*/files/**/*") if path.is_file())
        with file.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            until(lambda: server.now()["run"]["hanging"])
            (hang,) = server.now()["run"]["hanging"]
            assert "flock" in hang["call"]
            assert hang["age_s"] >= 5
        until(lambda: not server.now()["run"]["hanging"])
        until(lambda: max(json.loads(server.get("replayer/series"))["columns"]["hanging"]) == 1)
        warnings = server.now()["run"]["warnings"]
        assert any("caches are not changed" in warning["message"] for warning in warnings)


@pytest.mark.parametrize(
    ("state", "number"),
    [
        ("ready", signal.SIGINT),
        ("ready", signal.SIGTERM),
        ("stopped", signal.SIGINT),
        ("stopped", signal.SIGTERM),
        ("running", signal.SIGINT),
    ],
)
def test_ctrl_c_ends_the_page_with_0_and_a_run_in_it_with_4(
    shell: Shell, state: str, number: signal.Signals
) -> None:
    mount = shell.target()
    with serve(shell, "tiny.yaml", "--target", f"mount={mount}") as server:
        if state != "ready":
            server.start(run_time="10m" if state == "running" else "1s")
            server.until(state)
        server.process.send_signal(number)
        out, err = server.process.communicate(timeout=30)
        assert server.process.returncode == (4 if state == "running" else 0), out + err
        assert "Traceback" not in err
        assert "KeyboardInterrupt" not in err
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--web-host", "0.0.0.0"], "needs a login"),
        (["--web-login"], "the secret is missing"),
        (["--web-login", "--web-secret-file", "short"], "at least 12 characters"),
        (["--web-login", "--web-secret-file", "none"], "cannot be read"),
    ],
)
def test_a_page_that_others_could_use_is_refused(shell: Shell, words: list[str], says: str) -> None:
    (shell.home / "short").write_text("hunter2\n")
    done = shell.run("web", *words)
    assert (done.code, says in done.err, "hint: " in done.err or says.startswith("cannot")) == (
        2,
        True,
        True,
    )


def test_a_port_that_somebody_has_ends_the_program_before_it_says_that_it_listens(
    shell: Shell,
) -> None:
    mount = f"mount={shell.target()}"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        for words in (
            ("web", "--web-port", port),
            ("run", "tiny.yaml", "--target", mount, "--web", "--web-port", port),
            ("run", "tiny.yaml", "--target", mount, "--master", "--expect-workers", "1",
             "--master-bind-host", "127.0.0.1", "--master-bind-port", port),
        ):  # fmt: skip
            done = shell.run(*words)
            assert (done.code, "Address already in use" in done.err) == (3, True), done.err
            assert "hint: choose another port" in done.err
            assert "Traceback" not in done.err
            assert "the page is at" not in done.err


def test_a_target_that_is_not_there_is_told_when_the_page_opens(shell: Shell, until: Until) -> None:
    with serve(shell, "tiny.yaml", "--target", "later=later") as server:
        until(lambda: server.now()["outlook"])
        (found,) = server.now()["outlook"]
        assert "later: does not exist" in found["message"]
        server.process.send_signal(signal.SIGINT)
        _, err = server.process.communicate(timeout=LIMIT_S)
    assert "replayer: warning: no run can start on later" in err
