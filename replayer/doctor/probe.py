"""The probe: a few seconds of the calls that applications feel, by the engine, one user.

Everything happens in a folder of its own on the target, which is removed again, also after Ctrl-C,
SIGTERM and SIGHUP; what cannot be removed is named. A slow mount gets fewer files to begin with. A
mount that does not answer is given up on in bounded time.
"""

import json
import secrets
import shlex
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Timer

from replayer._native import Engine, Histogram, Plan, Sandbox, Stuck, Task
from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen
from replayer.measure.hlog import UNTIMED_OUTCOMES
from replayer.measure.run import describe_owner, utc_text
from replayer.measure.summary import samples_needed
from replayer.measure.units import format_many, format_time_ns
from replayer.plan.compile import compile_plan
from replayer.plan.document import Plan as CompiledPlan
from replayer.run.interruption import InterruptedRunError, Interruption, Level
from replayer.run.targets import NamedTarget, check_place
from replayer.run.watchdog import ANSWER_S, HASTE_S, Watchdog, ask, finish
from replayer.scenario.loading import parse_scenario

PROBE_S = 8.0  # chosen: with making and removing the folder about ten seconds
GRACE_NS = 2_000_000_000  # chosen: for a transaction that is cancelled to end
THREADS = 4
FILES = 64
SLOW_FILE_S = 0.3  # chosen: one after the other, all files then take 20 s
LAYOUT_S = 10.0  # chosen: a slow mount gets as many files as can be made in that time
LONGEST_S = 30.0  # chosen: making or removing the files is cut off then
POLL_S = 0.05
ENOUGH_ERRORS = 100  # chosen: more only fill a sick mount with what failed transactions leave
SLOW_NS = 100_000_000  # chosen: a page that opens ten files then takes a second

SCENARIO = """\
name: doctor
about: The calls that an application feels, on small files, one user.
users: {count: 1}
duration: 60s
datasets:
  files: {files: FILES, sizes: 4KiB}
  work: {directory: true}
mix: {look: 1, read: 1, miss: 1, list: 1, save: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
  read:
    - open: {from: files, pick: uniform}
    - read: {size: 4KiB}
    - close
  miss:
    - stat: {in: files, name: "missing-{seq}", expect: ENOENT}
  list:
    - list: {in: files}
  save:
    - open: {in: work, name: "file-{seq}", as: file, flags: [create, excl, wronly]}
    - write: {file: file, size: 4KiB}
    - fsync: file
    - close: file
    - unlink: file
"""

_NAMES = {
    ("look", "stat"): "stat of a file",
    ("miss", "stat"): "stat of a missing name",
    ("list", "transaction"): "list of FILES",
    ("read", "open"): "open of a file",
    ("read", "read"): "read of 4 KiB",
    ("save", "open"): "create",
    ("save", "write"): "write of 4 KiB",
    ("save", "fsync"): "fsync",
    ("save", "close"): "close after it",
    ("save", "unlink"): "unlink",
}
"""What of the probe is shown, in this order; FILES stands for the files there are."""


class ProbedOp(Frozen):
    """One op of the probe, in nanoseconds."""

    name: str
    count: int
    """Of those that succeeded: times are of these."""
    errors: int
    outcomes: dict[str, int]
    """The errors by their name."""
    p50_ns: int | None
    """Null: none succeeded."""
    p95_ns: int | None
    """Null: fewer than 20 succeeded, or none."""
    max_ns: int | None


class Probe(Frozen):
    """What a probe found."""

    seconds: float
    ops: tuple[ProbedOp, ...]
    """Empty: its files could not be made in time."""
    slowly: tuple[str, ...] = ()
    """What answered, but slowly, and the time that it took."""
    hung: tuple[str, ...]
    """Calls that did not come back in time."""
    left: str | None
    """The folder, if it could not be removed."""


@dataclass(frozen=True)
class _Place:
    """Where the probe is made: a folder on the mount, and the probe's own in it."""

    path: Path
    sandbox: Sandbox
    interruption: Interruption


def run_probe(path: Path, interruption: Interruption, seconds: float = PROBE_S) -> Probe:
    """Probe the mount that a folder lies on; its own folder there is removed in any case.

    Raises:
        ReplayerError: It is no folder to write to, the mount does not answer, or the probe was
            interrupted. The hint names the folder if it could not be removed.
    """
    target = NamedTarget(path.name, (path.absolute(),))
    ask(path, partial(check_place, target, target.paths[0]), interruption)
    run = f"doctor-{secrets.token_hex(4)}"
    note = _note(run, _planned(FILES).fingerprint)
    began = time.monotonic()
    place = _Place(path, _made(path, run, note, interruption), interruption)
    took_s = time.monotonic() - began  # for a folder with one file
    files = FILES if took_s < SLOW_FILE_S else max(int(LAYOUT_S / took_s), 1)
    try:
        found = _probed_in(place, files, seconds)
        interruption.check(f"probing {path}")
    except BaseException as error:
        left = _removed(place)
        if left is not None and isinstance(error, ReplayerError):
            error.hint = _hint_at(left)
        raise
    return found.model_copy(update={"left": _removed(place)})


def clean_command(folder: str) -> str:
    """Return the command that removes a folder that a probe has left."""
    return f"replayer clean {shlex.quote(folder)}"


def _hint_at(folder: str) -> str:
    return f"a folder is left behind; remove it with: {clean_command(folder)}"


def _made(path: Path, run: str, note: str, interruption: Interruption) -> Sandbox:
    """Make the probe's folder."""
    try:
        return ask(path, partial(Sandbox.create, str(path), run, note), interruption)
    except ReplayerError as error:
        if isinstance(error.__cause__, TimeoutError):  # the call goes on, and may succeed yet
            error.hint = _hint_at(str(path.absolute() / f"replayer-{run}"))
        raise


def _planned(files: int) -> CompiledPlan:
    return compile_plan(parse_scenario(SCENARIO.replace("FILES", str(files)), "the doctor's probe"))


def _probed_in(place: _Place, files: int, seconds: float) -> Probe:
    """Lay the files out, and probe."""
    plan = Plan(_planned(files).document())
    began = time.monotonic()
    layout = place.sandbox.lay_out(plan, THREADS)
    if _is_done(layout, place, lambda: place.interruption.level > Level.NONE):
        return _measured(Engine(plan, [[place.sandbox]]), place.interruption, seconds, files)
    took_s = time.monotonic() - began
    entries = f"{layout.done_entries:,} of {layout.total_entries:,} files and folders"
    return Probe(
        seconds=0, ops=(), slowly=(f"{entries} created in {took_s:.1f} s",), hung=(), left=None
    )


def _is_done(task: Task, place: _Place, cancelled: Callable[[], bool]) -> bool:
    """Wait for work in the folder; False: it took too long, or was cancelled.

    Raises:
        ReplayerError: It failed, or a call does not come back.
    """
    limit = Timer(LONGEST_S, task.cancel)
    limit.start()
    try:
        finish(task, place.path, Watchdog(ANSWER_S, HASTE_S), cancelled)
    except InterruptedRunError:
        return False
    finally:
        limit.cancel()
    return True


def _measured(engine: Engine, interruption: Interruption, seconds: float, files: int) -> Probe:
    """Run the user, and collect its figures."""
    try:
        engine.begin_segment(0, 0, 0)
        engine.start_user(0)
        began = time.monotonic()
        while time.monotonic() - began < seconds and interruption.level is Level.NONE:
            time.sleep(POLL_S)
            if sum(op.errors for op in _ops(engine, files)) >= ENOUGH_ERRORS:
                break
        elapsed = time.monotonic() - began
        hung = _ended(engine, interruption)
        ops = _ops(engine, files)
    finally:
        engine.close()
    slow = (op for op in ops if op.p50_ns is not None and op.p50_ns >= SLOW_NS)
    return Probe(
        seconds=elapsed,
        ops=ops,
        slowly=tuple(f"{op.name} {format_time_ns(op.p50_ns or 0)}" for op in slow),
        hung=tuple(f"{call.op} of {call.path}, {call.age_ns / 1e9:.1f} s" for call in hung),
        left=None,
    )


def _ended(engine: Engine, interruption: Interruption) -> list[Stuck]:
    """Stop the user after its transaction, and return the calls that do not come back.

    A slow call is waited for: its time is the finding on a slow mount.
    """
    engine.stop_user(0)
    deadline = time.monotonic() + ANSWER_S
    while engine.running_users() and time.monotonic() < deadline:
        if interruption.level > Level.NONE:
            break
        time.sleep(POLL_S)
    return engine.end_segment(GRACE_NS)


def _ops(engine: Engine, files: int) -> tuple[ProbedOp, ...]:
    """Return every op that was tried; ops after an op that always fails are not."""
    good: dict[tuple[str, str], Histogram] = {}
    bad: dict[tuple[str, str], Counter[str]] = {}
    for row in engine.totals():
        key = (row.transaction, row.op)
        if not row.expected:
            bad.setdefault(key, Counter())[row.outcome] += row.histogram.count
        elif row.outcome not in UNTIMED_OUTCOMES:
            good.setdefault(key, Histogram()).add(row.histogram)
    return tuple(
        _probed(
            name.replace("FILES", format_many(files, "file")),
            good.get(key, Histogram()),
            bad.get(key, Counter()),
        )
        for key, name in _NAMES.items()
        if key in good or key in bad
    )


def _probed(name: str, times: Histogram, outcomes: Counter[str]) -> ProbedOp:
    has_times = times.count > 0
    return ProbedOp(
        name=name,
        count=times.count,
        errors=outcomes.total(),
        outcomes=dict(outcomes.most_common()),
        p50_ns=times.percentile(50) if has_times else None,
        p95_ns=times.percentile(95) if times.count >= samples_needed(95) else None,
        max_ns=times.max if has_times else None,
    )


def _removed(place: _Place) -> str | None:
    """Remove the folder; return where it is if that fails, or if two signals come meanwhile."""
    presses = place.interruption.presses
    try:
        is_gone = _is_done(
            place.sandbox.remove(THREADS), place, lambda: place.interruption.presses > presses + 1
        )
    except ReplayerError:
        is_gone = False
    return None if is_gone else place.sandbox.path


def _note(run: str, fingerprint: str) -> str:
    """Return what the marker says: ``replayer clean`` reads it."""
    told = {"run": run, "scenario": "doctor", "fingerprint": fingerprint, "began": utc_text()}
    return json.dumps({**told, **describe_owner()})
