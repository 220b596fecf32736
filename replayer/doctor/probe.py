"""The probe: a few seconds of the calls that applications feel, by the engine, one user.

Everything happens in a folder of its own on the target, which is removed again, also after Ctrl-C.
A mount that does not answer is given up on in bounded time.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import TypeVar

from replayer.engine import Engine, Histogram, Plan, Sandbox, Stuck
from replayer.errors import ReplayerError
from replayer.keeper import give_up_on
from replayer.load.targets import Target, check_target
from replayer.measure import Frozen, collect_machine, this_process, utc_text
from replayer.plan import compile_plan
from replayer.scenario import parse_scenario

__all__ = ["ANSWER_S", "Probe", "ProbedOp", "run_probe", "within"]

PROBE_S = 8.0  # chosen: with making and removing the folder about ten seconds
ANSWER_S = 20.0  # chosen: a mount that takes longer for one call is taken for dead
GRACE_NS = 2_000_000_000  # chosen: for the last transaction to end
THREADS = 4
FILES = 64
POLL_S = 0.05

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
    errors: int
    p50_ns: int
    p95_ns: int
    max_ns: int


class Probe(Frozen):
    """What a probe found."""

    seconds: float
    ops: tuple[ProbedOp, ...]
    hung: tuple[str, ...]
    """Calls that did not come back in time."""
    left: str | None
    """The folder, if it could not be removed."""


class ProbeError(ReplayerError):
    """The mount refused the probe, or did not answer."""

    exit_code = 3


def run_probe(path: Path, seconds: float = PROBE_S) -> Probe:
    """Probe the mount that a folder lies on.

    Raises:
        ReplayerError: It is no folder to write to, or the mount does not answer.
    """
    within(path, lambda: check_target(Target(path.name, (path.absolute(),))))
    plan = compile_plan(parse_scenario(SCENARIO, "the doctor's probe"))
    run = f"doctor-{secrets.token_hex(4)}"
    note = _note(run, plan.fingerprint)
    sandbox = within(path, lambda: Sandbox.create(str(path), run, note))
    try:
        ready = Plan(plan.document())
        within(path, lambda: sandbox.lay_out(ready, THREADS).result())
        engine = Engine(ready, [[sandbox]])
        found = _measured(engine, seconds)
    finally:
        left = _removed(sandbox, path)
    return found.model_copy(update={"left": left})


_Result = TypeVar("_Result")


def within(path: Path, work: Callable[[], _Result]) -> _Result:
    """Do something on a mount, for at most ``ANSWER_S``; a thread that hangs is left behind.

    Raises:
        ReplayerError: It failed, or did not end in time.
    """
    answers: Queue[_Result | OSError | ReplayerError] = Queue(1)

    def ask() -> None:
        try:
            answers.put(work())
        except (OSError, ReplayerError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=ANSWER_S)
    except Empty:
        give_up_on(str(path))
        message = f"{path}: the mount did not answer within {ANSWER_S:g} s"
        raise ProbeError(message, hint="is its server up?") from None
    if isinstance(answer, ReplayerError):
        raise answer
    if isinstance(answer, OSError):
        message = f"{path}: {answer.strerror or answer}"
        hint = "the probe needs a folder that it may write to; --no-probe leaves it out"
        raise ProbeError(message, hint=hint) from answer
    return answer


def _measured(engine: Engine, seconds: float) -> Probe:
    """Let the user work, and collect what it felt."""
    try:
        engine.begin_segment(0, 0, 0)
        engine.start_user(0)
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            time.sleep(POLL_S)
        elapsed = time.monotonic() - began
        hung = engine.end_segment(GRACE_NS)
        ops = _ops(engine)
    finally:
        engine.close()
    return Probe(seconds=elapsed, ops=ops, hung=tuple(map(_told, hung)), left=None)


def _told(stuck: Stuck) -> str:
    return f"{stuck.op} of {stuck.path}, {stuck.age_ns / 1e9:.1f} s"


def _ops(engine: Engine) -> tuple[ProbedOp, ...]:
    good: dict[tuple[str, str], Histogram] = {}
    bad: dict[tuple[str, str], int] = {}
    for row in engine.totals():
        key = (row.transaction, row.op)
        if row.expected and row.outcome != "cancelled":
            good.setdefault(key, Histogram()).add(row.histogram)
        elif not row.expected:
            bad[key] = bad.get(key, 0) + row.histogram.count
    return tuple(
        ProbedOp(
            name=name,
            count=good[key].count,
            errors=bad.get(key, 0),
            p50_ns=good[key].percentile(50),
            p95_ns=good[key].percentile(95),
            max_ns=good[key].max,
        )
        for key, name in _NAMES.items()
        if key in good
    )


def _removed(sandbox: Sandbox, path: Path) -> str | None:
    """Remove the folder; return where it is if that fails."""
    try:
        within(path, lambda: sandbox.remove(THREADS).result())
    except ProbeError:
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
            "host": collect_machine().host,
            "process": this_process().model_dump(),
        }
    )
