"""Locust's own command line, and locustfiles that people write."""

import csv
import json
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell

LOCUST = ("-m", "locust")

EDITOR = '''
"""A user written in Python, whose file calls are made natively."""

import os

from locust import constant, task

from replayer.locust import FileUser


class Editor(FileUser):
    wait_time = constant(0.01)

    def on_start(self):
        self.name = f"notes-{id(self)}"

    @task
    def save(self):
        with self.fs.transaction("save"):
            with self.fs.open(self.name, "w") as file:
                assert file.write(300_000) == 300_000
                file.fsync()
                assert file.stat() == 300_000
            assert self.fs.stat(self.name) == 300_000
            with self.fs.open(self.name) as file:
                assert file.read(1000) == 1000
                assert file.pread(10, 299_995) == 5
                assert file.seek(5) == 5
                assert file.seek(-10, os.SEEK_END) == 299_990
                file.flock("exclusive")
                file.flock("unlock")
        self.fs.mkdir(f"{self.name}.d")
        self.fs.rename(self.name, f"{self.name}.d/{self.name}")
        self.fs.listdir(f"{self.name}.d")
        self.fs.unlink(f"{self.name}.d/{self.name}")
        self.fs.rmdir(f"{self.name}.d")
        assert not self.fs.exists(self.name)

    @task
    def miss(self):
        try:
            with self.fs.transaction("miss"):
                self.fs.stat("nothing/here")
        except FileNotFoundError as error:
            assert error.filename == "nothing/here"
        else:
            raise AssertionError("the failure was not raised")

    @task
    def escape(self):
        with self.fs.transaction("escape"), self.fs.open("own", "w") as file:
            for refused, says in (
                (lambda: self.fs.open("../../outside", "w"), "open: the path "),
                (lambda: file.write(5_000_000, block=5_000_000), "write: a single write must "),
            ):
                try:
                    refused()
                except ValueError as error:
                    assert str(error).startswith(says)
                else:
                    raise AssertionError("a user left its folder")
'''

FAULTY = """
from gevent import Timeout
from locust import constant, task

from replayer.locust import FileUser


class Faulty(FileUser):
    wait_time = constant(0.1)

    @task
    def work(self):
        with self.fs.transaction("list"):
            self.fs.listdir(".")
        raise ValueError("my bug")


class Lost(FileUser):
    @task
    def work(self):
        raise Timeout(3)
"""

BROKEN_SHAPE = """\
from locust import LoadTestShape


class Shape(LoadTestShape):

    def tick(self):
        if self.get_run_time() < 1:
            return 4, 4
        # What a person has not thought of.
        {last}
"""

STRANGERS = """

class Stranger(Editor):
    def __init__(self, environment):
        super().__init__(environment)
        raise LookupError("no such account")
"""

SHAPE = """
from locust import LoadTestShape


class UpAndDown(LoadTestShape):
    def tick(self):
        seconds = self.get_run_time()
        if seconds > 4:
            return None
        return (6, 100) if seconds < 2 else (2, 100)
"""

LISTENER = """
import json

from locust import events

heard = []


@events.request.add_listener
def hear(request_type, name, response_time, exception, **_):
    heard.append((request_type, name, response_time > 0, exception is None))


@events.quit.add_listener
def tell(**_):
    with open("heard.json", "w") as file:
        json.dump(heard, file)
"""


def counted(path: Path) -> dict[str, int]:
    with path.open() as file:
        return {row["Name"]: int(row["Request Count"]) for row in csv.DictReader(file)}


@pytest.fixture
def packaged(shell: Shell) -> str:
    return shell.run("locustfile").out.strip()


def test_locust_itself_runs_a_scenario_with_its_own_options(shell: Shell, packaged: str) -> None:
    mount = shell.target()
    done = shell.run(
        *("-f", packaged, "--headless", "-u", "4", "--csv", "own", "--only-summary"),
        *("--scenario", "tiny.yaml", "--target", f"here={mount}", "--results", "json"),
        *("--html", "own.html", "--report-html", "page.html"),
        program=LOCUST,
    )
    assert done.went_well, done.err
    document = done.document()
    (target,) = document["summary"]["targets"]
    ours = {each["name"]: each["count"] for each in target["overall"]["transactions"]}
    assert counted(shell.home / "own_stats.csv") == {**ours, "Aggregated": sum(ours.values())}
    assert f'"num_requests": {ours["look"]}' in (shell.home / "own.html").read_text()
    assert "What stands out" in (shell.home / "page.html").read_text()
    assert document["load"]["users"] == 4
    assert "CPU usage" not in done.err
    assert list(mount.iterdir()) == []


def test_locusts_json_holds_what_the_engine_counted(shell: Shell, packaged: str) -> None:
    done = shell.run(
        *("-f", packaged, "--headless", "--json", "--skip-log", "-o", "out"),
        *("--scenario", "tiny.yaml", "--results", "none"),
        program=LOCUST,
    )
    theirs = {entry["name"]: entry["num_requests"] for entry in json.loads(done.out)}
    report = json.loads((shell.home / "out" / "run.json").read_text())["summary"]
    ours = {each["name"]: each["count"] for each in report["targets"][0]["overall"]["transactions"]}
    assert theirs == ours


def test_a_scenario_must_be_named(shell: Shell, packaged: str) -> None:
    done = shell.run("-f", packaged, "--headless", program=LOCUST)
    assert done.code == 2
    assert "--scenario is missing" in done.err


def test_users_in_python_make_their_calls_on_native_threads(shell: Shell) -> None:
    (shell.home / "editor.py").write_text(EDITOR)
    mount = shell.target()
    done = shell.run(
        *("-f", "editor.py", "--headless", "-u", "3", "-t", "2s", "--only-summary"),
        *("--target", mount, "--results", "json", "--csv", "own"),
        program=LOCUST,
    )
    document = done.document()
    assert "AssertionError" not in done.err, done.err
    found = {
        each["name"]: each for each in document["summary"]["targets"][0]["overall"]["transactions"]
    }
    assert found["save"]["errors"] == 0
    assert found["miss"]["errors"] == found["miss"]["count"] > 0
    assert {op["op"] for op in found["save"]["ops"]} >= {"open", "write", "fsync", "fstat", "flock"}
    assert counted(shell.home / "own_stats.csv")["save"] == found["save"]["count"]
    assert list(mount.iterdir()) == []


def test_a_users_own_locustfile_may_join_a_scenario(shell: Shell) -> None:
    (shell.home / "editor.py").write_text(EDITOR)
    done = shell.run("run", "tiny.yaml", "-f", "editor.py", "-u", "4", "-t", "2s", "--json")
    names = {
        each["name"] for each in done.document()["summary"]["targets"][0]["overall"]["transactions"]
    }
    assert {"look", "save"} <= names, done.err


@pytest.mark.parametrize("several", [(), ("--processes", "2")])
def test_tasks_that_raise_fail_the_run_and_are_told(shell: Shell, several: tuple[str, ...]) -> None:
    (shell.home / "faulty.py").write_text(FAULTY)
    done = shell.run(
        *("-f", "faulty.py", "--headless", "-u", "4", "-t", "1s", "--only-summary"),
        *("--target", shell.target(), "--results", "json"),
        *several,
        program=LOCUST,
    )
    document = done.document()
    assert (done.code, document["verdict"]["outcome"]) == (1, "fail"), done.err
    judgement = document["verdict"]["judgements"][-1]
    assert "raised, first" in judgement["says"]
    (file,) = shell.home.glob("replayer-runs/*/run.json")
    found = {each["raised"]: each for each in json.loads(file.read_text())["task_failures"]}
    assert found["ValueError: my bug"]["count"] > 4
    assert found["ValueError: my bug"]["place"].endswith("faulty.py:15")
    assert found["gevent.timeout.Timeout: 3 seconds"]["count"] == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\ndef (:\n", "/mine.py:2: SyntaxError: invalid syntax"),
        ("import no_such_module", "/mine.py:1: ModuleNotFoundError: No module named"),
        ("class ScenarioUser(__import__('locust').User): pass", "Duplicate user class names"),
        (None, "-f mine.py: no such locustfile"),
    ],
)
def test_a_mistake_in_a_locustfile_is_the_users_and_has_its_line(
    shell: Shell, text: str | None, says: str
) -> None:
    if text is not None:
        (shell.home / "mine.py").write_text(text)
    done = shell.run("run", "tiny.yaml", "-f", "mine.py")
    assert (done.code, done.out) == (2, "")
    assert says in done.err.splitlines()[0]
    assert "bug" not in done.err


def test_a_load_shape_lets_users_come_and_go(shell: Shell) -> None:
    (shell.home / "shape.py").write_text(SHAPE)
    done = shell.run("run", "look.yaml", "-f", "shape.py", "-u", "6", "--set", "duration=60s")
    assert done.went_well, done.err
    (timeline,) = shell.home.glob("replayer-runs/*/timeline.csv")
    with timeline.open() as file:
        users = [int(row["users"]) for row in csv.DictReader(file)]
    assert max(users) == 6
    assert 2 in users


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom at {file}:10"),
        ("return 8", "tick() must return (users, spawn_rate) or None, got 8 at {file}:6"),
        ("return (8, 0)", "tick() must return a spawn_rate above 0, got (8, 0) at {file}:6"),
    ],
)
@pytest.mark.parametrize("several", [(), ("--processes", "2")])
def test_a_load_shape_that_breaks_fails_the_run_and_is_told(
    shell: Shell, several: tuple[str, ...], last: str, says: str
) -> None:
    (shell.home / "broken.py").write_text(BROKEN_SHAPE.format(last=last))
    words = ("-f", "broken.py", "-u", "6", "--set", "duration=30s", "--json", *several)
    done = shell.run("run", "look.yaml", "--target", shell.target(), *words)
    document = done.document()
    assert (done.code, document["verdict"]["outcome"]) == (1, "fail"), done.err
    judgement = document["verdict"]["judgements"][-1]
    assert judgement["threshold"] == "the load shape raises nothing"
    assert judgement["says"] == f"1 raised, first {says.format(file=shell.home / 'broken.py')}"
    assert "Traceback" not in done.err
    (file,) = shell.home.glob("replayer-runs/*/run.json")
    (found,) = json.loads(file.read_text())["task_failures"]
    assert (found["what"], found["count"]) == ("shape", 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("look.yaml", "--rounds", "1", "--target", "b=near"), "one target at a time, got 2"),
        (("look.yaml", "--rounds", "3"), "--rounds 3: a load shape cannot restart"),
        (("look.yaml", "--set", "iterations=5"), "each user ends after 5 transactions"),
    ],
)
def test_turns_and_ends_that_a_load_shape_does_not_know_are_refused(
    shell: Shell, words: tuple[str, ...], says: str
) -> None:
    (shell.home / "shape.py").write_text(SHAPE)
    shell.target("near")
    target = ("--target", f"a={shell.target()}")
    done = shell.run("run", *words, "-f", "shape.py", "-u", "6", *target)
    assert (done.code, done.out) == (2, "")
    assert says in done.err.splitlines()[0]
    assert not (shell.home / "replayer-runs").exists()


@pytest.mark.parametrize("several", [(), ("--processes", "2")])
def test_users_that_cannot_be_made_end_the_run_with_the_line_that_raised(
    shell: Shell, several: tuple[str, ...]
) -> None:
    (shell.home / "strangers.py").write_text(EDITOR + STRANGERS)
    target = ("--target", shell.target())
    done = shell.run("run", "look.yaml", "-f", "strangers.py", "-u", "6", *target, *several)
    assert done.code == 2, done.err
    raised = "Locust could not start users: LookupError: no such account at "
    (line,) = (line for line in done.err.splitlines() if raised in line)
    assert line.endswith(f"strangers.py:{len((EDITOR + STRANGERS).splitlines())}")


def test_more_users_than_the_plan_has_are_refused_with_a_line(shell: Shell) -> None:
    (shell.home / "shape.py").write_text(SHAPE)
    done = shell.run("run", "look.yaml", "-f", "shape.py", "-u", "3")
    assert done.code == 2
    assert "the plan has 3 users" in done.err
    (timeline,) = shell.home.glob("replayer-runs/*/timeline.csv")
    assert "\n3." not in timeline.read_text(), "it ends where it fails"


def test_a_load_shape_of_users_in_python_needs_no_number_of_users(shell: Shell) -> None:
    (shell.home / "shaped.py").write_text(EDITOR + SHAPE)
    target = ("--target", str(shell.home), "--results", "json")
    done = shell.run("-f", "shaped.py", "--headless", *target, program=LOCUST)
    document = done.document()
    assert (document["status"], document["load"]["users"]) == ("finished", 6), done.err


def test_listeners_of_request_events_hear_of_every_transaction(shell: Shell) -> None:
    (shell.home / "listener.py").write_text(LISTENER)
    done = shell.run("run", "tiny.yaml", "-f", "listener.py", "--json")
    assert done.went_well, done.err
    (target,) = done.document()["summary"]["targets"]
    ours = sum(each["count"] for each in target["overall"]["transactions"])
    heard = json.loads((shell.home / "heard.json").read_text())
    assert len(heard) >= ours > 0
    assert {tuple(each) for each in heard} == {
        ("FILE", "look", True, True),
        ("FILE", "save", True, True),
    }
