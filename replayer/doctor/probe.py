"""The probe: a few seconds of the calls that applications feel, by the engine, one user.

Everything happens in a folder of its own on the target, which is removed again, also after Ctrl-C,
SIGTERM and SIGHUP. A mount that does not answer is given up on in bounded time.
"""

import json
import secrets
import time
from collections import Counter
from functools import partial
from pathlib import Path

from replayer._native import Engine, Histogram, Plan, Sandbox, Stuck
from replayer.errors import ReplayerError
from replayer.load.asking import ask
from replayer.load.interruption import Interruption, Level
from replayer.load.targets import Target, check_place
from replayer.measure import Frozen, describe_owner, samples_needed, utc_text
from replayer.plan import compile_plan
from replayer.scenario import parse_scenario

__all__ = ["Probe", "ProbedOp", "run_probe"]

PROBE_S = 8.0  # chosen: with making and removing the folder about ten seconds
GRACE_NS = 2_000_000_000  # chosen: for the last transaction to end
THREADS = 4
FILES = 64
POLL_S = 0.05
ENOUGH_ERRORS = 100  # chosen: more only fill a sick mount with what failed transactions leave

SCENARIO = f"""\
name: doctor
about: The calls that an application feels, on small files, one user.
users: {{count: 1}}
duration: 60s
datasets:
  files: {{files: {FILES}, sizes: 4KiB}}
  work: {{directory: true}}
mix: {{look: 1, read: 1, miss: 1, list: 1, save: 1}}
transactions:
  look:
    - stat: {{from: files, pick: uniform}}
  read:
    - open: {{from: files, pick: uniform}}
    - read: {{size: 4KiB}}
    - close
  miss:
    - stat: {{in: files, name: "missing-{{seq}}", expect: ENOENT}}
  list:
    - list: {{in: files}}
  save:
    - open: {{in: work, name: "file-{{seq}}", as: file, flags: [create, excl, wronly]}}
    - write: {{file: file, size: 4KiB}}
    - fsync: file
    - close: file
    - unlink: file
"""

_NAMES = {
    ("look", "stat"): "stat of a file",
    ("miss", "stat"): "stat of a missing name",
    ("list", "transaction"): f"list of {FILES} files",
    ("read", "open"): "open of a file",
    ("read", "read"): "read of 4 KiB",
    ("save", "open"): "create",
    ("save", "write"): "write of 4 KiB",
    ("save", "fsync"): "fsync",
    ("save", "close"): "close after it",
    ("save", "unlink"): "unlink",
}
"""What of the probe is shown, in this order."""


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
    hung: tuple[str, ...]
    """Calls that did not come back in time."""
    left: str | None
    """The folder, if it could not be removed."""


def run_probe(path: Path, interruption: Interruption, seconds: float = PROBE_S) -> Probe:
    """Probe the mount that a folder lies on.

    Args:
        path: The folder.
        interruption: Ends it early; the folder is removed all the same.
        seconds: How long to probe.

    Raises:
        ReplayerError: It is no folder to write to, the mount does not answer, or the probe was
            interrupted.
    """
    target = Target(path.name, (path.absolute(),))
    ask(path, partial(check_place, target, target.paths[0]), interruption)
    plan = compile_plan(parse_scenario(SCENARIO, "the doctor's probe"))
    run = f"doctor-{secrets.token_hex(4)}"
    note = _note(run, plan.fingerprint)
    sandbox = ask(path, partial(Sandbox.create, str(path), run, note), interruption)
    try:
        ready = Plan(plan.document())
        ask(path, sandbox.lay_out(ready, THREADS).result, interruption)
        found = _measured(Engine(ready, [[sandbox]]), interruption, seconds)
    finally:
        left = _removed(sandbox, path, interruption)
    interruption.check(f"probing {path}")
    return found.model_copy(update={"left": left})


def _measured(engine: Engine, interruption: Interruption, seconds: float) -> Probe:
    """Let the user work, and collect what it felt."""
    try:
        engine.begin_segment(0, 0, 0)
        engine.start_user(0)
        began = time.monotonic()
        while time.monotonic() - began < seconds and interruption.level is Level.NONE:
            time.sleep(POLL_S)
            if sum(op.errors for op in _ops(engine)) >= ENOUGH_ERRORS:
                break
        elapsed = time.monotonic() - began
        hung = engine.end_segment(GRACE_NS)
        ops = _ops(engine)
    finally:
        engine.close()
    return Probe(seconds=elapsed, ops=ops, hung=tuple(map(_told, hung)), left=None)


def _told(stuck: Stuck) -> str:
    return f"{stuck.op} of {stuck.path}, {stuck.age_ns / 1e9:.1f} s"


def _ops(engine: Engine) -> tuple[ProbedOp, ...]:
    """Return every op that was tried; one that always fails keeps those after it from it."""
    good: dict[tuple[str, str], Histogram] = {}
    bad: dict[tuple[str, str], Counter[str]] = {}
    for row in engine.totals():
        key = (row.transaction, row.op)
        if not row.expected:
            bad.setdefault(key, Counter())[row.outcome] += row.histogram.count
        elif row.outcome != "cancelled":
            good.setdefault(key, Histogram()).add(row.histogram)
    return tuple(
        _probed(name, good.get(key, Histogram()), bad.get(key, Counter()))
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


def _removed(sandbox: Sandbox, path: Path, interruption: Interruption) -> str | None:
    """Remove the folder; return where it is if that fails."""
    try:
        ask(path, sandbox.remove(THREADS).result, interruption)
    except ReplayerError:
        return sandbox.path
    return None


def _note(run: str, fingerprint: str) -> str:
    """Return what the marker says: ``replayer clean`` reads it."""
    return json.dumps(
        {
            "run": run,
            "scenario": "doctor",
            "fingerprint": fingerprint,
            "began": utc_text(),
            **describe_owner(),
        }
    )
