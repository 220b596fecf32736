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
    Descriptor,
    ProcessState,
    is_running,
    read_state,
    tracer_of,
)
from replayer.measure.clock import monotonic_ns

__all__ = ["Positions"]

ATTACHED_NS = 10**9  # chosen: attaching to hundreds of processes takes less
POLL_S = 0.001
NS_PER_S = 10**9
MOVING = frozenset({"read", "readv", "write", "writev"})
"""Calls that move a position by their result."""
JUMPING = frozenset({"lseek", "getdents64", "sendfile", "copy_file_range", "splice"})
"""Calls that move it by something else."""
ASKING = ", 0, SEEK_CUR) = "
"""What an lseek that moves nothing looks like."""

_CALL = re.compile(
    r"(?P<task>\d+) (?P<stamp>\d+\.\d{9}) (?P<name>\w+)\((?P<file>\d+)?"
    r".* = (?P<result>-?\d+)(?P<opened><)?.* <(?P<took>\d+\.\d{9})>$"
)


@dataclass(frozen=True)
class _Call:
    """A recorded call: of which thread, on which descriptor if it begins with a number."""

    task: int
    name: str
    file: int | None
    result: int
    opens: bool


class Positions:
    """What processes have open, noted before strace attaches to them and just after."""

    def __init__(self, states: Sequence[ProcessState]) -> None:
        self._before = tuple(states)
        self._after: dict[int, ProcessState] = {}
        self._noted_ns = 0

    def note(self, tracer: int) -> None:
        """Wait until a tracer has attached to all, and note what is open then.

        Where it takes more than a second, or ends, what was noted before stands.
        """
        deadline = monotonic_ns() + ATTACHED_NS
        waiting = {state.pid for state in self._before}
        while waiting and is_running(tracer) and monotonic_ns() < deadline:
            waiting = {task for task in waiting if is_running(task) and tracer_of(task) != tracer}
            if waiting:
                time.sleep(POLL_S)
        if not waiting:
            self._noted_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
            processes = dict.fromkeys(state.process for state in self._before)
            self._after = {state.pid: state for state in read_state(list(processes))}

    def at_begin(self, log: Path) -> tuple[ProcessState, ...]:
        """Return the states at the beginning of a log."""
        calls = list(_calls_before(log, self._noted_ns)) if self._after else []
        process_of = {state.pid: state.process for state in self._before}
        found = []
        for before in self._before:
            after = self._after.get(before.pid)
            own = [call for call in calls if process_of.get(call.task) == before.process]
            known = before.descriptors if after is None else tuple(_taken_back(before, after, own))
            found.append(before.model_copy(update={"descriptors": known}))
        return tuple(found)


def _taken_back(
    before: ProcessState, after: ProcessState, calls: Sequence[_Call]
) -> Iterator[Descriptor]:
    """Yield what was open before some recorded calls, from what was open after them."""
    old = {each.number: each for each in before.descriptors}
    new = {each.number: each for each in after.descriptors}
    opened = {call.result for call in calls if call.opens}
    closed = {call.file for call in calls if call.name in {"close", "close_range"}}
    for number in sorted(old | new):
        if number in opened | closed:
            if number in old:
                yield old[number]
        elif number in new:
            yield _moved_back(new[number], old.get(number), calls)


def _moved_back(new: Descriptor, old: Descriptor | None, calls: Sequence[_Call]) -> Descriptor:
    own = [call for call in calls if call.file == new.number]
    jumps = any(call.name in JUMPING for call in own) or (own and _appends(new))
    if jumps and old is not None and old.link == new.link:
        return old
    moved = sum(max(call.result, 0) for call in own if call.name in MOVING)
    return new.model_copy(update={"position": max(new.position - moved, 0)})


def _appends(descriptor: Descriptor) -> bool:
    return bool(int(descriptor.flags, 8) & os.O_APPEND)


def _calls_before(log: Path, moment_ns: int) -> Iterator[_Call]:
    """Yield the calls that had ended at a moment, in the order of the log.

    One that was still under way is taken for a later one: that is the error which is left.
    """
    with log.open(errors="replace") as lines:
        for line in lines:
            call = _CALL.match(line)
            if call is None or (call["name"] == "lseek" and ASKING in line):
                continue
            began_ns = _ns(call["stamp"])
            if began_ns >= moment_ns:
                return
            if began_ns + _ns(call["took"]) < moment_ns:
                file = None if call["file"] is None else int(call["file"])
                result, opens = int(call["result"]), call["opened"] is not None
                yield _Call(int(call["task"]), call["name"], file, result, opens)


def _ns(text: str) -> int:
    seconds, _, fraction = text.partition(".")
    return int(seconds) * NS_PER_S + int(fraction)
