"""Where written data is when a transaction has ended: the guarantee of each write figure.

From the mount's guarantee and the ops of the transaction; the plan tells which files were opened
for synchronous writes, and how a job of fio writes. A figure of 10 µs for a write is a figure about
this client's memory.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from replayer.analysis.finding import Acknowledged, Promise
from replayer.analysis.works import steps_by_transaction, steps_within
from replayer.measure.guarantee import Writing, place_of
from replayer.measure.record import RunRecord
from replayer.measure.run import Target
from replayer.measure.summary import Summary, TransactionSummary
from replayer.measure.units import format_number
from replayer.ops import FLUSHING, STORING

O_DSYNC = 0o10000  # open(2) on x86-64; O_SYNC holds this bit too


def find_acknowledged(record: RunRecord, summary: Summary) -> Iterator[Acknowledged]:
    """Yield what is known of each transaction that writes, on each target."""
    writings, shares = _writings(record), _written_shares(record)
    for part in summary.targets:
        target = record.run.targets[part.index]
        for transaction in part.overall.transactions:
            written = any(op.op in STORING for op in transaction.ops)
            # What a job of fio does with its files is told by its options alone.
            known = transaction.name in writings or record.run.load.order == "together"
            if written and known:
                writing = writings.get(transaction.name)
                yield _acknowledged(target, transaction, writing, shares.get(transaction.name))


def _acknowledged(
    target: Target, transaction: TransactionSummary, writing: Writing | None, share: float | None
) -> Acknowledged:
    counts = {op.op: op.count for op in transaction.ops}
    promise = target.guarantee
    write = promise.write if writing is None else place_of(promise, writing)
    places = {**dict.fromkeys(STORING, write), **dict.fromkeys(FLUSHING, promise.fsync)}
    places["close"] = promise.fsync if writing == "synchronous" else promise.close
    ends, says = _end(target, transaction, writing, share)
    return Acknowledged(
        target=target.name,
        transaction=transaction.name,
        ops=tuple(Promise(op=op, place=place) for op, place in places.items() if op in counts),
        ends=ends,
        says=says,
    )


def _end(
    target: Target, transaction: TransactionSummary, writing: Writing | None, share: float | None
) -> tuple[str, str]:
    """Return where all that was written is at the end, and why.

    Each file that was written needs a flush of its own, unless one is of the whole file system;
    where it is not known which were, each that was closed does.
    """
    promise = target.guarantee
    if writing is not None:
        place = place_of(promise, writing)
        unflushed = ", and no device is told to flush" if place.endswith("not flushed") else ""
        return place, f"{_SAYS[writing]}{unflushed}"
    good = {op.op: op.count - op.errors for op in transaction.ops}
    flushes, ended = sum(good.get(op, 0) for op in FLUSHING), transaction.count - transaction.errors
    each = f"flushed {format_number(flushes / max(ended, 1))} times a transaction"
    files = good.get("close", 0) * (1.0 if share is None else share)
    if flushes >= max(ended, 1) and (good.get("syncfs", 0) >= ended or flushes >= files):
        return promise.fsync, each
    flushed = f"{each}, so not always" if flushes else "nothing is flushed"
    if flushes >= max(ended, 1):
        kind = "closed" if share is None else "written"
        flushed = f"{each} of {format_number(files / max(ended, 1))} {kind} files"
    if good.get("close"):
        return promise.close, f"{flushed}; files are closed"
    return promise.write, f"{flushed}, nothing is closed"


_SAYS: Mapping[Writing, str] = {
    "buffered": "no write waits until it is stored",
    "flushed": "a write ends before its flush, which is an op of its own",
    "direct": "written past the page cache (O_DIRECT)",
    "synchronous": "files are opened for synchronous writes (O_SYNC or O_DSYNC)",
}


def _writings(record: RunRecord) -> Mapping[str, Writing]:
    """Return how transactions write, where the plan tells.

    A baseline's says it of each job that writes; a scenario's opens files with O_SYNC or O_DSYNC.
    """
    plan = record.plan or {}
    if plan.get("engine") == "fio":
        try:
            return {name: how for job in plan["jobs"] for name, how in job["writing"].items()}
        except (KeyError, TypeError, AttributeError):
            return {}  # of an earlier version: nothing is claimed from it
    return {
        name: "synchronous"
        for name, steps in steps_by_transaction(record).items()
        if (opened := [flags for flags in map(_flags, steps) if flags and flags & os.O_ACCMODE])
        and all(flags & O_DSYNC for flags in opened)
    }


def _written_shares(record: RunRecord) -> Mapping[str, float]:
    """Return which part of the files that transactions open are to be written, where plans tell.

    They do not where some are opened again and again, or now and then.
    """
    shares = {}
    for name, steps in steps_by_transaction(record).items():
        opened = [flags for step in steps if (flags := _flags(step)) is not None]
        writing = sum(bool(flags & os.O_ACCMODE) for flags in opened)
        inside = (each for step in steps for each in steps_within(step))
        alike = writing in {0, len(opened)}
        if opened and (alike or all(_flags(step) is None for step in inside)):
            shares[name] = writing / len(opened)
    return shares


def _flags(step: Mapping[str, Any]) -> int | None:
    """Return those of an open; None of all other steps."""
    flags = step.get("flags")
    return flags if step.get("op") == "open" and isinstance(flags, int) else None
