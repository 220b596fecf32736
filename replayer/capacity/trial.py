"""One trial: a run or a replay with one load on one target, in a process of its own.

It ends early once it has told on which side of the capacity its load lies. The files are laid out
by the first trial of a target, and laid out again before each of the others: what the trial before
left is removed, and every file is written out and read once.
"""

import secrets
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from replayer.analysis.slots import TIMES
from replayer.capacity.bucket import Served
from replayer.capacity.goals import Counts, count_goal
from replayer.capacity.order import CapacityOrder, Load
from replayer.errors import ReplayerError
from replayer.measure.record import RunRecord, load_run
from replayer.measure.summarise import LATENCY
from replayer.measure.summary import WAITS
from replayer.measure.timeline import Seconds
from replayer.run.interruption import Interruption
from replayer.run.own_command import ENDLESS, arriving
from replayer.run.own_run import kept_of, place_words, start_run
from replayer.run.targets import NamedTarget

__all__ = ["EndedTrial", "Trial", "run_trial", "served_in"]

POLL_S = 0.1
BACK_WITHIN_S = 60  # chosen: workers of the trial before say hello each second
LOOK_S = 2.0  # chosen: reading a run that goes on takes its client 20 ms


@dataclass(frozen=True)
class Trial:
    """One trial."""

    number: int
    """Among those of all targets, from 1."""
    target: NamedTarget
    load: float
    seconds: int
    """How long it is, at most."""
    users: int
    folder: Path
    kept: str | None
    """The target's folder as an earlier trial left it."""
    confirms: bool
    """Whether it looks if credits are spent: it goes on to its end then, however clear it is."""


@dataclass(frozen=True)
class EndedTrial:
    """What became of a trial."""

    record: RunRecord | None
    """None: it has measured nothing."""
    kept: str | None
    """The target's folder for further trials."""
    code: int = 0
    failure: str | None = None
    """Why it failed."""
    hint: str = ""
    """What to do about it."""
    waited_s: float = 0.0
    """How long it waited for others until it made its run folder."""


IsClear = Callable[[Sequence[Counts]], bool]


def run_trial(
    order: CapacityOrder, trial: Trial, is_clear: IsClear, interruption: Interruption
) -> EndedTrial:
    """Make a trial."""
    run = start_run(_words(order, trial), trial.folder)
    waited_s = _wait(
        run.process, trial, lambda record: is_clear(_counted(order, record)), interruption
    )
    code, record = run.process.returncode, run.record
    kept = trial.kept or (None if record is None else kept_of(trial.target, record))
    if record is not None and run.counts(record):
        return EndedTrial(record, kept, code, waited_s=waited_s)
    why, hint = run.failure
    return EndedTrial(None, kept, code, why or f"a trial ended with exit code {code}", hint)


def _words(order: CapacityOrder, trial: Trial) -> list[str]:
    users = trial.users if order.load is Load.ARRIVALS else round(trial.load)
    return [
        *(_scenario(order, trial) if order.requests is None else _requests(order, trial)),
        *("-u", str(users), "-t", f"{trial.seconds}s", "--rounds", "1", "--cache", "warm"),
        *_place(trial),
        *(word for goal in order.goals for word in ("--threshold", goal.text)),
        *order.words,
    ]


def _place(trial: Trial) -> tuple[str, ...]:
    target = trial.target
    if target.is_on_workers:
        back = () if trial.number == 1 else ("--expect-workers-max-wait", str(BACK_WITHIN_S))
        return "--target", target.name, *back
    return place_words(target.name, target.written, trial.kept)


def _scenario(order: CapacityOrder, trial: Trial) -> Iterator[str]:
    is_open = order.load is Load.ARRIVALS
    changes = arriving(_rate(trial)) if is_open else ("arrivals=null",)
    yield from ("run", order.scenario)
    for change in (*changes, *ENDLESS, f"draws={_luck()}"):
        yield from ("--set", change)


def _requests(order: CapacityOrder, trial: Trial) -> Iterator[str]:
    yield from ("replay", order.scenario, "--requests", *(order.requests or ()))
    if order.load is Load.ARRIVALS:
        yield from ("--pace", "open", "--rate", _rate(trial), "--seed", str(_luck()))


def _luck() -> int:
    """Return what a trial's users draw from. With the same for all, all have the same luck.

    Searches of a queue with the same arrivals in each trial were 1.1 % too high on average, and 12
    of 20 intervals covered the truth.
    """
    return secrets.randbits(32)


def _rate(trial: Trial) -> str:
    return f"{trial.load:.6g}/s"


def _wait(
    process: subprocess.Popen[bytes],
    trial: Trial,
    is_clear: Callable[[RunRecord], bool],
    interruption: Interruption,
) -> float:
    """Wait for a trial's process; Ctrl-C is handed on, and one that is clear is asked to end.

    Returns how many seconds it was there before its run folder was.
    """
    begin_s = begun_s = time.monotonic()
    handed_on, look_at_s = 0, begin_s + trial.seconds / 2
    while process.poll() is None:
        if not trial.folder.exists():
            begun_s = time.monotonic()
        if interruption.presses > handed_on:
            handed_on += 1
            process.send_signal(signal.SIGINT)
        elif not handed_on and time.monotonic() > look_at_s:
            look_at_s = time.monotonic() + LOOK_S
            record = _so_far(trial.folder)
            if record is not None and is_clear(record):
                handed_on = 1
                process.send_signal(signal.SIGINT)  # another one limits the time to remove files
        time.sleep(POLL_S)
    return begun_s - begin_s


def _so_far(folder: Path) -> RunRecord | None:
    try:
        return load_run(folder)
    except ReplayerError:  # it has not begun
        return None


def _counted(order: CapacityOrder, record: RunRecord) -> list[Counts]:
    return [count_goal(goal, record) for goal in order.goals]


def served_in(record: RunRecord, load: float, at_s: float) -> Served:
    """Return what succeeded in each interval of a run that began then."""
    found: dict[tuple[float, float], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for key, own in record.seconds.items():
        if not key.is_timed or key.segment.phase != "measured":
            continue
        what = _amounts_of(key.op, own)
        for place, span in enumerate(zip(own.start_s, own.end_s, strict=True)):
            for name, amounts in what.items():
                found[span][name] += amounts[place]
    spans = [span for span in sorted(found) if span[1] > span[0]]  # the last may have no length
    starts_s, ends_s = np.array(spans).reshape(-1, 2).T
    columns = (
        np.array([found[span][name] for span in spans], np.float64)
        for name in ("done", "moved", "calls", "data_calls")
    )
    return Served(load, at_s + starts_s, ends_s - starts_s, *columns)


def _amounts_of(op: str, own: Seconds) -> dict[str, NDArray[np.float64]]:
    """Return what an op adds to each interval in which some of it ended."""
    counts = own.count.astype(np.float64)
    if op == LATENCY:
        return {"done": counts}
    if op in TIMES or op in WAITS:
        return {}
    of_data = {"data_calls": counts} if own.bytes.any() else {}
    return {"calls": counts, "moved": own.bytes.astype(np.float64), **of_data}
