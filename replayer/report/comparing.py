"""Comparing targets: check that the work is alike, rank the figures, say the result.

Reads records and nothing else; prints nothing. Everything else in which contenders differ (mount,
kernel, cache, users) is listed, and marked if it may decide about figures.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from replayer.analysis.acknowledgement import find_acknowledged
from replayer.analysis.resampling import DRAWS
from replayer.errors import ReplayerError
from replayer.measure.cpus import count_cpus
from replayer.measure.facts import MachineFacts
from replayer.measure.record import RunRecord
from replayer.measure.summarise import summarise
from replayer.measure.summary import Summary
from replayer.measure.units import format_bytes, format_duration
from replayer.report.answer import decide
from replayer.report.claims import claim_notes
from replayer.report.composition import answer_of
from replayer.report.description import each_once
from replayer.report.document import ComparedFigure, Comparison, Contender, Difference, Unranked
from replayer.report.duet import why_not_compared, with_duet
from replayer.report.plan_changes import plan_changes, same_work, users_of, work_of
from replayer.report.ranking import Side, entrants_of, rank, rank_entrants, rank_pairs
from replayer.report.replay import pause_warnings
from replayer.verdict.judgement import Verdict, judge


def _facts(sides: Sequence[Side]) -> Iterator[Difference]:
    for what, decides, fact in _FACTS:
        values = tuple(fact(side) for side in sides)
        if len(set(values)) > 1:
            yield Difference(what=what, values=values, decides=decides)


def _options(sides: Sequence[Side]) -> Iterator[Difference]:
    """Yield the mount options that not all have, without those that all have."""
    own = [side.target.mounts[0].all_options for side in sides]
    common = set(own[0]).intersection(*own[1:])
    values = tuple(
        ",".join(option for option in options if option not in common) or "none beside the common"
        for options in own
    )
    if len(set(values)) > 1:
        yield Difference(what="mount options", values=values, decides=True)


def _promise(side: Side) -> str:
    promise = side.target.guarantee
    return f"write: {promise.write}, close: {promise.close}, fsync: {promise.fsync}"


def _all(side: Side, fact: Callable[[MachineFacts], str]) -> str:
    """Return what the machines of all its processes have; most often that is one and the same."""
    return each_once(map(fact, side.record.run.machines))


_FACTS: tuple[tuple[str, bool, Callable[[Side], str]], ...] = (
    ("work", True, lambda side: f"{side.record.run.plan.name} {work_of(side.record)[:12]}"),
    ("seed", True, lambda side: str(side.record.run.plan.seed)),
    ("users", True, lambda side: users_of(side.record)),
    ("pace", True, lambda side: f"{side.record.run.load.loop}: {side.record.run.load.pace}"),
    ("cache", True, lambda side: side.record.run.cache.asked),
    ("cache procedure", True, lambda side: side.record.run.cache.procedure),
    ("acknowledged at", True, _promise),
    ("confinement", True, lambda side: side.target.confinement),
    ("file system", False, lambda side: side.target.mounts[0].filesystem),
    ("source", False, lambda side: side.target.mounts[0].source),
    ("mount points", False, lambda side: str(len(side.target.mounts))),
    ("kernel", True, lambda side: _all(side, lambda machine: machine.kernel)),
    ("client", True, lambda side: _all(side, lambda machine: machine.host)),
    ("CPUs", True, lambda side: str(count_cpus(side.record.run.machines))),
    ("memory", True, lambda side: _all(side, lambda machine: format_bytes(machine.memory_bytes))),
    ("in a container", False, lambda side: _all(side, lambda machine: _yes(machine.container))),
    ("replayer", True, lambda side: _all(side, lambda machine: machine.replayer)),
    ("rounds", False, lambda side: str(side.record.run.load.rounds)),
    ("duration", False, lambda side: _seconds(side.record.run.load.duration_s)),
    ("warm-up", False, lambda side: _seconds(side.record.run.load.warm_up_s)),
)


def _yes(fact: object) -> str:
    return "yes" if fact else "no"


def _seconds(value: float | None) -> str:
    return "until done" if value is None else f"{value:g} s"


MOST_CONTENDERS = 24  # chosen: more than a page can hold side by side
LENGTH_FACTOR = 1.5  # chosen: ends of rounds alone make the measured times differ by less

Plans = Literal["same plan", "different plans"]
_Found = ComparedFigure | Unranked


def compare(records: Sequence[RunRecord], plans: Plans = "same plan") -> Comparison:
    """Compare the targets of one run, or of several; of different plans only if asked for.

    Raises:
        ReplayerError: The plans differ, or there is nothing to compare with.
    """
    records = [with_duet(record) for record in records]
    sides = _sides(records)
    _check(records, sides, plans)
    summaries = {id(record): summarise(record) for record in records}
    entrants = entrants_of(sides, summaries)
    verdicts = {id(record): judge(record, summaries[id(record)]) for record in records}
    contenders = tuple(
        _contender(side, summaries[id(side.record)], verdicts[id(side.record)]) for side in sides
    )
    ranking, refused = rank_entrants(entrants), _why_not(records)
    if refused:
        ranking = replace(ranking, figures=(), unranked=())
    differing = [*_options(sides), *_facts(sides)]
    differences = tuple(sorted(differing, key=lambda item: not item.decides))
    return Comparison(
        plan=", ".join(dict.fromkeys(record.run.plan.name for record in records)),
        fingerprints=tuple(dict.fromkeys(record.run.plan.fingerprint for record in records)),
        contenders=contenders,
        headline=refused
        or tuple(_say_losses(records, summaries, verdicts))
        or tuple(decide(ranking.figures, ranking.unranked, ranking.mix)),
        differences=differences,
        compared=ranking.figures,
        unranked=ranking.unranked,
        method=tuple(_method(ranking.figures, contenders, ranking.mix)),
        cautions=(*_unsound(records, verdicts), *_cautions(records, contenders, differences)),
    )


def _why_not(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return why a duet among the runs keeps all of them from being compared; empty: none does."""
    found = (why_not_compared(record) for record in records)
    return tuple(f"cannot be decided here: {why}" for why in found if why is not None)


def _say_losses(
    records: Sequence[RunRecord], summaries: Mapping[int, Summary], verdicts: Mapping[int, Verdict]
) -> Iterator[str]:
    """Yield what runs with neighbours say: nobody can use the setting beside one instead."""
    for record in records:
        if record.run.neighbour is not None:
            summary, verdict = summaries[id(record)], verdicts[id(record)]
            ranking, pairs = rank(record, summary), rank_pairs(record, summary)
            yield from answer_of(record, summary, verdict, ranking, pairs)


def _sides(records: Sequence[RunRecord]) -> list[Side]:
    names = Counter(target.name for record in records for target in record.run.targets)
    folders = Counter(record.folder.name for record in records)
    sides = []
    for record in records:
        own = record.folder.name if folders[record.folder.name] == 1 else record.run.id
        sides += [
            Side(target.name if names[target.name] == 1 else f"{own}/{target.name}", record, target)
            for target in record.run.targets
        ]
    return sides


def _check(records: Sequence[RunRecord], sides: Sequence[Side], plans: Plans) -> None:
    labels = Counter(side.label for side in sides)
    if len(labels) < len(sides):
        raise ReplayerError("the same run is named twice", hint="name each run folder once")
    if not 1 < len(sides) <= MOST_CONTENDERS:
        message = f"a comparison needs 2 to {MOST_CONTENDERS} targets, got {len(sides)}"
        raise ReplayerError(message, hint="name several runs, or one run with several targets")
    first = records[0]
    other = next((each for each in records if not same_work(first, each)), None)
    if other is not None and plans == "same plan":
        message = (
            f"{first.folder.name} ({first.run.plan.fingerprint[:12]}) and {other.folder.name} "
            f"({other.run.plan.fingerprint[:12]}) did different work: they differ in "
            f"{plan_changes(first, other)}"
        )
        raise ReplayerError(message, hint="add --different-plans to compare them all the same")


def _contender(side: Side, summary: Summary, verdict: Verdict) -> Contender:
    record = side.record
    own = summary.targets[side.target.index]
    acknowledged = find_acknowledged(record, summary)
    return Contender(
        label=side.label,
        run=record.run.id,
        folder=str(record.folder),
        began=record.run.began,
        verdict=verdict.outcome,
        target=side.target,
        measured_s=own.overall.measured_s,
        rounds=len(own.rounds),
        errors=own.overall.errors,
        warnings=(*pause_warnings(record.run.replay, (own,)), *record.run.warnings),
        acknowledged=tuple(each for each in acknowledged if each.target == side.target.name),
    )


def _method(
    compared: Sequence[ComparedFigure], contenders: Sequence[Contender], mix: str
) -> Iterator[str]:
    fewest = min(contender.rounds for contender in contenders)
    if any(ranked.kind == "all transactions" for ranked in compared):
        yield (
            f"all transactions: percentiles of the {mix} pooled, in which each transaction has the "
            "same share for all contenders (the mean of its shares with them); of throughputs the "
            "sum"
        )
    yield (
        f"intervals hold 95 of 100 of {DRAWS} resamplings: rounds are drawn again with replacement "
        "(for all targets of a run the same ones), and in each round blocks of neighbouring "
        "seconds; with few rounds they are widened as Student's t is, and with more than two "
        "contenders so that those of a figure hold together"
    )
    claims = {standing.claim for ranked in compared for standing in ranked.standings}
    yield from claim_notes(fewest, claims)


def _unsound(records: Sequence[RunRecord], verdicts: Mapping[int, Verdict]) -> Iterator[str]:
    """Yield what keeps a run, and so the comparison, from proving anything."""
    for record in records:
        reasons = list(verdicts[id(record)].reasons)
        if record.run.failure is not None:
            reasons.append(record.run.failure)
        yield from (f"{record.folder.name}: {reason}" for reason in reasons)


def _lengths(contenders: Sequence[Contender]) -> Iterator[str]:
    lasted = {contender.label: contender.measured_s for contender in contenders}
    if max(lasted.values()) > LENGTH_FACTOR * max(min(lasted.values()), 1e-9):
        each = ", ".join(f"{label} {format_duration(seconds)}" for label, seconds in lasted.items())
        yield (
            f"the contenders were not measured for as long as each other ({each}): the longer one "
            "has more of what is rare or comes late, such as full caches and used up credits"
        )


def _cautions(
    records: Sequence[RunRecord], contenders: Sequence[Contender], differences: Sequence[Difference]
) -> Iterator[str]:
    if len(records) > 1:
        began = ", ".join(dict.fromkeys(contender.began for contender in contenders))
        yield (
            f"the runs were not made in turns but at different times ({began}): what changed on "
            "the client, the network or the servers in between is in the figures"
        )
    yield from _lengths(contenders)
    deciding = [item.what for item in differences if item.decides]
    if deciding:
        yield f"the contenders differ in {', '.join(deciding)}: see the differences"
    for contender in contenders:
        if contender.errors:
            yield f"{contender.label}: {contender.errors:,} errors; times are of what succeeded"
        pauses = (each for each in contender.warnings if each.kind == "recorded pauses")
        yield from (f"{contender.label}: {each.message}" for each in pauses)
    said: set[str] = set()
    for record in records:
        for warning in record.run.warnings:
            text = f"{record.folder.name}: {warning.message}"
            if text not in said:
                said.add(text)
                yield text
