"""Running a plan with the reference engine, and what comes out of it."""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.steps import run_transaction
from tests.oracle.user import Sample, User


@dataclass
class ReferenceRun:
    """Everything that was done in one round.

    Attributes:
        samples: Every op, in the order in which it was made.
        finished: Transactions, by name, the failed ones among them.
        failed: Failed transactions, by name.
    """

    samples: list[Sample] = field(default_factory=list)
    finished: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> Counter[tuple[str, str, str]]:
        """Ops per (transaction, op, outcome)."""
        return Counter((s.transaction, s.op, s.outcome) for s in self.samples)

    @property
    def bytes(self) -> Counter[tuple[str, str]]:
        """Bytes per (transaction, op), without those that moved none."""
        moved: Counter[tuple[str, str]] = Counter()
        for sample in self.samples:
            moved[sample.transaction, sample.op] += sample.bytes
        return +moved

    def of_user(self, user: int) -> list[Sample]:
        """What one user did, in order."""
        return [sample for sample in self.samples if sample.user == user]


def in_turns(users: Sequence[int], transactions: int) -> list[int]:
    """Let users go one after the other, each with all its transactions."""
    return [user for user in users for _ in range(transactions)]


def run_plan(
    document: dict[str, Any], folder: Path, *, turns: Sequence[int], round_number: int = 0
) -> ReferenceRun:
    """Run a plan that is laid out in a folder.

    Args:
        document: A valid plan of format 1.
        folder: The run's folder.
        turns: The user of each transaction: ``in_turns``, or any interleaving.
        round_number: The round that the users' streams are those of.
    """
    signals: dict[int, int] = {}
    users = {number: User(document, number, round_number, signals) for number in sorted(set(turns))}
    run = ReferenceRun()
    with _inside(folder):
        for number in turns:
            user = users[number]
            name, failed = run_transaction(user)
            run.samples += user.samples
            user.samples.clear()
            run.finished[name] += 1
            run.failed[name] += failed
    run.failed = +run.failed
    return run


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Make the folder the one that paths are relative to, and modes exact."""
    umask = os.umask(0)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        os.umask(umask)
