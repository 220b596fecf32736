"""When a process stood still as a whole, and when it was only held up."""

import os
import signal
import subprocess
import sys
import time

import pytest

from replayer.run.client_health import LEAST_NS, TICK_NS, ClockReading, stood_still_ns

S = 1_000_000_000

PROGRAM = """
import time
from replayer.run.client_health import Standstill
from tests.unit.conftest import locust

told = []
standstill = Standstill(time.monotonic_ns, lambda begin, length: told.append(length))
standstill.start()
print("ticks", flush=True)
begin, busy = time.monotonic_ns(), time.process_time_ns()
end = time.monotonic() + 3
{body}
found = standstill.sum_ns()
idle = time.monotonic_ns() - begin - (time.process_time_ns() - busy)
standstill.stop()
print(sum(told) == found, found, idle)
"""


def late(by_ns: int, busy_ns: int = 0) -> int:
    """How long it stood still, when a tick came so late."""
    return stood_still_ns(
        ClockReading(5, 7, 11), ClockReading(5, 7 + TICK_NS + by_ns, 11 + busy_ns)
    )


def test_a_tick_that_is_late_for_no_reason_of_its_own_tells_of_a_standstill() -> None:
    assert late(5 * S) == 5 * S
    assert late(5 * S, busy_ns=S) == 4 * S


@pytest.mark.parametrize(
    ("by_ns", "busy_ns"), [(-TICK_NS, 0), (0, 0), (LEAST_NS - 1, 0), (5 * S, 5 * S), (5 * S, 9 * S)]
)
def test_what_was_held_up_did_not_stand_still(by_ns: int, busy_ns: int) -> None:
    assert late(by_ns, busy_ns) == 0


def measured_ns(body: str, *, stopped_s: float) -> tuple[int, int]:
    """What a process finds that is stopped for so long, and for how long it had no CPU."""
    words = [sys.executable, "-c", PROGRAM.format(body=body)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        if stopped_s:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(stopped_s)
            os.kill(process.pid, signal.SIGCONT)
        agrees, found, idle = process.stdout.readline().split()
    assert agrees == "True"
    return int(found), int(idle)


def test_the_time_for_which_a_process_was_stopped_is_found() -> None:
    found, _ = measured_ns("time.sleep(3)", stopped_s=2)
    assert found == pytest.approx(2 * S, rel=0.4)


def test_an_interpreter_that_never_lets_go_is_no_standstill() -> None:
    hog = "import sys; sys.setswitchinterval(60)\nwhile time.monotonic() < end: pass"
    found, idle = measured_ns(hog, stopped_s=0)
    assert found <= idle + S // 10  # a busy machine may have kept it waiting for a CPU
