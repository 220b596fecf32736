"""The rows of the File operations tab, in microseconds."""

from collections.abc import Iterator
from typing import Any

from replayer.load.web.desk import Playing
from replayer.load.web.tally import PERCENTS, WHOLE, OpLine, supported
from replayer.measure.units import format_bytes, format_rate

__all__ = ["COLUMNS", "operation_rows"]

NS_PER_US = 1e3
DASH = "\N{EN DASH}"
INDENT = "\N{NO-BREAK SPACE}" * 4

COLUMNS = (
    ("name", "Transaction, op"),
    ("count", "Count"),
    ("errors", "Errors"),
    ("rate", "Rate"),
    ("bytes", "Bytes/s"),
    ("p50", "p50 (µs)"),
    ("p95", "p95 (µs)"),
    ("p99", "p99 (µs)"),
    ("p99_9", "p99.9 (µs)"),
    ("max", "Max (µs)"),
)


def operation_rows(playing: Playing) -> list[dict[str, Any]]:
    """Return a row for each transaction on each target, and one for each op of it."""
    return list(_rows(playing))


def _rows(playing: Playing) -> Iterator[dict[str, Any]]:
    names = [target.name for target in playing.request.targets]
    for (target, transaction, op), line, rate, moved in playing.tally.rows():
        where = f"{names[target]}: " if len(names) > 1 else ""
        yield {
            "name": f"{where}{transaction}" if op == WHOLE else f"{INDENT}{op}",
            "count": line.count,
            "errors": _errors(line),
            "rate": format_rate(rate),
            "bytes": f"{format_bytes(moved)}/s" if moved else DASH,
            **_times(line),
        }


def _errors(line: OpLine) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in line.errors.most_common()) or "0"


def _times(line: OpLine) -> dict[str, str]:
    found = supported(line.times)
    longest = line.times.max if line.times.count else None
    return {
        **{name.removesuffix("_ns"): _us(found[name]) for name in PERCENTS},
        "max": _us(longest),
    }


def _us(value_ns: int | None) -> str:
    """Write a time in microseconds with three digits at least."""
    if value_ns is None:
        return DASH
    value = value_ns / NS_PER_US
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
