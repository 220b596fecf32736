"""The answer of a run or a comparison, in sentences: which target, by how much, how sure.

From figures that are ranked already. The first sentence decides, or says why nothing is decided.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from replayer.measure.health import saturated
from replayer.measure.run import Run
from replayer.measure.summary import Summary
from replayer.measure.units import format_count, format_ratio, format_share, format_time_ns
from replayer.report.claims import CLAIM_SAMPLES, enumerated
from replayer.report.document import Claim, ComparedFigure, ComparisonRow, Unranked
from replayer.report.ranking import FigureName, RunRanking
from replayer.verdict.judgement import Verdict

FAR = 2.0  # chosen: users of a busy client wait in calls on all targets, and ratios shrink
MOST_SUBJECTS = 3  # chosen: kinds of work that have a sentence each
_TOLD: tuple[FigureName, ...] = ("p50", "p95")
DIFFERS: frozenset[Claim] = frozenset({"differs", "differs, few rounds"})


def answer(ranking: RunRanking, verdict: Verdict, summary: Summary, run: Run) -> Iterator[str]:
    """Yield what a run says to who has to decide by it."""
    health = run.health
    if verdict.reasons:
        yield f"cannot be decided here: {_say_busy(run) or verdict.reasons[0]}"
        if health is not None and saturated(health):
            yield from islice(_say_far_apart(ranking), 1)
        return
    failed = {each.target for each in verdict.judgements if each.outcome == "fail"}
    good = [target.name for target in summary.targets if target.name not in failed]
    if failed and good:
        verb = "keeps" if len(good) == 1 else "keep"
        yield f"only {enumerated(good)} {verb} all limits"
    if len(summary.targets) == 1:
        yield from _say_times(ranking, summary)
    else:
        yield from decide(ranking.figures, ranking.unranked, ranking.mix)


def _say_far_apart(ranking: RunRanking) -> Iterator[str]:
    """Yield what a busy client cannot explain: it delays the calls on all targets alike."""
    for each in ranking.figures:
        far = [row for row in _worse(each) if row.ratio_low and row.ratio_low >= FAR]
        if each.figure == "p50" and each.kind != "op" and far:
            takes = (
                "transactions take" if each.kind == "all transactions" else f"{each.subject} takes"
            )
            yield f"but the client cannot explain that {takes} {_ratios(far, sure='; 95 %')}"


def _say_busy(run: Run) -> str | None:
    """Say how much of the CPUs others used, where that kept the client from measuring."""
    health = run.health
    if health is None or not saturated(health) or health.blamed != "others":
        return None
    who = "other programs" if run.neighbour is None else "the neighbour and other programs"
    return f"{who} used {format_share(health.others_cpu_share or 0)} of the CPUs"


def begin_line(sentence: str) -> str:
    """Return a sentence that begins a line; a name keeps its small letter."""
    first = sentence.split(maxsplit=1)[0]
    return f"{sentence[0].upper()}{sentence[1:]}" if first.isalpha() else sentence


def _say_times(ranking: RunRanking, summary: Summary) -> Iterator[str]:
    """Say what the users of a single target wait."""
    (target,) = summary.targets
    if ranking.pooled:
        (pooled,) = ranking.pooled
        what, p50_ns, p95_ns = "the transactions", pooled.p50_ns, pooled.p95_ns
    elif target.overall.transactions:
        first = target.overall.transactions[0]
        what, p50_ns, p95_ns = f"the {first.name}", first.latency.p50_ns, first.latency.p95_ns
    else:
        return
    if p50_ns is not None:
        tail = "" if p95_ns is None else f", 95 of 100 {format_time_ns(p95_ns)} or less"
        yield f"half of {what} take {format_time_ns(p50_ns)} or less{tail}"


def decide(
    figures: Sequence[ComparedFigure], unranked: Sequence[Unranked], mix: str
) -> Iterator[str]:
    """Yield which target to use by the figures of several, or that they show no difference.

    By all transactions where those were pooled (``mix`` says which those are); else by each kind of
    work that ran in turn.
    """
    ranked = [each for each in figures if each.kind != "op"]
    pooled = [each for each in ranked if each.kind == "all transactions"]
    subjects = list(dict.fromkeys(each.subject for each in pooled or ranked))
    if not subjects:
        yield from _say_too_few(unranked)
        return
    for subject in subjects[:MOST_SUBJECTS]:
        own = {each.figure: each for each in ranked if each.subject == subject}
        told = list(_decide_one(f"{mix} take" if pooled else f"{subject} takes", own))
        yield from told if len(subjects) == 1 else (f"{subject}: {told[0]}",)
    if pooled and not any(_worse(each) for each in pooled if each.figure in _TOLD):
        yield from islice(_say_single_ones(ranked), MOST_SUBJECTS)
    if len(subjects) > MOST_SUBJECTS:
        yield f"{len(subjects) - MOST_SUBJECTS} more are in the details"


def _say_single_ones(ranked: Sequence[ComparedFigure]) -> Iterator[str]:
    """Yield which transactions differ, where all of them together do not."""
    for each in ranked:
        if each.kind == "transaction" and each.figure == "p50" and (worse := _worse(each)):
            yield f"but {each.subject} takes {_ratios(worse)}"


def _say_too_few(unranked: Sequence[Unranked]) -> Iterator[str]:
    lacking = next((each for each in unranked if each.kind != "op"), None)
    if lacking is None:
        yield "nothing that all targets have was measured"
    elif not any(each.samples for each in lacking.lacking):
        yield f"nothing has succeeded on {enumerated(lacking.labels)}: no times can be compared"
    else:
        fewest = min(lacking.lacking, key=lambda each: each.samples)
        what = "transactions" if lacking.kind == "all transactions" else lacking.subject
        yield (
            f"too little was measured to compare: {format_count(fewest.samples)} {what} succeeded "
            f"on {fewest.label}, {CLAIM_SAMPLES} are needed; measure longer (-t)"
        )


def _decide_one(takes: str, figures: Mapping[FigureName, ComparedFigure]) -> Iterator[str]:
    """Yield what the medians decide, then what the slow ones add to it."""
    shown = [figures[name] for name in _TOLD if name in figures]
    if not shown:
        yield "too few have succeeded to compare their times; measure longer (-t)"
        return
    first, slow = shown[0], shown[-1]
    worse, slower = _worse(first), [] if slow is first else _worse(slow)
    quick = [row.label for row in first.standings if row not in worse]
    best = slow.standings[0].label
    if worse:
        between = "" if len(quick) == 1 else ", between which no difference is shown"
        yield f"use {' or '.join(quick)}{between}: {takes} {_ratios(worse, sure='; 95 %')}"
        if slower:
            if best in quick:
                yield f"the slow ones (p95) take {_ratios(slower)}"
            else:
                yield f"but {best} for the slow ones (p95): they take {_ratios(slower)}"
    elif slower:
        yield f"use {best} for the slow ones (p95): they take {_ratios(slower, sure='; 95 %')}"
        yield f"of the median {_say_no_difference(first)}"
    else:
        yield _say_no_difference(first)


def _worse(figure: ComparedFigure) -> list[ComparisonRow]:
    return [row for row in figure.standings if row.claim in DIFFERS]


def _ratios(rows: Sequence[ComparisonRow], sure: str = "") -> str:
    """Return ``1.40 times as long on a (1.20 to 1.60; 95 %) and 3 times on c (2.5 to 3.4)``."""
    told = []
    for place, row in enumerate(rows):
        longer = f"{format_ratio(row.ratio or 0)} times{'' if place else ' as long'}"
        told.append(f"{longer} on {row.label}{_interval(row, '' if place else sure)}")
    return enumerated(told)


def _interval(row: ComparisonRow, sure: str) -> str:
    if row.ratio_low is None or row.ratio_high is None:
        return ""
    return f" ({format_ratio(row.ratio_low)} to {format_ratio(row.ratio_high)}{sure})"


def _say_no_difference(figure: ComparedFigure) -> str:
    """Say that none is shown, and from which size on one would have been."""
    labels = [row.label for row in figure.standings]
    short = [row.label for row in figure.standings if row.claim == "too few seconds"]
    if short:
        return f"too few seconds were measured to compare {enumerated(labels)}; measure longer (-t)"
    widths = [
        max(row.ratio_high / row.ratio, row.ratio / row.ratio_low) - 1
        for row in figure.standings
        if row.ratio and row.ratio_low and row.ratio_high
    ]
    noticed = f": one above {format_share(max(widths))} would have been" if widths else ""
    return f"no difference is shown between {enumerated(labels)}{noticed}"
