"""Workers that Locust forks: without an order yet, they end with the process that forked them.

Locust's worker looks five minutes for its master, and one that has found it but heard no order
waits for ever. When the process that forked it is killed meanwhile, nobody else would end it.
Locust's master waits for its forks at its end, as long as that takes: stopped ones never end.
"""

import os
import signal
from contextlib import suppress

from replayer.supervisor import follow, follow_no_more

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


def kill_fork(pid: int) -> None:
    """Kill a process, if this one has forked it."""
    with suppress(ChildProcessError):  # it has not, or it has ended
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.kill(pid, signal.SIGKILL)


def _follow() -> None:
    if _forking:
        parent = _forking.pop()
        _following[:] = [os.getpid()]
        follow(parent, signal.SIGKILL)
