"""``replayer check``: what a scenario would run, without touching a mount."""

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replayer.errors import ReplayerError
from replayer.measure.health import LOOPS
from replayer.measure.run import DatasetPart, part_in_words
from replayer.measure.units import format_bytes, format_count, format_many, format_time_ns
from replayer.paths import is_folder
from replayer.plan.compile import compile_plan
from replayer.plan.likeness import LIMIT_POINTS, Likeness, Row, calls_of, compare_calls
from replayer.plan.summary import DatasetSummary, PlanSummary, TransactionExpectation, describe_plan
from replayer.plan.traces import TraceSummary
from replayer.report.style import Style, fold
from replayer.run.options import read_seed
from replayer.scenario.document import nearest_hint
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import Scenario, pace_facts, pace_in_words
from replayer.trace.reading import load_statistics
from replayer.trace.shipped import find_trace
from replayer.verdict.threshold import DEFAULT, Names, check_names, parse_threshold, with_default

COLUMN = 27


@dataclass(frozen=True)
class _Pair:
    """A transaction of the plan, if one is named, and requests of a trace."""

    transaction: str | None
    trace: str
    label: str | None


def compare_with_traces(
    summary: PlanSummary, words: Sequence[str], without: Collection[str] = ()
) -> list[Likeness]:
    """Compare transactions of a plan with requests of traces: ``[TRANSACTION=]TRACE[:LABEL]``.

    Raises:
        ReplayerError: There is no such transaction, or it is not said which one is meant; or none
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
            message = f"--without {call}: neither the transaction nor the trace has this call"
            if not known:
                message = f"--without {call} has no effect: nothing is compared"
            hint = nearest_hint(call, sorted(known), kind="calls") if known else "add --against"
            raise ReplayerError(message, hint=hint)


def _find(summary: PlanSummary, word: str) -> tuple[TransactionExpectation, dict[str, Any]]:
    """Return what a word of --against means: a transaction and the census of a trace."""
    pair = _parse(word)
    name = pair.transaction or _only_one(summary, word)
    said = next((each for each in summary.transactions if each.name == name), None)
    if said is None:
        known = ", ".join(each.name for each in summary.transactions)
        message = f"--against {word}: {summary.name} has no transaction {name}"
        raise ReplayerError(message, hint=f"it has {known}")
    trace = find_trace(pair.trace, Path.cwd())
    return said, load_statistics(trace, pair.label)


def _only_one(summary: PlanSummary, word: str) -> str:
    used = [each.name for each in summary.transactions if each.share]
    if len(used) == 1:
        return used[0]
    message = f"--against {word}: {summary.name} has {len(used)} transactions in its mix"
    raise ReplayerError(message, hint=f"give one of them: --against {used[0]}={word}")


def _parse(word: str) -> _Pair:
    name, equals, rest = word.partition("=")
    if not equals or "/" in name:
        name, rest = "", word
    path, colon, label = rest.partition(":")
    if not colon or is_folder(Path(rest)):
        path, label = rest, ""
    if not path:
        message = f"--against {word}: a trace is missing"
        raise ReplayerError(message, hint="write [TRANSACTION=]TRACE[:LABEL]")
    return _Pair(name or None, path, label or None)


EXIT_NOT_ALIKE = 1
NAME_WIDTH = 13
WIDTH = 80
"""Chosen: fits into a terminal and into a pasted message."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario's file or name")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a value of the scenario, such as docroot.files=5000",
    )
    parser.add_argument("-u", "--users", type=int, metavar="N", help="number of users")
    parser.add_argument("--seed", type=read_seed, metavar="N", help="seed of every random draw")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="[TRANSACTION=]TRACE[:LABEL]",
        help="compare the calls of a transaction with those of a trace's requests (repeatable); "
        "exits with 1 if a share differs by more than 2 percentage points",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CALL",
        help="leave a kind of call out of the comparison, such as read of an archive (repeatable)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Check a scenario and print what it would do."""
    scenario = load_scenario(arguments.scenario, arguments.overrides)
    plan = compile_plan(scenario, users=arguments.users, seed=arguments.seed)
    summary = describe_plan(plan)
    _check_thresholds(scenario, summary)
    likenesses = compare_with_traces(summary, arguments.against, arguments.without)
    if arguments.json:
        told = {"scenario": scenario.name, "about": scenario.about}
        described = {**told, **summary.as_dict(), "pacing": pace_facts(scenario)}
        if likenesses:
            described["against"] = [found.as_dict() for found in likenesses]
        print(json.dumps(described, indent=2))
    elif likenesses:
        for word, found in zip(arguments.against, likenesses, strict=True):
            print("\n".join((*render_likeness(found, word), "")))
    else:
        print("\n".join(fold(render_summary(scenario, summary), Style.of(sys.stdout))))
    return 0 if all(found.alike for found in likenesses) else EXIT_NOT_ALIKE


def render_summary(scenario: Scenario, summary: PlanSummary) -> Iterator[str]:
    """Yield the lines that describe a plan to a person."""
    yield f"{summary.name}  (plan {summary.fingerprint[:16]}, seed {summary.seed})"
    yield _sentence(scenario, summary)
    yield ""
    width = max(len(transaction.name) for transaction in summary.transactions)
    for transaction in summary.transactions:
        yield from _transaction(transaction, max(width, NAME_WIDTH))
    yield ""
    for dataset in summary.datasets:
        yield _dataset(dataset)
        percent = scenario.parts.get(dataset.name)
        if percent is not None:
            part = DatasetPart(dataset=dataset.name, percent=percent)
            yield f"a part only   {part_in_words(part)}"
    for trace in summary.traces:
        yield from _trace(trace)
    yield (
        f"working set   {format_many(summary.working_set_files, 'file')},"
        f" {format_bytes(summary.working_set_bytes)}"
    )
    yield f"needs         {_needs(summary)}"
    for label, said in (
        ("warning", summary.warning),
        ("verify", summary.verify_limits),
        ("warm-up", summary.warmed),
    ):
        if said is not None:
            yield f"{label:<13} {said}"
    for text, source in _thresholds(scenario):
        added = "  (default)" if source == DEFAULT else ""
        yield f"threshold     {text}{added}"


def _thresholds(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """Return every threshold of a run, and where it is from."""
    return with_default(
        (text, str(scenario.document.origin(("thresholds", index))))
        for index, text in enumerate(scenario.thresholds)
    )


def _check_thresholds(scenario: Scenario, summary: PlanSummary) -> None:
    parsed = [parse_threshold(text, source) for text, source in _thresholds(scenario)]
    targets = tuple(item.target for item in parsed if item.target is not None)
    check_names(parsed, Names(targets, tuple(scenario.transactions), summary.ops))


def _sentence(scenario: Scenario, summary: PlanSummary) -> str:
    loop = LOOPS[summary.pace]
    words = [f"{format_many(summary.users, 'user')}, {loop} loop: {pace_in_words(scenario)}"]
    if summary.warm_up_ns:
        words.append(f"{format_time_ns(summary.warm_up_ns)} warm-up")
    if summary.duration_ns is not None:
        words.append(f"{format_time_ns(summary.duration_ns)} measured on each target")
    if summary.transactions_per_user is not None:
        words.append(f"{format_many(summary.transactions_per_user, 'transaction')} a user")
    return "; ".join(words)


def _transaction(transaction: TransactionExpectation, width: int) -> Iterator[str]:
    ops, failing = transaction.ops_total, transaction.failing_lookups
    line = (
        f"{transaction.name:<{width}} {transaction.share * 100:5.1f} %  {_number(ops)} "
        f"op{'s' * (ops != 1)}, {_number(failing)} lookups expected to fail, reads "
        f"{format_bytes(transaction.bytes_read)}, writes {format_bytes(transaction.bytes_written)}"
    )
    yield line
    row = indent = " " * (width + 2)
    for op, count in sorted(transaction.ops.items(), key=lambda item: -item[1]):
        word = f"{op} {_number(count)}"
        if len(row) + len(word) > WIDTH:
            yield row.rstrip()
            row = indent
        row += word + "  "
    if transaction.ops:
        yield row.rstrip()


def _dataset(dataset: DatasetSummary) -> str:
    copies = f", {format_count(dataset.copies)} copies" if dataset.copies > 1 else ""
    made = "" if dataset.laid_out else ", not laid out"
    links = f", {format_many(dataset.links, 'link')}" if dataset.links else ""
    return (
        f"dataset       {dataset.name}: {format_many(dataset.files, 'file')},"
        f" {format_many(dataset.directories, 'directory', 'directories')}{links},"
        f" {format_bytes(dataset.size_bytes)}{copies}{made}"
    )


def _trace(trace: TraceSummary) -> Iterator[str]:
    own = trace.paths.get("private", 0)
    apart = f", {format_count(own)} paths are private to each user" if own else ""
    yield (
        f"trace         {trace.name}: {format_many(trace.events, 'event')} of"
        f" {format_many(trace.threads, 'thread')}, {format_many(trace.files, 'file')},"
        f" {format_many(trace.directories, 'directory', 'directories')},"
        f" {format_bytes(trace.size_bytes)}{apart}"
    )
    if trace.blind_spots:
        spots = (f"{name} {format_count(count)}" for name, count in trace.blind_spots.items())
        yield f"blind spots   {', '.join(spots)}"


def _needs(summary: PlanSummary) -> str:
    text = (
        f"{format_bytes(summary.space_bytes)} of free space, {format_many(summary.inodes, 'inode')}"
    )
    grows = any(t.bytes_written and t.share for t in summary.transactions)
    if grows and not summary.growth_known:
        return f"{text}, plus what the transactions write"
    return text


def _number(value: float) -> str:
    return format_count(round(value)) if abs(value - round(value)) < 0.05 else f"{value:,.1f}"  # noqa: PLR2004
