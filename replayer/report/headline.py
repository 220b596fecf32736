"""The verdict in a sentence for somebody who decides and reads nothing else.

Words only; the figures behind them follow in every form of report.
"""

from collections.abc import Iterator
from itertools import islice

from replayer.measure import format_time_ns
from replayer.report.description import describe_judgement
from replayer.report.document import Document
from replayer.report.findings import sentences

__all__ = ["say_alarms", "say_figures", "say_verdict"]


def say_verdict(document: Document) -> str:
    """Say in a sentence what the run proves."""
    verdict = document.verdict
    judged = verdict.judgements
    if verdict.outcome == "fail":
        missed = [found for found in judged if found.outcome == "fail"]
        first = describe_judgement(missed[0], len(document.targets))
        are = "is" if len(missed) == 1 else "are"
        how = f"{len(missed)} of {len(judged)} limits {are} missed, the first of them {first}"
        return f"Not good enough: {how}"
    if verdict.outcome == "inconclusive":
        open_ones = [found.says for found in judged if found.outcome == "inconclusive"]
        why = next(iter((*verdict.reasons, *open_ones)), "too little was measured")
        return f"Do not decide by this run: {why}"
    kept = f"every limit that was set is kept ({len(judged)} of {len(judged)})"
    alarm = next(say_alarms(document), None)
    if alarm is not None:
        limits = kept if judged else "no limits were set"
        return f"Look closer before you decide: {limits}, but there was a {alarm}"
    if not judged:
        return "Nothing speaks against these figures; no limits were set that could be missed"
    return f"Good enough: {kept}"


def say_figures(document: Document) -> Iterator[str]:
    """Say in a sentence each what users of a target wait."""
    for target in document.summary.targets:
        most = max(target.overall.transactions, key=lambda item: item.count, default=None)
        if most is not None and most.latency.p50_ns is not None:
            slow = most.latency.p95_ns
            tail = f", 95 of 100 at most {format_time_ns(slow)}" if slow is not None else ""
            half = format_time_ns(most.latency.p50_ns)
            yield f"{target.name}: half of {most.name} take at most {half}{tail}"


def say_alarms(document: Document) -> Iterator[str]:
    """Say in a sentence what makes the figures as a whole misleading, if anything: the worst."""
    alarms = (found for found in sentences(document.analysis) if found.weight == "alarm")
    yield from (f"{found.label}: {found.short or found.text}" for found in islice(alarms, 1))
