"""Where the files of running processes stood when their recording began.

What /proc shows before strace has attached is old by as many calls as strace takes to start. What
it shows afterwards is new by the calls that were recorded until then: these few are taken back.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from replayer.capture.processes import (
    PROC,
    Descriptor,
    ProcessState,
    is_running,
    read_descriptors,
    tracer_of,
)
from replayer.ops import names_where

__all__ = ["Positions"]

ATTACHED_NS = 10**9  # chosen: attaching to hundreds of processes takes less
POLL_S = 0.001
LOOKS = 5  # chosen: one of them falls between two calls of a process that is not always in one
NS_PER_S = 10**9
MOVING = names_where(lambda op: "moves" in op.flags and op.contents in {"reads", "writes"})
"""Calls that move a position by their result."""
JUMPING = frozenset({"lseek", "getdents64", "sendfile", "copy_file_range", "splice"})
"""Calls that move it by something else."""
ASKING = ", 0, SEEK_CUR) = "
"""What an lseek that moves nothing looks like."""

_RANGE = re.compile(r" close_range\((\d+), (\d+), 0\)")
"""With flags it only marks, or is one thread's alone."""
_CALL = re.compile(
    r"(?P<task>\d+) +(?P<stamp>\d+\.\d{9}) (?P<name>\w+)\((?P<file>\d+)?"
    r".* = (?P<result>-?\d+)(?P<opened><)?.* <(?P<took>\d+\.\d{9})>$"
)


@dataclass(frozen=True)
class _LoggedCall:
    """A recorded call: of which thread, on which descriptor (if any), and what it closes."""

    task: int
    name: str
    file: int | None
    result: int
    opens: bool
    closes: range
    began_ns: int
    ended_ns: int


@dataclass(frozen=True)
class _Look:
    """A descriptor as it was at some moment between two, on the wall clock as logs are."""

    found: Descriptor
    began_ns: int
    ended_ns: int

    def is_disturbed_by(self, calls: Sequence[_LoggedCall]) -> bool:
        return any(
            call.began_ns < self.ended_ns and call.ended_ns > self.began_ns
            for call in calls
            if call.file == self.found.number or self.found.number in call.closes
        )


class Positions:
    """What processes have open, noted before strace attaches to them and just after."""

    def __init__(self, states: Sequence[ProcessState]) -> None:
        self._before = tuple(states)
        self._looks: dict[int, list[_Look]] = {}

    def note(self, tracer: int) -> None:
        """Wait until a tracer has attached to all, and look a few times at what is open then.

        Where it takes more than a second, or ends, what was noted before stands.
        """
        deadline = time.monotonic_ns() + ATTACHED_NS
        waiting = {state.pid for state in self._before}
        while waiting and is_running(tracer) and time.monotonic_ns() < deadline:
            waiting = {task for task in waiting if is_running(task) and tracer_of(task) != tracer}
            if waiting:
                time.sleep(POLL_S)
        for _ in range(0 if waiting else LOOKS):
            time.sleep(POLL_S)  # what is attached to may still make a call before it is stopped
            for process in dict.fromkeys(state.process for state in self._before):
                self._looks.setdefault(process, []).extend(_look(process))

    def at_begin(self, log: Path) -> tuple[ProcessState, ...]:
        """Return the states at the beginning of a log."""
        every = [look for looks in self._looks.values() for look in looks]
        last_ns = max((look.ended_ns for look in every), default=0)
        calls = list(_calls_before(log, last_ns)) if every else []
        process_of = {state.pid: state.process for state in self._before}
        found = []
        for state in self._before:
            looks = self._looks.get(state.process, [])
            own = [call for call in calls if process_of.get(call.task) == state.process]
            known = tuple(_at_begin(state, looks, own)) if looks else state.descriptors
            found.append(state.model_copy(update={"descriptors": known}))
        return tuple(found)


def _look(process: int) -> Iterator[_Look]:
    began_ns = _now_ns()
    try:
        for found in read_descriptors(PROC / str(process)):
            ended_ns = _now_ns()
            yield _Look(found, began_ns, ended_ns)
            began_ns = ended_ns
    except OSError:
        return  # it has ended


def _at_begin(
    before: ProcessState, looks: Sequence[_Look], calls: Sequence[_LoggedCall]
) -> Iterator[Descriptor]:
    """Yield what was open before any of some recorded calls, from looks that were made later."""
    old = {each.number: each for each in before.descriptors}
    seen: dict[int, list[_Look]] = {}
    for one in looks:
        seen.setdefault(one.found.number, []).append(one)
    for number in sorted(old | seen):
        own = seen.get(number, [])
        look = next((one for one in own if not one.is_disturbed_by(calls)), own[0] if own else None)
        earlier = [call for call in calls if look is None or call.ended_ns <= look.began_ns]
        opened = {call.result for call in earlier if call.opens}
        if number in opened or any(number in call.closes for call in earlier):
            if number in old:
                yield old[number]
        elif look is not None:
            yield _moved_back(look.found, old.get(number), earlier)


def _moved_back(
    new: Descriptor, old: Descriptor | None, calls: Sequence[_LoggedCall]
) -> Descriptor:
    own = [call for call in calls if call.file == new.number]
    same = old if old is not None and old.link == new.link else None
    jumps = any(call.name in JUMPING for call in own) or (own and _appends(new))
    if jumps and same is not None:
        return same
    moved = sum(max(call.result, 0) for call in own if call.name in MOVING)
    # What was recorded may have made it longer.
    gone = same.gone if own and same is not None else new.gone
    return new.model_copy(update={"position": max(new.position - moved, 0), "gone": gone})


def _appends(descriptor: Descriptor) -> bool:
    return bool(int(descriptor.flags, 8) & os.O_APPEND)


def _calls_before(log: Path, moment_ns: int) -> Iterator[_LoggedCall]:
    """Yield the calls that began before a moment, in the order of the log."""
    with log.open(errors="replace") as lines:
        for line in lines:
            call = _CALL.match(line)
            if call is None or (call["name"] == "lseek" and ASKING in line):
                continue
            began_ns = _ns(call["stamp"])
            if began_ns >= moment_ns:
                return
            file = None if call["file"] is None else int(call["file"])
            yield _LoggedCall(
                task=int(call["task"]),
                name=call["name"],
                file=file,
                result=int(call["result"]),
                opens=call["opened"] is not None,
                closes=_closed(line, call["name"], file),
                began_ns=began_ns,
                ended_ns=began_ns + _ns(call["took"]),
            )


def _closed(line: str, name: str, file: int | None) -> range:
    if name == "close" and file is not None:
        return range(file, file + 1)
    found = _RANGE.search(line) if name == "close_range" else None
    return range(int(found[1]), int(found[2]) + 1) if found else range(0)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def _ns(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * NS_PER_S + int(fraction)
