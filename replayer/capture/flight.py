"""The flight recorder: the latest calls stay in memory, and become a trace when somebody asks.

One thread records, answers signals and ``--dump``, and looks for calls that take too long. What is
kept goes to the disk as a log at once. Another thread lists the files and makes the trace of it: a
mount that has frozen may keep it waiting, and the recording goes on.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypedDict

from replayer import _native
from replayer.capture.dump_door import Asking, DumpDoor
from replayer.capture.ebpf import attach_families, refusal_of
from replayer.capture.order import FlightOrder
from replayer.capture.processes import ProcessState, read_at, share_table
from replayer.capture.progress import Progress, say
from replayer.capture.sidecar import FlightState, SlowCall, TimeState
from replayer.capture.signals import Inbox, Notice
from replayer.capture.staging import RESERVE_BYTES, Staging, free_bytes, make_staging
from replayer.errors import OutsideError, ReplayerError, exit_code_of
from replayer.measure.units import format_about, format_bytes, format_time_ns
from replayer.supervisor import give_up_on

__all__ = ["Dump", "FlightPlan", "FlightRecorder", "open_flight"]

TICK_SECONDS = 0.2
RING_BYTES = 64 << 20  # chosen: a lost record costs all that is kept, so more than for a log
MOST_BY_LIMIT = 10  # chosen: traces that --when makes; a mount that freezes all day fills no disk
MOST_WAITING = 4  # chosen: logs that wait to become traces; more of them tell of one freeze
_MEMINFO = Path("/proc/meminfo")
_LEAST_BYTES = 16 * 10**6


class _ProcessPlace(TypedDict):
    process: int
    directory: str
    umask: str


class _FlightProgress(TypedDict):
    """How a recording stands (``_native.FlightRecording.watch``)."""

    live: int
    lost: int
    kept_ns: int
    bytes: int
    slow: list[dict[str, Any]]


class _Written(TypedDict):
    """What a log holds (``_native.FlightRecording.dump``)."""

    begin_wall_ns: int
    begin_ns: int
    kept_ns: int
    records: int
    pending: list[dict[str, Any]]
    places: list[_ProcessPlace]


@dataclass(frozen=True)
class Dump:
    """A log on the disk, of which a trace is to be made.

    Attributes:
        target: The trace.
        staging: Where the log is.
        states: The recorded processes, as they were when it begins.
        began: When that was.
        flight: What is told of it.
        asking: Who waits for it.
    """

    target: Path
    staging: Staging
    states: tuple[ProcessState, ...]
    began: TimeState
    flight: FlightState
    asking: Asking | None


@dataclass(frozen=True)
class FlightPlan:
    """What is recorded, and what becomes of it.

    Attributes:
        order: How much is kept, and when it is written without anybody asking.
        pids: The processes.
        target: The first trace; later ones have a number behind its name.
        roots: Directories that are recorded.
        names: All names that these have, for processes in containers too.
        compile: Makes a trace.
        way_to_compile: The command that does it later.
    """

    order: FlightOrder
    pids: Sequence[int]
    target: Path
    roots: Sequence[Path]
    names: Sequence[Path]
    compile: Callable[[Dump], None]
    way_to_compile: Callable[[Dump], str]


def open_flight(order: FlightOrder, names: Sequence[Path]) -> _native.FlightRecording:
    """Load the probe and set memory apart. Nobody is recorded yet.

    Raises:
        ReplayerError: No such call, or not so much memory.
        TracerError: eBPF cannot be used here.
    """
    _check_memory(order.limit_bytes)
    when = None if order.when is None else (order.when.call, order.when.limit_ns, list(names))
    try:
        return _native.FlightRecording((RING_BYTES, order.least_ns, order.limit_bytes), when)
    except ValueError as error:
        message = f"--when: '{error}' is no call that is recorded"
        hint = "name one such as open, read, write, stat, fsync or rename, or any"
        raise ReplayerError(message, hint=hint) from None
    except RuntimeError as error:
        raise refusal_of(error) from None


def _check_memory(limit_bytes: int) -> None:
    if limit_bytes < _LEAST_BYTES:
        message = f"--limit must be at least 16MB with --ring, got {limit_bytes:,} bytes"
        raise ReplayerError(message, hint="an hour of a quiet server needs about 100MB")
    needed = 2 * limit_bytes + RING_BYTES
    lines = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
    available = int(lines["MemAvailable"].split()[0]) * 1024
    if needed > available:
        message = (
            f"--limit {format_bytes(limit_bytes)}: needs {format_bytes(needed)} of memory (twice "
            f"the limit while a trace is written), and {format_bytes(available)} are available"
        )
        raise OutsideError(message, hint="give a smaller --limit")


class _Writer:
    """Makes traces of logs, one after another, in a thread of its own."""

    def __init__(self, plan: FlightPlan) -> None:
        self.code = 0
        self._plan = plan
        self._queue: SimpleQueue[Dump] = SimpleQueue()
        self.waiting: list[Dump] = []
        threading.Thread(target=self._work, daemon=True, name="writer").start()

    def put(self, dump: Dump) -> None:
        """Have a trace made."""
        self.waiting.append(dump)
        self._queue.put(dump)

    def _work(self) -> None:
        while True:
            dump = self._queue.get()
            try:
                self._plan.compile(dump)
            except Exception as error:  # noqa: BLE001 - a thread must not end in silence
                self.code = exit_code_of(error)
                say(f"error: {error}")
                _answer(dump, str(error), is_done=False)
            else:
                _answer(dump, str(dump.target), is_done=True)
            self.waiting.remove(dump)


def _answer(dump: Dump, text: str, *, is_done: bool) -> None:
    if dump.asking is not None:
        dump.asking.answer(text, is_done=is_done)


class FlightRecorder:
    """One recording, from the attaching to its last trace."""

    def __init__(
        self, plan: FlightPlan, recording: _native.FlightRecording, progress: Progress
    ) -> None:
        self._plan = plan
        self._recording = recording
        self._progress = progress
        self._writer = _Writer(plan)
        self._began_ns = time.monotonic_ns()
        self._lost = 0
        self._by_limit = 0
        self._silent_until_ns = 0
        self._has_failed = False

    def fly(self) -> int:
        """Record until somebody ends it or nobody is left; return the exit status."""
        with DumpDoor() as door, Inbox({signal.SIGUSR1}) as inbox:
            try:
                attach_families(self._recording, self._plan.pids)
                self._say_begin()
                self._record(door, inbox)
            except RuntimeError as error:
                raise refusal_of(error) from None
            finally:
                self._recording.finish()
                self._progress.clear()
            return self._wait(inbox)

    def _say_begin(self) -> None:
        order = self._plan.order
        kept = format_about(order.least_ns / 1e9)
        say(
            f"flight recorder (process {os.getpid()}): keeps the last {kept} in at most "
            f"{format_bytes(order.limit_bytes)} of memory"
        )
        say(
            f"write a trace with: replayer capture --dump, or kill -USR1 {os.getpid()}; "
            "Ctrl-C writes one and ends"
        )
        with suppress(OSError):
            if short := self._shortage():
                say(f"warning: {short}")

    def _shortage(self) -> str | None:
        """Say that the disk has too little room for a trace; None: it has enough."""
        place, needed = self._plan.target.parent, RESERVE_BYTES + self._plan.order.limit_bytes
        room = free_bytes(place)
        if room >= needed:
            return None
        return (
            f"{place}: has {format_bytes(room)} free, and a trace asks for {format_bytes(needed)}: "
            "make room, or give a smaller --limit"
        )

    def _record(self, door: DumpDoor, inbox: Inbox) -> None:
        while True:
            notice = inbox.wait(TICK_SECONDS)
            state: _FlightProgress = json.loads(self._recording.watch())
            self._tell(state)
            if notice is not None and notice.signal == signal.SIGUSR1:
                self._write("signal", None)
            elif notice is not None and self._ends(notice, inbox):
                return
            while (asking := door.take()) is not None:
                self._write("--dump", asking)
            self._look_at([SlowCall(**call) for call in state["slow"]])
            if not state["live"]:
                say("the recorded processes have ended")
                self._write("end of the recorded processes", None)
                return

    def _ends(self, notice: Notice, inbox: Inbox) -> bool:
        """Write the last trace; False at a first Ctrl-C that found no room for it."""
        code = self._writer.code
        is_kept = self._write("end of the recording", None)
        if is_kept or self._has_failed or notice.signal != signal.SIGINT:
            return True
        self._has_failed, self._writer.code = True, code
        say("what is kept is still in memory: make room, and press Ctrl-C once more")
        inbox.go_on()
        return False

    def _tell(self, state: _FlightProgress) -> None:
        if state["lost"] > self._lost:
            count = state["lost"] - self._lost
            say(f"warning: {count:,} records were lost: what is kept begins anew")
            self._lost = state["lost"]
        kept = format_about(state["kept_ns"] / 1e9)
        self._progress.line(f"keeping {kept} · {format_bytes(state['bytes'])}")

    def _look_at(self, slow: Sequence[SlowCall]) -> None:
        """Write a trace for calls that take too long: one for a freeze."""
        when, now = self._plan.order.when, time.monotonic_ns()
        if when is None or not slow or now < self._silent_until_ns:
            return
        if self._by_limit >= MOST_BY_LIMIT:
            return
        self._by_limit += 1
        self._silent_until_ns = now + self._plan.order.least_ns
        self._write(f"--when {when.call}: {_described(slow[0])}", None)
        if self._by_limit == MOST_BY_LIMIT:
            say(f"--when has made {MOST_BY_LIMIT} traces, and makes no more")

    def _write(self, reason: str, asking: Asking | None) -> bool:
        """Write what is kept to the disk, and have a trace made of it; False: that failed."""
        self._progress.clear()
        try:
            dump = self._dump(reason, asking)
        except ReplayerError as error:
            self._writer.code = error.exit_code
            say(f"error: no trace was written: {error}")
            if asking is not None:
                asking.answer(f"no trace was written: {error}", is_done=False)
            return False
        kept = format_about(dump.flight.kept_ns / 1e9)
        say(f"{reason}: writing the last {kept} as {dump.target}")
        for call in dump.flight.pending:
            if call.lasted_ns >= self._pending_ns and self._is_of_root(call):
                say(f"  not returned: {_described(call)}")
        self._writer.put(dump)
        return True

    def _is_of_root(self, call: SlowCall) -> bool:
        path = call.path
        return path is None or any(Path(path).is_relative_to(root) for root in self._plan.names)

    @property
    def _pending_ns(self) -> int:
        """How long calls last that are worth a line."""
        when = self._plan.order.when
        return 10**9 if when is None else when.limit_ns

    def _dump(self, reason: str, asking: Asking | None) -> Dump:
        if len(self._writer.waiting) >= MOST_WAITING:
            raise OutsideError(f"{MOST_WAITING} earlier ones are still being made")
        if short := self._shortage():
            raise OutsideError(short)
        target = self._free_name()
        staging = make_staging(target, self._plan.roots)
        try:
            written: _Written = json.loads(self._recording.dump(staging.logs[-1]))
        except RuntimeError as error:
            staging.remove()
            raise refusal_of(error) from None
        except OSError as error:
            staging.remove()
            raise OutsideError(str(error)) from error
        order = self._plan.order
        is_short = written["kept_ns"] < min(
            order.least_ns, time.monotonic_ns() - self._began_ns - 2 * 10**9
        )
        return Dump(
            target=target,
            staging=staging,
            states=share_table(
                read_at(place["process"], place["directory"], place["umask"])
                for place in written["places"]
            ),
            began=TimeState(wall_ns=written["begin_wall_ns"], monotonic_ns=written["begin_ns"]),
            flight=FlightState(
                reason=reason,
                asked_ns=order.least_ns,
                kept_ns=written["kept_ns"],
                is_short=is_short,
                pending=tuple(SlowCall(**call) for call in written["pending"]),
            ),
            asking=asking,
        )

    def _free_name(self) -> Path:
        """Return the trace's name, or the next that is free with a number behind it."""
        target, number = self._plan.target, 1
        taken = {dump.target for dump in self._writer.waiting}
        while target in taken or os.path.lexists(target):
            number += 1
            target = self._plan.target.with_name(f"{self._plan.target.name}-{number}")
        return target

    def _wait(self, inbox: Inbox) -> int:
        """Wait for the last traces; a signal leaves them as logs."""
        while self._writer.waiting:
            if inbox.wait(TICK_SECONDS) is None:
                continue
            for dump in list(self._writer.waiting):
                say(f"{dump.target}: not made; make it with:")
                say(f"  {self._plan.way_to_compile(dump)}")
                give_up_on(str(dump.target))
            return OutsideError.exit_code
        return self._writer.code


def _described(call: SlowCall) -> str:
    path = f" {call.path}" if call.path else ""
    return f"{call.name}{path} (thread {call.task}) for {format_time_ns(call.lasted_ns)}"
