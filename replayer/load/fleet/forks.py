"""Workers that Locust forks: without an order yet, they end with the process that forked them.

Locust's worker looks five minutes for its master, and one that has found it but heard no order
waits for ever. When the process that forked it is killed meanwhile, nobody else would end it.
"""

import os
import signal

from replayer.keeper import follow, follow_no_more

__all__ = ["forks_follow", "forks_follow_no_more", "stay"]

_forking: list[int] = []
"""The process whose forks are workers: what those fork themselves is no business of ours."""
_following: list[int] = []
_hooked: list[bool] = []


def forks_follow() -> None:
    """Have what this process forks from now on be killed with it, each until it stays."""
    _forking[:] = [os.getpid()]
    if not _hooked:
        _hooked.append(True)
        os.register_at_fork(after_in_child=_follow)


def forks_follow_no_more() -> None:
    """Leave alone what this process forks from now on."""
    _forking.clear()


def stay() -> None:
    """Have this process live on when the one that forked it is killed."""
    if os.getpid() in _following:
        _following.clear()
        follow_no_more()


def _follow() -> None:
    if _forking:
        parent = _forking.pop()
        _following[:] = [os.getpid()]
        follow(parent, signal.SIGKILL)
