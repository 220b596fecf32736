"""When a fio that does not end is given up, on a clock of the test's own."""

import math

import pytest

from replayer._native import Histogram
from replayer.fio import client
from replayer.fio.amounts import seconds_needed
from replayer.fio.checking import check_job_file
from replayer.fio.jobfile import parse_job_file
from replayer.fio.recorder import Gain
from replayer.measure.hlog import Key, Segment, Span
from replayer.run import watchdog


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("time.monotonic", made.monotonic)
    return made


def deadline(text: str) -> client.FioDeadline:
    file = check_job_file(parse_job_file(text, "x.fio", {}), None)
    return client.FioDeadline(file, seconds_needed(file))


def a_gain() -> Gain:
    """An I/O of 1 ms that has ended."""
    histogram = Histogram()
    histogram.record(1_000_000, 1)
    key = Key(Segment(0, 0, "measured"), "a", "read", "ok", expected=True)
    return Gain(key, Span(0.0, 1.0), 4096, histogram)


def test_a_job_with_a_run_time_is_over_two_minutes_after_it(clock: Clock) -> None:
    waiting = deadline("[a]\nruntime=10\nsize=1m\n")
    waiting.begin()
    clock.now += 10 + client.LATE_S
    assert not waiting.is_over()
    clock.now += 1
    assert waiting.is_over()


def test_laying_out_may_take_as_long_as_a_slow_mount_needs(clock: Clock) -> None:
    waiting = deadline("[a]\nruntime=10\nsize=1g\n")
    clock.now += 1000  # fio prints each second all the same
    waiting.note([])
    assert waiting.lays_out
    assert not waiting.is_over()
    assert waiting.left_s == 10
    clock.now += client.LATE_S + 90
    assert waiting.is_over()


@pytest.mark.parametrize("option", ["create_serialize=0", "gtod_cpu=0"])
def test_jobs_of_which_their_first_io_tells_that_they_have_begun_are_waited_for(
    clock: Clock, option: str
) -> None:
    waiting = deadline(f"[a]\nruntime=10\nsize=1g\n{option}\n")
    waiting.begin()
    clock.now += 1000
    assert not waiting.is_over()
    waiting.note([a_gain()])
    clock.now += 10 + client.LATE_S
    assert not waiting.is_over()
    clock.now += 1
    assert waiting.is_over()


def test_a_job_without_a_run_time_is_over_when_nothing_ends_any_more(clock: Clock) -> None:
    waiting = deadline("[a]\nsize=1m\n")
    waiting.begin()
    clock.now += client.SILENT_S
    assert not waiting.is_over()
    clock.now += 1
    assert waiting.is_over()


def test_that_no_io_ends_is_said_after_five_seconds_and_again_now_and_then(clock: Clock) -> None:
    waiting = deadline("[a]\nruntime=60\nsize=1m\n")
    looking = watchdog.Watchdog(math.inf, math.inf, clock.monotonic)

    def said() -> list[str]:
        return [str(hang) for hang in looking.look(waiting)]

    clock.now += 30  # it lays out
    assert said() == []
    waiting.begin()
    clock.now += watchdog.STUCK_NS / 1e9 - 0.1
    assert said() == []
    clock.now += 0.2
    assert said() == ["hangs: fio: no I/O has completed, for 5 s"]
    clock.now += watchdog.SAID_AGAIN_S - 1
    assert said() == []
    clock.now += 1
    assert said() == ["hangs: fio: no I/O has completed, for 15 s"]
    assert not looking.is_over
