"""Locust's keys (w, W, s, S, Enter) in a terminal: without effect, as the terminal is left alone.

A plan is made for a number of users, and a report tells of that number: a key that takes some of
them away would have it tell of users that were not there, one that adds some ends the run. And
Locust reads keys one by one, for which the system stops a process that runs in the background.
"""

from collections.abc import Callable, Mapping

from locust import main

__all__ = ["leave_keys_alone"]


def leave_keys_alone() -> None:
    """Have Locust not listen to keys; to be called before its main begins to."""
    main.input_listener = _listen_to_nothing  # type: ignore[attr-defined,assignment] # its main looks it up


def _listen_to_nothing(_actions: Mapping[str, Callable[[], object]]) -> Callable[[], None]:
    return lambda: None
