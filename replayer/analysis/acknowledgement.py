"""Where written data is when a transaction has ended: the guarantee of each write figure.

From the mount's guarantee and the ops of the transaction; the plan tells which files were opened
for synchronous writes. A figure of 10 µs for a write is a figure about this client's memory.
"""

import json
from collections.abc import Iterator
from typing import Any

from replayer.analysis.finding import Acknowledged, Promise
from replayer.measure import RunRecord, Summary, Target, TransactionSummary

__all__ = ["find_acknowledged"]

WRITES = ("write", "pwrite", "append", "copy_file_range", "pwrite_random", "ftruncate", "truncate")
FLUSHES = ("fsync", "fdatasync", "sync_file_range", "syncfs")
O_DSYNC = 0o10000  # open(2) on x86-64; O_SYNC holds this bit too
_DEEPEST = 17  # steps of a plan nest 16 deep at most


def find_acknowledged(record: RunRecord, summary: Summary) -> Iterator[Acknowledged]:
    """Yield what is known of each transaction that writes, on each target."""
    synchronous = _synchronous(record)
    for part in summary.targets:
        target = record.run.targets[part.index]
        for transaction in part.overall.transactions:
            counts = {op.op: op.count for op in transaction.ops}
            if any(op in counts for op in WRITES):
                yield _acknowledged(target, transaction, transaction.name in synchronous)


def _acknowledged(
    target: Target,
    transaction: TransactionSummary,
    synchronous: bool,  # noqa: FBT001 - a fact, not a choice
) -> Acknowledged:
    counts = {op.op: op.count for op in transaction.ops}
    promise = target.guarantee
    write = promise.fsync if synchronous else promise.write
    places = {**dict.fromkeys(WRITES, write), **dict.fromkeys(FLUSHES, promise.fsync)}
    places["close"] = promise.fsync if synchronous else promise.close
    ends, says = _end(target, transaction, synchronous=synchronous)
    return Acknowledged(
        target=target.name,
        transaction=transaction.name,
        ops=tuple(Promise(op=op, place=place) for op, place in places.items() if op in counts),
        ends=ends,
        says=says,
    )


def _end(target: Target, transaction: TransactionSummary, *, synchronous: bool) -> tuple[str, str]:
    promise = target.guarantee
    counts = {op.op: op.count for op in transaction.ops}
    flushes = sum(counts.get(op, 0) for op in FLUSHES)
    if synchronous:
        return promise.fsync, "files are opened for synchronous writes (O_SYNC or O_DSYNC)"
    if flushes:
        each = flushes / max(transaction.count, 1)
        return promise.fsync, f"flushed {each:.2g} times a transaction"
    if "close" in counts:
        return promise.close, "nothing is flushed; files are closed"
    return promise.write, "nothing is flushed or closed"


def _synchronous(record: RunRecord) -> frozenset[str]:
    """Return the transactions whose plan opens files with O_SYNC or O_DSYNC."""
    try:
        plan = json.loads((record.folder / "plan.json").read_bytes())
        transactions = plan["transactions"]
        return frozenset(
            found["name"] for found in transactions if _opens_synchronous(found["steps"], 0)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()  # a plan of another kind: nothing is claimed from it


def _opens_synchronous(node: Any, depth: int) -> bool:  # noqa: ANN401 - JSON
    if depth > 2 * _DEEPEST:
        return False
    if isinstance(node, list):
        return any(_opens_synchronous(item, depth + 1) for item in node)
    if not isinstance(node, dict):
        return False
    if node.get("op") == "open" and isinstance(node.get("flags"), int):
        return bool(node["flags"] & O_DSYNC)
    return any(_opens_synchronous(item, depth + 1) for item in node.values())
