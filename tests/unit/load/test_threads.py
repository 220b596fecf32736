"""Calls that block, bounded by a clock that does not stand still."""

import time

import gevent
import pytest

from replayer.load.threads import call_within


def answer_soon() -> str:
    time.sleep(0.1)
    return "answer"


def test_a_bound_counts_from_the_call_and_not_from_when_the_loop_last_ran() -> None:
    gevent.sleep(0)
    time.sleep(0.5)  # as imports do: the loop does not run
    assert call_within(0.4, answer_soon, "a mount") == "answer"


def test_a_call_that_takes_longer_is_given_up_on() -> None:
    with pytest.raises(TimeoutError, match=r"a mount has not answered within 0\.05 s"):
        call_within(0.05, lambda: time.sleep(1), "a mount")
