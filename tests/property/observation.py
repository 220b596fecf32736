"""What a plan did, in a form that two engines can be compared in; and how to make them do it."""

import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replayer import _native as engine
from replayer.ops import PLAN_OPS
from tests import oracle

Document = dict[str, Any]

PATIENCE_S = 60.0
WAITS = {"await", "until"}  # no calls, but timed
RECENT_NS = 1_500_000_000 * 10**9  # plans set times before this one only


@dataclass
class Observed:
    """Everything that must not depend on the engine.

    Attributes:
        ops: Ops per (transaction, op, outcome, expected).
        bytes: Bytes per (transaction, op), without those that moved none.
        transactions: Transactions per (name, outcome).
        tree: What was left behind.
        traits: What else can be seen of each path: links, owner, attributes, times that were set.
    """

    ops: dict[tuple[str, str, str, bool], int]
    bytes: dict[tuple[str, str], int]
    transactions: dict[tuple[str, str], int]
    tree: dict[str, oracle.EntryState]
    traits: dict[str, tuple[Any, ...]]


@contextmanager
def fresh_folder(mount: Path) -> Iterator[Path]:
    with TemporaryDirectory(dir=mount) as name:
        yield Path(name)
        made_readable(Path(name))


def native_plan(document: Document) -> engine.Plan:
    return engine.Plan(json.dumps(document, ensure_ascii=False).encode())


def run_reference(document: Document, folder: Path, round_number: int) -> oracle.ReferenceRun:
    """Lay the plan out and run all users, one after the other."""
    oracle.lay_out(document, folder)
    turns = oracle.in_turns(range(document["users"]), document["stop"]["transactions"])
    return oracle.run_plan(document, folder, turns=turns, round_number=round_number)


def seen_by_reference(run: oracle.ReferenceRun, folder: Path) -> Observed:
    ops = Counter((s.transaction, s.op, s.outcome, s.expected) for s in run.samples)
    finished = {(name, "ok"): count - run.failed[name] for name, count in run.finished.items()}
    failed = {(name, "failed"): count for name, count in run.failed.items()}
    transactions = +Counter(finished | failed)
    return Observed(ops, run.bytes, transactions, *left_behind(folder))


def run_native(document: Document, parent: Path, round_number: int) -> Observed:
    """Lay the plan out and run all users at once."""
    sandbox = engine.Sandbox.create(str(parent), "run", "{}")
    plan = native_plan(document)
    sandbox.lay_out(plan, 2).result()
    machine = engine.Engine(plan, [[sandbox]])
    try:
        machine.begin_segment(0, round_number, 0)
        for user in range(document["users"]):
            machine.start_user(user)
        wait_until_idle(machine)
        stuck = machine.end_segment(10**9)
        assert stuck == []
        rows = machine.totals()
    finally:
        machine.close()
    return Observed(*counted(rows), *left_behind(Path(sandbox.path)))


def wait_until_idle(machine: engine.Engine) -> None:
    deadline = time.monotonic() + PATIENCE_S
    pause = 0.0002
    while machine.busy_users():
        assert time.monotonic() < deadline, f"users are stuck: {machine.stuck()}"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)


def counted(
    rows: list[engine.Row],
) -> tuple[
    dict[tuple[str, str, str, bool], int],
    dict[tuple[str, str], int],
    dict[tuple[str, str], int],
]:
    ops: Counter[tuple[str, str, str, bool]] = Counter()
    moved: Counter[tuple[str, str]] = Counter()
    transactions: Counter[tuple[str, str]] = Counter()
    for row in rows:
        count = row.histogram.count
        if row.op == "transaction":
            transactions[row.transaction, row.outcome] += count
        elif row.op in PLAN_OPS or row.op in WAITS:
            ops[row.transaction, row.op, row.outcome, row.expected] += count
            moved[row.transaction, row.op] += row.bytes
    return +ops, +moved, +transactions


def left_behind(
    folder: Path,
) -> tuple[dict[str, oracle.EntryState], dict[str, tuple[Any, ...]]]:
    """Describe the tree, and what else can be seen, also where plans took all permissions away."""
    modes = made_readable(folder)
    tree = oracle.tree(folder)
    for path, state in tree.items():
        mode = modes.get((folder / path).lstat().st_ino, state.mode)
        tree[path] = state._replace(mode=mode)
    return tree, {path: _traits(folder / path) for path in tree}


def made_readable(folder: Path) -> dict[int, int]:
    """Give the owner all permissions and return the modes that stood before, by inode."""
    modes: dict[int, int] = {}
    for directory, names, files in os.walk(folder):
        for place in (Path(directory, name) for name in [*names, *files]):
            status = place.lstat()
            if not stat.S_ISLNK(status.st_mode) and status.st_ino not in modes:
                modes[status.st_ino] = stat.S_IMODE(status.st_mode)
                place.chmod(status.st_mode | 0o700)
    return modes


def _traits(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    names = os.listxattr(path, follow_symlinks=False)
    attributes = {
        name: os.getxattr(path, name, follow_symlinks=False)
        for name in names
        if name.startswith("user.")
    }
    mtime_ns = status.st_mtime_ns if status.st_mtime_ns < RECENT_NS else None
    return status.st_nlink, status.st_uid, status.st_gid, attributes, mtime_ns
