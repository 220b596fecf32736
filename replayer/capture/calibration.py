"""What a recorder itself costs on this machine: measured with a program whose calls are known.

dd reads and writes one byte at a time: calls that cost next to nothing. It tells itself how long
they took without strace, and strace's log tells how long they look with it. The trace carries the
difference, so that even a short one shows calls and pauses as long as they were.

The probe in the kernel tells with each call what it took itself. What it cannot tell, the way into
the kernel's hooks and back, is what lies between the calls of a program that does nothing there.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from replayer import _native
from replayer.trace.errors import TraceError, translated
from replayer.trace.importing import Probed

__all__ = ["Calibration", "as_recorded", "measure_probe", "measure_tracer"]

COPIES = 1000  # chosen: each is a read and a write; under strace they take about 50 ms
PROBE_CALLS = 20_000  # chosen: about 20 ms
SAME_MACHINE = 2.0
"""Chosen: so many times as fast or slow may a machine be some seconds later. What differs more is
no cost of the recorder: the program computes between all of its calls."""
FEWEST = 100  # chosen: fewer pairs of lines prove nothing
LONGEST_SECONDS = 5.0
LOW = 0.05  # the quantile of the shortest times that the importer takes, too
NS = 10**9

_TOOK = re.compile(r"copied, ([0-9.e+-]+) s")
_LINE = re.compile(
    r"^\d+ +(?P<s>\d+)\.(?P<ns>\d{9}) (?:read|write)\(.*= (?:0x)?1 <(?P<ts>\d+)\.(?P<tns>\d{9})>$"
)


@dataclass(frozen=True)
class Calibration:
    """What strace adds.

    Attributes:
        call_ns: To the duration of each recorded call.
        gap_ns: To the time between two recorded calls.
        spread: The mean of these times in thousandths of the shortest of them.
        method: How that was found out, in words.
    """

    call_ns: int
    gap_ns: int
    spread: int
    method: str

    def document(self) -> Probed:
        """Return what the importer is told."""
        return {"call_ns": self.call_ns, "gap_ns": self.gap_ns, "spread": self.spread}


def measure_tracer(words: Sequence[str], log: Path) -> Calibration | None:
    """Measure what strace adds; None where the machine does not let itself be measured.

    Args:
        words: The command line of strace, all of it that stands before the recorded command.
        log: The file that these words let strace write; it is removed.
    """
    program = shutil.which("dd")
    if program is None:
        return None
    dd = [program, "if=/dev/zero", "of=/dev/null", "bs=1", f"count={COPIES}"]
    plain_ns = _time_of(_run(dd))
    _run([*words, *dd])
    stretched = _stretched(log)
    log.unlink(missing_ok=True)
    if plain_ns is None or stretched is None:
        return None
    call_ns, gaps = stretched
    return Calibration(
        call_ns=max(round(call_ns - plain_ns), 0),
        gap_ns=max(round(median(gaps)), 0),
        spread=_spread(gaps),
        method=f"measured at the capture with {2 * COPIES} calls of dd; one call takes "
        f"{plain_ns:.0f} ns without strace",
    )


def measure_probe(
    recording: AbstractContextManager[Callable[[], object]], log: Path
) -> Calibration | None:
    """Measure what the probe adds between two calls beside what it tells; None where it cannot be.

    Args:
        recording: Gives what has it record the process that is started next.
        log: Where the recording is when that ends; it is removed.
    """
    calls = f"from replayer import _native; _native.make_quick_calls({PROBE_CALLS})"
    try:
        with recording as arm:
            arm()
            # -P: a folder "replayer" where the user is, such as this project's, is not the program.
            _run([sys.executable, "-P", "-c", calls])
        found = _gap_cost(log)
    finally:
        log.unlink(missing_ok=True)
    if found is None:
        return None
    count, gap_ns, told_ns = found
    return Calibration(
        call_ns=0,
        gap_ns=gap_ns,
        spread=1000,
        method=f"what lay between {count:,} calls that follow each other at once, measured before "
        f"the recording: 1 in 20 has at most {gap_ns} ns beside what the recorder tells of it. "
        f"That is {told_ns} ns or less for half of them, and taken off, too",
    )


def as_recorded(measured: Calibration, log: Path) -> Calibration:
    """Return what the probe added while it recorded: this machine may have been faster or slower.

    Args:
        measured: What it added before.
        log: The recording.
    """
    found = _gap_cost(log)
    if found is None:
        return measured
    _, gap_ns, _ = found
    if not measured.gap_ns / SAME_MACHINE <= gap_ns <= measured.gap_ns * SAME_MACHINE:
        return measured
    told = f"{measured.method}. In the recording itself 1 in 20 has at most {gap_ns} ns"
    return replace(measured, gap_ns=gap_ns, method=f"{told}: these are taken off each gap")


def _gap_cost(log: Path) -> tuple[int, int, int] | None:
    try:
        with translated():
            return _native.gap_cost(log)
    except TraceError:
        return None


def _run(words: Sequence[str]) -> str:
    try:
        return subprocess.run(  # noqa: S603 - the words are ours, and no shell reads them
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_SECONDS,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _time_of(told: str) -> float | None:
    """Return what one call and the loop around it take, from dd's last line."""
    found = _TOOK.search(told)
    return None if found is None else float(found[1]) * NS / (2 * COPIES)


def _spread(gaps: Sequence[int]) -> int:
    low = sorted(gaps)[int(len(gaps) * LOW)]
    return round(1000 * mean(gaps) / low) if low > 0 else 1000


def _stretched(log: Path) -> tuple[float, list[int]] | None:
    """Return the median duration of a call, and the times between two, as logged."""
    if not log.exists():
        return None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [(index, row) for index, line in enumerate(lines) if (row := _LINE.match(line))]
    calls = [(index, _ns(row["s"], row["ns"]), _ns(row["ts"], row["tns"])) for index, row in found]
    gaps = [
        start - (before + took)
        for (at, before, took), (index, start, _) in pairwise(calls)
        if index == at + 1
    ]
    if len(gaps) < FEWEST:
        return None
    return median(took for _, _, took in calls), gaps


def _ns(seconds: str, fraction: str) -> int:
    return int(seconds) * NS + int(fraction)
