"""Blocking calls beside the hub."""

import time

import gevent
import pytest

from replayer.run.threads import call_within


def test_a_call_has_its_whole_time_although_the_hub_was_kept_from_running_before() -> None:
    gevent.sleep(0.001)
    time.sleep(0.6)
    assert call_within(0.5, lambda: 5, "a folder") == 5


def test_a_call_that_does_not_return_is_given_up_on() -> None:
    with pytest.raises(TimeoutError, match=r"a folder did not answer within 0\.05 s"):
        call_within(0.05, lambda: time.sleep(0.5), "a folder")
