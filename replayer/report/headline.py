"""The verdict in a sentence for somebody who decides and reads nothing else.

Words only; the figures behind them follow in every form of report.
"""

from collections.abc import Iterator
from itertools import islice

from replayer.errors import EXIT_ENVIRONMENT
from replayer.measure import Sweep, TransactionSummary, find_sweeps, format_time_ns
from replayer.report.description import describe_judgement
from replayer.report.document import Document
from replayer.report.findings import sentences


def say_verdict(document: Document) -> str:
    """Say in a sentence what the run proves."""
    verdict = document.verdict
    judged = verdict.judgements
    if verdict.exit_code == EXIT_ENVIRONMENT:
        return f"Do not decide by this run: {verdict.reasons[0]}"
    if verdict.outcome == "fail":
        missed = [found for found in judged if found.outcome == "fail"]
        first = describe_judgement(missed[0], len(document.targets))
        return f"Not good enough: {len(missed)} of {len(judged)} thresholds failed, first {first}"
    if verdict.outcome == "inconclusive":
        open_ones = [found.says for found in judged if found.outcome == "inconclusive"]
        why = next(iter((*verdict.reasons, *open_ones)), "too little was measured")
        return f"Do not decide by this run: {why}"
    kept = f"{len(judged)} of {len(judged)} thresholds hold"
    alarm = next(say_alarms(document), None)
    if alarm is not None:
        limits = kept if judged else "no thresholds were set"
        return f"Look closer before you decide: {limits}, but there was a {alarm}"
    if not judged:
        return "No problem was found; no thresholds were set"
    return f"Good enough: {kept}"


def say_figures(document: Document) -> Iterator[str]:
    """Say in a sentence each what users of a target wait.

    For what they do most; where that is one size of several, for the smallest and the largest.
    """
    for target in document.summary.targets:
        found = {item.name: item for item in target.overall.transactions}
        most = max(found.values(), key=lambda item: item.count, default=None)
        if most is None:
            continue
        sweep = next((each for each in find_sweeps([*found]) if most.name in each.sizes), None)
        ends = [most] if sweep is None else [found[name] for name in _ends(sweep)]
        waits = "; ".join(filter(None, map(_wait, ends)))
        if waits:
            yield f"{target.name}: {waits}"


def _ends(sweep: Sweep) -> tuple[str, str]:
    smallest, *_, largest = sweep.sizes
    return smallest, largest


def _wait(transaction: TransactionSummary) -> str | None:
    half, slow = transaction.latency.p50_ns, transaction.latency.p95_ns
    if half is None:
        return None
    tail = f", p95: {format_time_ns(slow)}" if slow is not None else ""
    return f"{transaction.name} p50: {format_time_ns(half)}{tail}"


def say_alarms(document: Document) -> Iterator[str]:
    """Say in a sentence what makes the figures as a whole misleading, if anything: the worst."""
    alarms = (found for found in sentences(document.analysis) if found.weight == "alarm")
    yield from (f"{found.label}: {found.short or found.text}" for found in islice(alarms, 1))
