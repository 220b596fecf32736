"""``replayer replay`` as a person meets it: real traces on real files, matched call by call."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import pytest

from replayer.report.json_form import run_schema
from replayer.trace.shipped import shipped_traces
from tests.behaviour.shell import Done, Shell, Until, make_shell
from tests.behaviour.test_run_signals import is_measuring

MEMORY = Path("/dev/shm")  # noqa: S108 - a tmpfs
LARGE = {
    "linux/untar",
    "wordpress/deploy-cp",
    "wordpress/deploy-release",
    "wordpress/deploy-rsync",
}
"""Traces that write 65 MB and more."""


def results(done: Done) -> Any:  # noqa: ANN401 - JSON
    assert done.went_well, done.out[:3000] + done.err
    return done.document()["replay"]["results"]


def left_on(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


@pytest.fixture
def memory() -> Iterator[Path]:
    if not MEMORY.is_dir():
        pytest.skip("there is no tmpfs at /dev/shm")
    with TemporaryDirectory(dir=MEMORY, prefix="replayer-test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def done(home: Path) -> Done:
    shell = make_shell(home)
    return shell.run(
        *("replay", "wordpress/login", "--target", f"here={shell.target()}", "--speed", "10"),
        *("-u", "2", "--loops", "3", "--check-order", "--json", "-o", "out"),
    )


class TestOneReplay:
    """A replay with most of what can be asked for at once."""

    def test_json_keeps_to_its_schema(self, done: Done) -> None:
        assert done.went_well, done.err
        jsonschema.validate(done.document(), run_schema())

    def test_every_event_of_every_performance_comes_out_as_recorded(self, done: Done) -> None:
        found = results(done)
        assert found["performances"] == 6
        assert found["events"] == 6 * 755
        assert found["matched"] == found["compared"] > 6 * 700
        assert found["diverged"] == found["examples"] == []

    def test_the_summary_counts_the_performances_as_transactions(self, done: Done) -> None:
        (target,) = done.document()["summary"]["targets"]
        (login,) = target["overall"]["transactions"]
        assert (login["name"], login["count"], login["errors"]) == ("login", 6, 0)
        (judged, order) = done.document()["verdict"]["judgements"]
        assert (judged["threshold"], judged["outcome"]) == ("errors == 0", "pass")
        assert (order["threshold"], order["outcome"]) == ("order kept", "pass")

    def test_the_run_folder_holds_the_log_of_all_events(self, done: Done, home: Path) -> None:
        assert done.went_well
        logs = list((home / "out" / "events").glob("*.events"))
        assert len(logs) == 6
        assert sum(path.stat().st_size for path in logs) % 24 == 0
        run = json.loads((home / "out" / "run.json").read_text())
        assert run["replay"]["traces"][0]["name"] == "wordpress/login"
        assert run["replay"]["lanes"] >= 0

    def test_nothing_is_left_on_the_target(self, done: Done, home: Path) -> None:
        assert done.went_well
        assert left_on(home / "mount") == []

    def test_the_report_names_trace_blind_spots_and_agreement(self, done: Done, home: Path) -> None:
        assert done.went_well
        table = Shell(home).run("report", "out", "--details")
        assert "wordpress/login: 755 events of 1 thread" in table.out
        assert "blind spots  none seen in the recording" in table.out
        assert "100 % as recorded, 0 diverged" in table.out
        junit = Shell(home).run("report", "out", "--format", "junit")
        assert '<testcase classname="wordpress-login" name="here: events come out' in junit.out


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name in LARGE else [])
        for name in shipped_traces()
    ],
)
@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_shipped_trace_matches_to_the_last_event(
    shell: Shell, memory: Path, name: str, place: str
) -> None:
    mount = memory if place == "memory" else shell.target()
    done = shell.run(
        *("replay", name, "--target", mount, "--pace", "asap", "--loops", "2", "--json", "--quiet")
    )
    found = results(done)
    assert found["diverged"] == found["omitted"] == []
    assert found["matched"] == found["compared"]
    assert found["compared"] > found["events"] // 2
    assert left_on(mount) == []


@pytest.mark.parametrize("name", ["wordpress/upload", "wordpress/page-cache-miss"])
def test_many_users_write_files_of_their_own(shell: Shell, memory: Path, name: str) -> None:
    done = shell.run("replay", name, "--target", memory, "-u", "16", "--pace", "asap", "--json")
    found = results(done)
    assert found["performances"] == 16
    assert found["diverged"] == []
    assert left_on(memory) == []


def test_requests_are_drawn_by_weight_and_arrive_at_a_rate(shell: Shell) -> None:
    done = shell.run(
        *("replay", "wordpress/login", "--requests", "login-form=3", "login POST=0"),
        *("--pace", "open", "--rate", "30/s", "-u", "8", "-t", "2s", "--json"),
    )
    assert done.went_well, done.err
    document = done.document()
    assert document["load"]["loop"] == "open"
    (form,) = document["summary"]["targets"][0]["overall"]["transactions"]
    assert form["name"] == "login-form"
    assert form["count"] > 20
    assert document["replay"]["results"]["performances"] >= form["count"]


def test_a_timed_replay_tells_how_late_its_events_were(shell: Shell) -> None:
    done = shell.run("replay", "wordpress/login", "--pace", "timed", "--quiet", "--details")
    assert done.went_well, done.err
    assert "lateness   p50" in done.out
    assert "drift" in done.out


def test_several_targets_take_turns_and_are_ranked(shell: Shell) -> None:
    targets = [f"--target={name}={shell.target(name)}" for name in ("one", "two")]
    done = shell.run("replay", "wordpress/login", *targets, "--pace", "asap", "--json")
    assert done.went_well, done.err
    document = done.document()
    assert document["load"]["rounds"] == 3
    per_target = [each["performances"] for each in document["replay"]["results"]["targets"]]
    assert per_target == [3, 3]
    assert document["ranking"]


def test_a_scenario_may_replay_requests_among_other_steps(shell: Shell) -> None:
    (shell.home / "pages.yaml").write_text(
        "name: pages\niterations: 3\nmix: {page: 1}\n"
        "datasets:\n  files: {files: 5, sizes: 1KiB}\n"
        "transactions:\n  page:\n    - stat: {from: files}\n"
        "    - replay: {trace: wordpress/login, request: login form, speed: 10}\n"
    )
    done = shell.run("run", "pages.yaml", "-u", "2", "--json")
    found = results(done)
    assert found["performances"] == 6
    assert found["diverged"] == []


def test_an_event_that_comes_out_otherwise_is_an_error_and_is_explained(shell: Shell) -> None:
    mount = shell.target()
    kept = shell.run("replay", "wordpress/login", "--target", mount, "--pace", "asap", "--keep")
    assert kept.went_well, kept.err
    (folder,) = mount.iterdir()
    # Not reused as it stands: a trace of another tree is recorded instead, by editing the tree.
    victim = next(folder.rglob("wp-config.php"))
    victim.unlink()
    refused = shell.run("replay", "wordpress/login", "--reuse", folder)
    assert refused.code == 2
    assert "wp-config.php" in refused.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_replay_with_what_there_is_and_leaves_nothing(
    shell: Shell, until: Until, number: int
) -> None:
    mount = shell.target()
    process = shell.start(
        *("replay", "wordpress/upload", "--target", mount, "-u", "2", "-t", "60s"),
        *("--json", "--stop-timeout", "1"),
    )
    until(lambda: is_measuring(shell.home))
    time.sleep(0.5)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert document["replay"]["results"]["events"] > 0
    assert document["replay"]["results"]["diverged"] == []
    assert left_on(mount) == []


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (("wordpress/frnt-warm",), "no such trace", "wordpress/front-warm"),
        ((".",), "is not a trace", "replayer capture"),
        (("wordpress/login", "--requests", "login-frm"), "no request 'login-frm'", "did you mean"),
        (("wordpress/login", "--pace", "open"), "--pace open needs requests", "--requests"),
        (("wordpress/login", "--pace", "timed", "--requests"), "excludes --requests", "closed"),
        (("wordpress/login", "--speed", "0"), "--speed: must be a number above 0", "--help"),
        (("wordpress/login", "--speed", "0.001"), "from 0.01 to 10000, got 0.001", "1 is "),
        (("wordpress/login", "--pace", "asap", "--speed", "2"), "has no gaps", "leave --speed out"),
        (("wordpress/login", "--rate", "5/s"), "sets the arrivals of --pace open", "--requests"),
        (("wordpress/login", "--loops", "0"), "--loops: must be a whole number from 1", "--help"),
        (("wordpress/login", "-u", "0"), "-u must be from 1 to 1,000,000, got 0", ""),
        (("wordpress/login", "--set", "a=1"), "unrecognized arguments", "--help"),
        (("linux/untar", "--requests"), "the trace has no requests", "leave --requests out"),
        (
            ("wordpress/login", "--threshold", "logn.p50 < 1s"),
            "no transaction or op 'logn'",
            "login",
        ),
    ],
)
def test_bad_input_is_refused_with_one_line_and_nothing_is_left(
    shell: Shell, words: tuple[str, ...], says: str, hint: str
) -> None:
    done = shell.run("replay", *words)
    assert (done.code, done.out) == (2, ""), done.err
    first, *rest = done.err.strip().splitlines()
    assert says in first
    assert hint in "\n".join(rest)
    assert len(rest) <= 1
    assert left_on(shell.home) == ["look.yaml", "tiny.yaml"]


def test_locusts_own_command_line_replays_too(shell: Shell) -> None:
    words = ("-f", str(Path(__file__).parents[2] / "replayer/locust/locustfile.py"), "--headless")
    done = shell.run(
        *words, "--trace", "wordpress/login", "--pace", "asap", "--results", "json",
        program=("-m", "locust"),
    )  # fmt: skip
    assert results(done)["performances"] == 1


def test_an_event_log_needs_an_empty_folder(shell: Shell) -> None:
    done = shell.run("replay", "wordpress/login", "--event-log", ".")
    assert done.code == 2
    assert "an event log needs an empty folder" in done.err


def test_names_like_those_of_other_users_are_refused_where_there_are_others(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    script = "cd root; echo x > a; echo y > a~1; cat a a~1; rm a a~1"
    shell.run("capture", "-o", "trace", "--root", "root", "--", "sh", "-c", script)
    words = ("replay", "trace", "--target", shell.target(), "--json")
    found = results(shell.run(*words))
    assert found["matched"] == found["compared"] > 0
    for more in (("-u", "2"), ("--loops", "2"), ("-t", "1s")):
        done = shell.run(*words, *more)
        first, hint = done.err.strip().splitlines()
        assert done.code == 2
        assert first.startswith("replayer: trace: its files would share names")
        assert first.endswith(": root/a~1 is their name for root/a")
        assert hint.startswith("hint: ")
        assert "-u 1 --loops 1" in hint


LOCKED = """
import fcntl, os
os.chdir("root")
one, two = (os.open("db", os.O_RDWR | os.O_CREAT) for _ in range(2))

def in_a_child(wanted):
    if os.fork() == 0:
        file = os.open("db", os.O_RDWR)
        try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError: os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == wanted

fcntl.lockf(one, fcntl.LOCK_EX)
fcntl.lockf(two, fcntl.LOCK_EX)
in_a_child(1)
fcntl.lockf(one, fcntl.LOCK_UN)
in_a_child(0)
fcntl.lockf(two, fcntl.LOCK_EX)
in_a_child(1)
os.close(os.open("db", os.O_RDWR))
in_a_child(0)
fcntl.lockf(two, fcntl.LOCK_EX)
fcntl.lockf(two, fcntl.LOCK_SH)
fcntl.lockf(one, fcntl.LOCK_EX)
os.close(one)
in_a_child(0)
"""


def test_descriptors_of_one_process_do_not_lock_each_other_out(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ["capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", LOCKED]
    assert shell.run(*words).code == 0
    replay = ("replay", "trace", "--target", shell.target(), "--loops", "3", "--json")
    found = results(shell.run(*replay, "--stop-timeout", "5s"))
    assert found["matched"] == found["compared"] > 0
    assert (found["performances"], found["omitted"]) == (3, [])


IN_TURN = """
import fcntl, os, time
os.chdir("root")
one = os.open("db", os.O_RDWR | os.O_CREAT)
fcntl.lockf(one, fcntl.LOCK_EX)
refused, tells = os.pipe()
if os.fork() == 0:
    other = os.open("db", os.O_RDWR)
    try: fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: os.write(tells, b"!")
    fcntl.lockf(other, fcntl.LOCK_EX)
    os._exit(0)
os.read(refused, 1)
time.sleep(0.2)
os.close(os.open("db", os.O_RDWR))
os.wait()
"""


def test_a_lock_is_taken_after_the_close_that_ended_the_one_before(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ["capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", IN_TURN]
    assert shell.run(*words).code == 0
    replay = ("replay", "trace", "--target", shell.target(), "--loops", "50", "--json")
    found = results(shell.run(*replay, "--stop-timeout", "5s"))
    assert found["matched"] == found["compared"] > 0
    assert (found["performances"], found["omitted"]) == (50, [])


CONTENDED = """
import os
os.chdir("root")
try: os.stat("made")
except OSError: pass
both = [os.open(name, os.O_RDWR | os.O_CREAT) for name in ("there", "made")]
if os.fork() == 0:
    for name in ("there", "made"):
        one = os.open(name, os.O_RDWR | os.O_CREAT)
        os.read(one, 100); os.write(one, b"more")
    os._exit(0)
os.wait()
for one in both: os.pwrite(one, b"x", 0)
"""


def test_a_user_alone_finds_what_threads_contended_for_as_it_was_each_time(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    (shell.home / "root/there").write_text("text")
    words = ["capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", CONTENDED]
    assert shell.run(*words).code == 0
    document = json.loads((shell.home / "trace/trace.json").read_text())
    assert document["labels"]["shared mutable"] == 3
    mount = shell.target()
    found = results(shell.run("replay", "trace", "--target", mount, "--loops", "3", "--json"))
    assert (found["performances"], found["diverged"]) == (3, [])
    assert left_on(mount) == []
    shared = shell.run("replay", "trace", "--target", mount, "-u", "2", "--loops", "2", "--json")
    found = shared.document()["replay"]["results"]
    said = [each["hint"] for each in found["examples"] if each["op"] == "stat"]
    assert said
    assert all("with -u 1 it should match" in hint for hint in said)
