"""Ctrl-C, SIGTERM and SIGHUP."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from replayer import keeper
from replayer.load.interruption import SIGNALS, InterruptedRunError, Interruption, Level

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
    monkeypatch.setattr(keeper, "_raised", [False])
    interruption.unwatch()
    with suppress(KeyboardInterrupt):  # as a callback of gevent's loop has it
        signal.raise_signal(signal.SIGINT)
    interruption.watch()
    interruption.watch()
    assert (interruption.level, interruption.presses) == (Level.GRACEFUL, 1)
    with pytest.raises(InterruptedRunError):
        interruption.check("laying out")


def test_a_removal_that_a_master_abandons_is_abandoned(interruption: Interruption) -> None:
    said: list[str] = []
    assert not interruption.abandons_removal(said.append)
    interruption.abandon_removal()
    assert interruption.abandons_removal(said.append)
    assert (interruption.has_abandoned, said) == (True, [])


def test_what_is_interrupted_is_named(interruption: Interruption) -> None:
    interruption.check("laying out")
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(InterruptedRunError, match="while laying out") as caught:
        interruption.check("laying out")
    assert caught.value.exit_code == 4
