"""Likely causes of divergences, in plain words: what a person would check first.

Pure: an event and what came out of it in, a sentence out. A guess that is often wrong is worse than
none, so only causes that the outcomes themselves name are here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from replayer.measure import Divergence
from replayer.ops import names_where

__all__ = ["Circumstances", "likely_cause"]

UNSUPPORTED = frozenset({"EOPNOTSUPP", "ENOTSUP", "ENOSYS", "ENOTTY", "EINVAL", "EXDEV"})
DENIED = frozenset({"EACCES", "EPERM"})
BROKEN = frozenset({"ESTALE", "EIO", "ENOTCONN", "EHOSTDOWN", "ETIMEDOUT"})
NAMES = frozenset({"ENOENT", "EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR"})
LOCKS = frozenset({"lock", "flock"})
LENGTHS = names_where(lambda op: "length" in op.flags)


_OWN = re.compile(r"~\d+(\.\d+)?(/|$)")


@dataclass(frozen=True)
class Circumstances:
    """What went on beside an event.

    Attributes:
        users: How many replayed the trace at once.
        requests: Whether requests of the trace were replayed apart from each other.
    """

    users: int
    requests: bool


@dataclass(frozen=True)
class _Cause:
    applies: Callable[[Divergence, Circumstances], bool]
    says: str


def likely_cause(event: Divergence, beside: Circumstances) -> str:
    """Return what most likely made an event come out otherwise; empty if nothing is known."""
    return next((cause.says for cause in _CAUSES if cause.applies(event, beside)), "")


def _is_of_names(event: Divergence) -> bool:
    return bool({event.got, event.recorded} & NAMES)


def _is_shared(event: Divergence, beside: Circumstances) -> bool:
    return beside.users > 1 and _OWN.search(event.path) is None


def _is_shared_name(event: Divergence, beside: Circumstances) -> bool:
    return _is_shared(event, beside) and _is_of_names(event)


def _is_shared_lock(event: Divergence, beside: Circumstances) -> bool:
    return _is_shared(event, beside) and event.op in LOCKS and event.got == "EAGAIN"


_CAUSES = (
    _Cause(
        lambda event, _: event.got in DENIED and event.recorded not in DENIED,
        "this process may not do it here: replay as root if the trace was recorded as root, or "
        "look at the options of the mount and its export (root_squash)",
    ),
    _Cause(
        lambda event, _: event.recorded in DENIED and event.got == "ok",
        "the recorded program was denied it; as root, or on files that the replay made itself, it "
        "is allowed",
    ),
    _Cause(
        lambda event, _: event.got in {"ENOSPC", "EDQUOT"},
        "the target is full, or a quota is reached",
    ),
    _Cause(
        lambda event, _: event.got in {"EMFILE", "ENFILE"},
        "too many open files for this process: raise its limit (ulimit -n), or use fewer users",
    ),
    _Cause(
        lambda event, _: event.got in BROKEN,
        "the mount or its server failed: its log says why",
    ),
    _Cause(
        lambda event, _: event.got in UNSUPPORTED and event.recorded not in UNSUPPORTED,
        "the target's file system does not support this call, or not with these flags",
    ),
    _Cause(
        lambda event, _: event.got == "EBADF",
        "the file was not open: an earlier open came out otherwise, see the divergences before it",
    ),
    _Cause(
        lambda event, _: event.got == "ENAMETOOLONG",
        "the name is too long here: files of a user's own get a suffix, such as ~3",
    ),
    _Cause(
        lambda event, beside: _is_shared_name(event, beside) and not beside.requests,
        "several users share this name, which one program changed when it was recorded: with -u 1 "
        "it should match, as each performance then begins with the tree as it was",
    ),
    _Cause(
        _is_shared_name,
        "several users share this name, which one program changed when it was recorded, and "
        "requests are replayed apart from each other",
    ),
    _Cause(
        _is_shared_lock,
        "another user has locked this file, which all of them share",
    ),
    _Cause(
        lambda event, beside: beside.requests and _is_of_names(event),
        "another request changed this name while this one was under way when it was recorded; "
        "requests are replayed apart from each other",
    ),
    _Cause(
        lambda event, _: {event.got, event.recorded} <= NAMES | {"ok"} and event.got != "ok",
        "the tree is not as the recorded program found it: an earlier event came out otherwise, "
        "something that was not traced changed it, or the target treats names otherwise (upper and "
        "lower case)",
    ),
    _Cause(
        lambda event, _: event.got in {"less", "more"} and event.op in LENGTHS,
        "a file or directory has another size than it had: another user changed it, or something "
        "that was not traced did while recording",
    ),
)
