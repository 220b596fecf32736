"""Locust without its patches: they would change the standard library for every other test.

Unset again, or the programs that tests start would not be patched either.
"""

import os

os.environ["LOCUST_SKIP_MONKEY_PATCH"] = "1"
import locust
import pytest

from replayer import supervisor

del os.environ["LOCUST_SKIP_MONKEY_PATCH"]

__all__ = ["locust"]


@pytest.fixture
def each_press_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no signal for the echo of the one before, however soon it comes."""
    monkeypatch.setattr(supervisor, "ECHO_S", 0.0)
