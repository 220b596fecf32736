"""``replayer check --against``: whether a transaction makes the calls of a recorded application."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replayer.errors import ReplayerError
from replayer.measure.units import format_count
from replayer.paths import is_folder
from replayer.plan import PlanSummary
from replayer.plan.likeness import LIMIT_POINTS, Likeness, Row, calls_of, compare_calls
from replayer.plan.summary import TransactionSummary
from replayer.scenario.problems import nearest_hint
from replayer.trace import find_trace, load_census

__all__ = ["AgainstError", "compare_with_traces", "render_likeness"]

COLUMN = 27


class AgainstError(ReplayerError):
    """What is to be compared cannot be found out."""


@dataclass(frozen=True)
class _Pair:
    """A transaction of the plan, if one is named, and requests of a trace."""

    transaction: str | None
    trace: str
    label: str | None


def compare_with_traces(
    summary: PlanSummary, words: Sequence[str], without: Collection[str] = ()
) -> list[Likeness]:
    """Compare transactions of a plan with the requests of traces.

    Args:
        summary: Of the plan.
        words: ``[TRANSACTION=]TRACE[:LABEL]`` each.
        without: Calls to leave out.

    Raises:
        AgainstError: There is no such transaction, or it is not said which one is meant; or none
            of them has a call that is to be left out.
        TraceError: There is no such trace, or it has no such request.
    """
    pairs = [_find(summary, word) for word in words]
    _check_without(without, {name for pair in pairs for name in calls_of(*pair)})
    return [compare_calls(said, census, without) for said, census in pairs]


def render_likeness(found: Likeness, word: str) -> Iterator[str]:
    """Yield the lines of one comparison."""
    many = f"{format_count(found.requests)} request{'s' * (found.requests != 1)}"
    yield f"{found.transaction} against {word.removeprefix(f'{found.transaction}=')} ({many})"
    yield f"{'':<{COLUMN}} {'plan':>10} {'trace':>10} {'points':>8}"
    for row in found.rows:
        mark = "  <" if abs(row.difference) > LIMIT_POINTS else ""
        yield (
            f"{row.what:<{COLUMN}} {row.plan:>8.1f} % {row.trace:>8.1f} %"
            f" {row.difference:>+8.1f}{mark}"
        )
    for row in found.amounts:
        yield f"{row.what:<{COLUMN}} {_amount(row.plan)} {_amount(row.trace)}"
    if found.left_out:
        words = ", ".join(f"{op} {_amount(count).strip()}" for op, count in found.left_out.items())
        yield f"{'not compared':<{COLUMN}} {words}: plans have no such call"
    if found.ends:
        words = ", ".join(f"{op} {_amount(count).strip()}" for op, count in found.ends.items())
        yield f"{'only find the end':<{COLUMN}} {words}: the trace has none of these"
    yield _verdict(found)


def _verdict(found: Likeness) -> str:
    row = found.largest
    said = f"{abs(row.difference):.1f} points ({row.what})"
    if found.alike:
        return f"alike: the largest difference is {said}, the limit {LIMIT_POINTS:g}"
    return f"not alike: {_many_over(found.rows)} by more than {LIMIT_POINTS:g} points, most {said}"


def _many_over(rows: Sequence[Row]) -> str:
    over = sum(abs(row.difference) > LIMIT_POINTS for row in rows)
    return f"{over} share{'s differ' if over != 1 else ' differs'}"


def _amount(value: float) -> str:
    return f"{value:>10,.0f}" if value >= 100 or value == round(value) else f"{value:>10,.1f}"  # noqa: PLR2004 - shorter


def _check_without(without: Collection[str], known: Collection[str]) -> None:
    for call in without:
        if call not in known:
            message = f"--without {call}: neither the transaction nor the trace has such a call"
            if not known:
                message = f"--without {call} is without effect: nothing is compared"
            hint = nearest_hint(call, sorted(known), kind="calls") if known else "add --against"
            raise AgainstError(message, hint=hint)


def _find(summary: PlanSummary, word: str) -> tuple[TransactionSummary, dict[str, Any]]:
    """Return what a word of --against means: a transaction and the census of a trace."""
    pair = _parse(word)
    name = pair.transaction or _only_one(summary, word)
    said = next((each for each in summary.transactions if each.name == name), None)
    if said is None:
        known = ", ".join(each.name for each in summary.transactions)
        message = f"--against {word}: {summary.name} has no transaction {name}"
        raise AgainstError(message, hint=f"it has {known}")
    trace = find_trace(pair.trace, Path.cwd())
    return said, load_census(trace, pair.label)


def _only_one(summary: PlanSummary, word: str) -> str:
    used = [each.name for each in summary.transactions if each.share]
    if len(used) == 1:
        return used[0]
    message = f"--against {word}: {summary.name} has {len(used)} transactions in its mix"
    raise AgainstError(message, hint=f"say which: --against {used[0]}={word}")


def _parse(word: str) -> _Pair:
    name, equals, rest = word.partition("=")
    if not equals or "/" in name:
        name, rest = "", word
    path, colon, label = rest.partition(":")
    if not colon or is_folder(Path(rest)):
        path, label = rest, ""
    if not path:
        message = f"--against {word}: a trace is missing"
        raise AgainstError(message, hint="write [TRANSACTION=]TRACE[:LABEL]")
    return _Pair(name or None, path, label or None)
