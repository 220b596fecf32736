"""When a process that was told to end is ended: decided by signals and a clock alone."""

import signal

import pytest

from replayer.run.exit_watchdog import ExitWatchdog

LIMIT_S = 10.0


def due_after(*heard: tuple[int, float]) -> float | None:
    """Return at which half second the process is ended, within a minute."""
    watchdog = ExitWatchdog(LIMIT_S)
    for number, now_s in heard:
        watchdog.hear(number, now_s)
    return next((half / 2 for half in range(120) if watchdog.is_due(half / 2)), None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_wish_to_end_has_the_process_ended_before_its_limit(number: int) -> None:
    due_s = due_after((number, 5.0))
    assert due_s is not None
    assert 12.0 < due_s < 15.0


def test_ctrl_c_once_sets_no_limit_and_twice_one_from_the_second_on() -> None:
    assert due_after((signal.SIGINT, 5.0)) is None
    assert due_after((signal.SIGINT, 5.0), (signal.SIGINT, 7.0)) == due_after((signal.SIGTERM, 7.0))


def test_one_wish_that_comes_twice_at_once_is_one() -> None:
    assert due_after((signal.SIGINT, 5.0), (signal.SIGINT, 5.1)) is None


def test_what_is_repeated_puts_nothing_off() -> None:
    once = due_after((signal.SIGTERM, 5.0))
    assert due_after((signal.SIGTERM, 5.0), (signal.SIGTERM, 9.0), (signal.SIGINT, 11.0)) == once


def test_other_signals_are_no_wish_to_end() -> None:
    assert due_after((signal.SIGCHLD, 5.0), (signal.SIGUSR1, 6.0), (signal.SIGWINCH, 7.0)) is None
