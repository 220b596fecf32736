"""Ctrl-C, SIGTERM and SIGHUP."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from replayer import supervisor
from replayer.run.interruption import SIGNALS, InterruptedRunError, Interruption, Level

pytestmark = pytest.mark.usefixtures("each_press_counts")


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    made = Interruption()
    made.watch()
    yield made
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_ctrl_c_once_is_graceful_and_twice_is_at_once(interruption: Interruption) -> None:
    urgent: list[str] = []
    interruption.on_urgent(lambda: urgent.append("now"))
    os.kill(os.getpid(), signal.SIGINT)
    assert (interruption.level, urgent) == (Level.GRACEFUL, [])
    os.kill(os.getpid(), signal.SIGINT)
    assert (interruption.level, urgent) == (Level.AT_ONCE, ["now"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_may_be_repeated_is_graceful_however_often_it_comes(
    interruption: Interruption, number: int
) -> None:
    for _ in range(3):
        os.kill(os.getpid(), number)
    assert interruption.level is Level.GRACEFUL


def test_a_graceful_end_does_not_soften_one_at_once(interruption: Interruption) -> None:
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    assert interruption.level is Level.AT_ONCE


def test_a_press_that_was_raised_and_went_unheard_counts(
    interruption: Interruption, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_raised", [False])
    interruption.unwatch()
    with suppress(KeyboardInterrupt):  # as a callback of gevent's loop has it
        signal.raise_signal(signal.SIGINT)
    interruption.watch()
    interruption.watch()
    assert (interruption.level, interruption.presses) == (Level.GRACEFUL, 1)
    with pytest.raises(InterruptedRunError):
        interruption.check("laying out")
    next_one = Interruption()
    next_one.watch()
    assert (next_one.level, next_one.presses) == (Level.NONE, 0), "nobody pressed anything since"


def test_folders_that_a_master_leaves_are_left(interruption: Interruption) -> None:
    said: list[str] = []
    assert not interruption.abandons_removal(said.append)
    assert not interruption.ends_restoring()
    interruption.leave_folders()
    assert interruption.abandons_removal(said.append)
    assert interruption.ends_restoring()
    assert (interruption.has_abandoned, said) == (True, [])


def test_one_signal_while_the_first_folder_is_laid_out_anew_ends_that_for_all(
    interruption: Interruption,
) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    assert not interruption.ends_restoring()
    os.kill(os.getpid(), signal.SIGTERM)
    assert interruption.ends_restoring()
    assert interruption.ends_restoring(), "of the next folder"


def test_nothing_is_laid_out_anew_at_the_end_of_a_run_that_shall_end_at_once(
    interruption: Interruption,
) -> None:
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
    assert interruption.ends_restoring()


def test_what_is_interrupted_is_named(interruption: Interruption) -> None:
    interruption.check("laying out")
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(InterruptedRunError, match="while laying out") as caught:
        interruption.check("laying out")
    assert caught.value.exit_code == 4
