"""The supervisor ends as its child does, passes signals on, and ends before a child that cannot."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from replayer import supervisor
from tests.processes import is_there

PROGRAM = """
import os, signal, sys, time
from replayer import supervisor

supervisor.PATIENCE_S = 0.3

def work():
    print(os.getpid(), os.getppid(), flush=True)
    {body}
    return 7

sys.exit(supervisor.keep(work))
"""


Process = subprocess.Popen[str]
Start = Callable[[str], Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the program with a body of its own; what is left of it is ended."""
    started: list[Process] = []

    def begin(body: str) -> Process:
        words = [sys.executable, "-c", PROGRAM.format(body=body.replace("\n", "\n    "))]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def first_line(process: Process) -> tuple[int, int]:
    assert process.stdout is not None
    child, supervisor = map(int, process.stdout.readline().split())
    return child, supervisor


def test_the_work_is_done_in_a_child_and_its_exit_code_is_the_keepers(start: Start) -> None:
    process = start("pass")
    child, supervisor = first_line(process)
    assert (supervisor, child != supervisor) == (process.pid, True)
    assert process.wait(10) == 7


def test_a_swallowed_interrupt_is_heard_without_a_traceback(start: Start) -> None:
    process = start("""sys.stderr = sys.stdout
class Swallows:
    def __init__(self, act):
        self.act = act
    def __del__(self):
        self.act()
        for _ in range(10):
            pass
def fail():
    raise ValueError("something else")
Swallows(lambda: signal.raise_signal(signal.SIGINT))
print(supervisor.take_interrupt())
Swallows(fail)""")
    said, _ = process.communicate(timeout=10)
    assert said.splitlines()[1] == "True"
    assert said.endswith("ValueError: something else\n")
    assert "KeyboardInterrupt" not in said


def test_what_comes_again_at_once_is_an_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_heard_s", {})
    now_s = 5.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    assert not supervisor.is_echo(signal.SIGINT)
    now_s += supervisor.ECHO_S / 2
    assert supervisor.is_echo(signal.SIGINT)
    assert not supervisor.is_echo(signal.SIGTERM), "that is another one"
    now_s += supervisor.ECHO_S
    assert not supervisor.is_echo(signal.SIGINT), "somebody means it"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_child_once(start: Start, number: signal.Signals) -> None:
    process = start(f"""
got = []
signal.signal({int(number)}, lambda *_: got.append(1))
print("ready", flush=True)
end = time.monotonic() + 10
while not got and time.monotonic() < end: time.sleep(0.01)
time.sleep(0.2)
return 20 + len(got)
""")
    first_line(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(15) == 21


def test_a_child_that_a_signal_ends_has_its_keeper_end_so(start: Start) -> None:
    process = start("os.kill(os.getpid(), signal.SIGTERM); time.sleep(10)")
    assert process.wait(10) == -signal.SIGTERM


IMPATIENT = """
supervisor.end_at_second()
supervisor.before_leaving(lambda: print("let go", flush=True))
signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.ENDING)
print("ready", flush=True)
"""


def ask_twice(process: Process) -> None:
    first_line(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(supervisor.ECHO_S + 0.1)


def test_a_child_that_answers_no_second_signal_lets_go_and_is_left_behind(start: Start) -> None:
    process = start(IMPATIENT + "time.sleep(60)")
    ask_twice(process)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, said) == (4, "let go\n")


def test_a_child_that_answers_goes_on(start: Start) -> None:
    process = start(
        f"""{IMPATIENT}
for _ in range(2):
    signal.sigwait({{signal.SIGINT}})
    supervisor.answer()
time.sleep(0.6)"""
    )
    ask_twice(process)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, said) == (7, "")


def test_a_keeper_that_is_killed_has_an_impatient_child_let_go(start: Start) -> None:
    process = start(IMPATIENT + "time.sleep(60)")
    child, _ = first_line(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    assert process.stdout.readline() == "let go\n"
    deadline = time.monotonic() + 10
    while is_there(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_keeper_that_is_killed_takes_its_child_along(start: Start) -> None:
    process = start("time.sleep(60)")
    child, _ = first_line(process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while is_there(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_that_cannot_end_lets_its_keeper_and_its_readers_go(
    start: Start,
) -> None:
    # A stopped child stands for one that the kernel holds: it can be reaped as little.
    process = start("""
supervisor.os._exit = lambda code: os.kill(os.getpid(), signal.SIGSTOP)
print("last words", flush=True)
supervisor.leave_now(4)
""")
    child, _ = first_line(process)
    begun = time.monotonic()
    assert process.stdout is not None
    out = process.stdout.read()
    assert process.wait(10) == 4
    assert out == "last words\n"
    assert time.monotonic() - begun < 5
    deadline = time.monotonic() + 10
    while is_there(child):  # it is killed with its supervisor
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_worker_that_hangs_does_not_end_whoever_leads_it(start: Start) -> None:
    process = start("""
if os.fork() == 0:
    supervisor.leave_now(3)
os.wait()
time.sleep(0.5)
print("led to the end", flush=True)
""")
    first_line(process)
    assert process.stdout is not None
    assert process.stdout.read() == "led to the end\n"
    assert process.wait(10) == 7


def test_hung_calls_make_it_leave_with_the_code_that_was_said(start: Start) -> None:
    process = start("""
supervisor.give_up_on("a mount")
supervisor.end_with(3)
import threading
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
""")
    assert process.wait(10) == 3
