"""Fits the pauses of a trace, so that its ``closed`` replay takes as long as the command did.

What a program does between its file calls is known from a recording only as far as it is CPU time
outside of the kernel, and of a short one not even that. What its other calls and its start take is
not. But how long the command takes by itself is known where it was rehearsed, and how long its file
calls take by themselves is what an ``asap`` replay on the same file system tells: the rest is
pauses.
"""

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replayer.errors import EXIT_INCONCLUSIVE, OutsideError, ReplayerError
from replayer.measure.units import format_time_ns
from replayer.run.own_command import split_failure, start_ourselves
from replayer.trace.facts import MOST_PERCENT, Fit, TraceFacts, keep_fit

CLOSE_ENOUGH = 0.01
"""Chosen: of the command's time; less than what rounds of one replay differ by."""
MUCH_LONGER = 1.1
"""Chosen: by less than that file calls alone may take longer than the command, on a fast target."""
TRIES = 5
FURTHER = 4
"""Chosen: so many times as long are pauses to be that have not shown."""
LEAST_PERCENT = 1
AS_RECORDED = 100


@dataclass(frozen=True)
class FitOrder:
    """What was asked for."""

    trace: TraceFacts
    target: Path
    """A folder on the file system where the command was recorded."""
    rounds: int
    say: Callable[[str], None]


@dataclass(frozen=True)
class _Took:
    """What replays took, median, and the file system they ran on."""

    ns: int
    filesystem: str


def fit_pauses(order: FitOrder) -> Fit:
    """Replay a copy of a trace with other and other pauses, and keep those that fit best.

    Raises:
        ReplayerError: Nobody knows how long the command takes by itself, or no pauses fit that.
        ReplayerError: The trace or the target cannot be used; the trace is as it was.
    """
    wanted_ns = _wanted(order.trace)
    with tempfile.TemporaryDirectory(prefix="replayer-fit-") as scratch:
        copy = Path(scratch) / "trace"
        _copy(order.trace.folder, copy)
        keep_fit(copy, None)
        order.say(f"asap: time of the file calls alone, {order.rounds} rounds")
        asap = _replay(order, copy, "asap")
        tried: dict[int, Fit] = {}

        def closed(percent: int) -> int:
            """Return what a replay takes with such pauses."""
            fit = Fit(
                pauses_percent=percent,
                filesystem=asap.filesystem,
                rounds=order.rounds,
                asap_ns=asap.ns,
                closed_ns=0,
            )
            keep_fit(copy, fit)
            order.say(f"closed: pauses at {percent} %, {order.rounds} rounds")
            took = _replay(order, copy, "closed")
            tried[percent] = replace(fit, closed_ns=took.ns)
            return took.ns

        best = tried[solve(closed, asap.ns, wanted_ns)]
    keep_fit(order.trace.folder, best)
    return best


def _copy(folder: Path, to: Path) -> None:
    try:
        shutil.copytree(folder, to)
    except OSError as error:
        message = f"{folder}: cannot be copied to {to.parent}: {error.strerror or error}"
        raise OutsideError(message, hint="set TMPDIR to a folder with enough space") from error


def solve(closed: Callable[[int], int], asap_ns: int, wanted_ns: int) -> int:
    """Find out how long pauses must be for a replay to take a time, and return that in per cent.

    Threads that wait for each other do not pause one after the other, so it is tried.

    Args:
        closed: What a replay takes with pauses of so many per cent.
        asap_ns: What it takes without any.
        wanted_ns: What it is to take.

    Raises:
        ReplayerError: The file calls alone take much longer, or there are no pauses.
    """
    if asap_ns > MUCH_LONGER * wanted_ns:
        raise ReplayerError(
            f"the file calls alone take {format_time_ns(asap_ns)} on this file system, longer than "
            f"the whole command ({format_time_ns(wanted_ns)}) where it was recorded: no time is "
            "left for pauses",
            hint="use a folder on the file system where the command was recorded",
        )
    if asap_ns >= wanted_ns:
        closed(LEAST_PERCENT)
        return LEAST_PERCENT
    known = {0: asap_ns}
    percent = AS_RECORDED
    for _ in range(TRIES):
        known[percent] = closed(percent)
        if abs(known[percent] - wanted_ns) <= CLOSE_ENOUGH * wanted_ns:
            break
        percent = _following(known, wanted_ns)
        if percent in known:
            break
    if max(known.values()) == asap_ns:
        message = "the trace has no pauses to fit: replays with and without them take"
        raise ReplayerError(f"{message} {format_time_ns(asap_ns)}")
    del known[0]
    return min(known, key=lambda each: abs(known[each] - wanted_ns))


def _following(known: Mapping[int, int], wanted_ns: int) -> int:
    """Return the pauses that would fit if times lay on a line between the nearest ones known."""
    below = max(each for each in known if known[each] < wanted_ns)
    above = min((each for each in known if known[each] >= wanted_ns), default=None)
    if above is not None:
        share = (wanted_ns - known[below]) / (known[above] - known[below])
        return max(below + round((above - below) * share), LEAST_PERCENT)
    gained_ns = known[below] - known[0]
    if gained_ns <= 0:  # they drown in what rounds differ by
        return min(FURTHER * below, MOST_PERCENT)
    return min(round(below * (wanted_ns - known[0]) / gained_ns), MOST_PERCENT)


def _wanted(facts: TraceFacts) -> int:
    if facts.untraced_ns is None:
        message = f"{facts.name}: has no time of the command without the tracer"
        hint = "capture it again with --rehearse 20; pauses recorded with eBPF need no fit"
        raise ReplayerError(message, hint=hint)
    return facts.untraced_ns


def _replay(order: FitOrder, trace: Path, pace: str) -> _Took:
    """Replay a trace in a process of its own.

    Raises:
        OutsideError: It failed, or something differed from the recording.
        KeyboardInterrupt: A signal came; the replay has removed its files.
    """
    with tempfile.TemporaryDirectory(prefix="replayer-fit-") as scratch:
        run = Path(scratch) / "run"
        words = ["replay", str(trace), f"--pace={pace}", f"--rounds={order.rounds}", "--quiet"]
        # Rehearsals too found their files in the page cache and written out.
        words += ["--cache=warm", f"--target={order.target}"]
        words += [f"--output={run}", "--threshold=errors == 0"]
        said = _run(words)
        if said is not None:
            told, hint = split_failure(said)
            raise OutsideError(f"the {pace} replay failed: {told}", hint=hint)
        return _read(json.loads((run / "run.json").read_text()))


def _read(run: dict[str, Any]) -> _Took:
    (target,) = run["summary"]["targets"]
    (transaction,) = target["overall"]["transactions"]
    filesystem = run["targets"][0]["mounts"][0]["filesystem"]
    return _Took(transaction["latency"]["p50_ns"], filesystem)


def _run(words: Sequence[str]) -> str | None:
    """Run a command of this program; return what it said if it failed."""
    process = start_ourselves(words, subprocess.PIPE)
    said = _ending(process)
    if process.returncode in {0, EXIT_INCONCLUSIVE}:  # few rounds, and a busy CPU
        return None
    return said.strip() or f"exit code {process.returncode}"


def _ending(process: subprocess.Popen[bytes]) -> str:
    """Wait for a process, hand on each Ctrl-C to it, and return what it said."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            _, said = process.communicate()
        except KeyboardInterrupt as pressed:
            interrupt = pressed
            process.send_signal(signal.SIGINT)
        else:
            break
    if interrupt is not None:
        raise interrupt
    return said.decode(errors="replace")
