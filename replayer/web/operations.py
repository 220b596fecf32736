"""The rows of the File operations tab, in microseconds; numbers, so that the table sorts them."""

from collections.abc import Iterator
from typing import Any

from replayer.locust.figures import round_figure
from replayer.web.op_totals import PERCENTS, WHOLE, OpLine, supported
from replayer.web.run_control import ActiveRun

__all__ = ["COLUMNS", "operation_rows"]

NS_PER_US = 1e3
BYTES_PER_MB = 1e6
DASH = "\N{EN DASH}"

COLUMNS = (
    ("target", "Target"),
    ("transaction", "Transaction"),
    ("op", "Operation"),
    ("count", "Count"),
    ("errors", "Errors"),
    ("rate", "Rate (/s)"),
    ("megabytes", "MB/s"),
    ("p50", "p50 (µs)"),
    ("p95", "p95 (µs)"),
    ("p99", "p99 (µs)"),
    ("p99_9", "p99.9 (µs)"),
    ("max", "Max (µs)"),
)


def operation_rows(active: ActiveRun) -> list[dict[str, Any]]:
    """Return a row for each transaction on each target, and one for each op of it."""
    return list(_rows(active))


def _rows(active: ActiveRun) -> Iterator[dict[str, Any]]:
    names = [target.name for target in active.request.targets]
    for (target, transaction, op), line, rate, moved in active.op_totals.rows():
        yield {
            "target": names[target],
            "transaction": transaction,
            "op": "whole transaction" if op == WHOLE else op,
            "count": line.count,
            "errors": _errors(line),
            "rate": round_figure(rate),
            "megabytes": round_figure(moved / BYTES_PER_MB) if line.bytes else DASH,
            **_times(line),
        }


def _errors(line: OpLine) -> str | int:
    return ", ".join(f"{name} {count:,}" for name, count in line.errors.most_common()) or 0


def _times(line: OpLine) -> dict[str, float | str]:
    found = supported(line.times)
    longest = line.times.max if line.times.count else None
    return {
        **{name.removesuffix("_ns"): _us(found[name]) for name in PERCENTS},
        "max": _us(longest),
    }


def _us(value_ns: int | None) -> float | str:
    return DASH if value_ns is None else round_figure(value_ns / NS_PER_US)
