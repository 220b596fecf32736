"""The series of a run as the live page asks for them: what is new, of what is looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replayer.web.form import whole_number
from replayer.web.op_totals import WHOLE, Key, OpLine
from replayer.web.run_control import ActiveRun
from replayer.web.series import BINS_PER_DECADE, Figure, SecondColumn

FIGURES = ("p50_ns", "p95_ns", "p99_ns", "p99_9_ns", "max_ns")


@dataclass(frozen=True)
class Look:
    """What the page looks at."""

    target: int
    transaction: str | None
    op: str
    after: int
    """The last column that it has; -1 for none."""


def parse_look(sent: Mapping[str, str]) -> Look:
    """Read what was sent; what cannot be meant is as if it had not been sent."""
    return Look(
        target=_number(sent.get("target", ""), 0),
        transaction=sent.get("transaction") or None,
        op=sent.get("op") or WHOLE,
        after=_number(sent.get("after", ""), -1),
    )


def describe_series(active: ActiveRun | None, look: Look) -> dict[str, Any]:
    """Return the columns that follow the one the page has, as JSON."""
    if active is None:
        return {"run": None}
    keys = sorted(active.series.keys)
    transaction = _transaction(active, look)
    columns = active.series.after(look.after)
    own = (key[2] for key in keys if key[:2] == (look.target, transaction))
    ops = sorted(own, key=lambda op: (op != WHOLE, op))
    names = [key[1] for key in keys if key[0] == look.target and key[2] == WHOLE]
    return {
        "run": id(active),  # changes with each run, also before it has a folder
        "last": columns[-1].number if columns else look.after,
        "subjects": _subjects(active, keys),
        "target": look.target,
        "transaction": transaction,
        "op": look.op,
        "bins_per_decade": BINS_PER_DECADE,
        "columns": _frame(columns),
        "lines": {op: _line(columns, (look.target, transaction, op)) for op in ops},
        "throughput": {name: _rates(columns, (look.target, name, WHOLE)) for name in names},
        "errors": _errors(columns, look.target),
        "bytes": _bytes(columns, look.target),
        "heat": [_heat(column, (look.target, transaction, look.op)) for column in columns],
    }


def _number(text: str, default: int) -> int:
    found = whole_number(text)
    return default if found is None else found


def _transaction(active: ActiveRun, look: Look) -> str:
    """Return the one that is looked at: the one that ended most often, unless one is named."""
    known = [key[1] for key in sorted(active.series.keys) if key[0] == look.target]
    if look.transaction in known:
        return look.transaction
    lines = active.op_totals.lines
    counts = {name: lines.get((look.target, name, WHOLE), OpLine()).count for name in known}
    return max(counts, key=counts.__getitem__, default="")


def _subjects(active: ActiveRun, keys: Sequence[Key]) -> list[dict[str, Any]]:
    return [
        {
            "name": target.name,
            "transactions": list(dict.fromkeys(key[1] for key in keys if key[0] == index)),
        }
        for index, target in enumerate(active.request.targets)
    ]


def _frame(columns: Sequence[SecondColumn]) -> dict[str, list[Any]]:
    return {
        "t": [round(column.end_s, 3) for column in columns],
        "users": [column.users for column in columns],
        "measured": [column.measured for column in columns],
        "hanging": [column.hanging for column in columns],
    }


def _line(columns: Sequence[SecondColumn], key: Key) -> dict[str, list[Figure]]:
    cells = [column.cells.get(key) for column in columns]
    return {name: [cell.times[name] if cell else None for cell in cells] for name in FIGURES}


def _rates(columns: Sequence[SecondColumn], key: Key) -> list[float | None]:
    """Return how many ended a second: none in another target's turn, 0 while all hang."""
    return [
        _rate(column, key[0], column.cells[key].count if key in column.cells else 0)
        for column in columns
    ]


def _errors(columns: Sequence[SecondColumn], target: int) -> list[float | None]:
    return [column.errors_on(target) or _nothing(column, target) for column in columns]


def _bytes(columns: Sequence[SecondColumn], target: int) -> list[float | None]:
    return [
        _rate(
            column,
            target,
            sum(cell.bytes for key, cell in column.cells.items() if _is_call(key, target)),
        )
        for column in columns
    ]


def _rate(column: SecondColumn, target: int, amount: int) -> float | None:
    """Return an amount by the second; stumps have none, as in what is found in runs later."""
    if column.is_stump:
        return None
    return round(amount / column.seconds, 3) if amount else _nothing(column, target)


def _nothing(column: SecondColumn, target: int) -> float | None:
    return 0.0 if target in column.targets else None


def _is_call(key: Key, target: int) -> bool:
    return key[0] == target and key[2] != WHOLE


def _heat(column: SecondColumn, key: Key) -> list[tuple[int, int]]:
    return list(column.cells[key].heat) if key in column.cells else []
