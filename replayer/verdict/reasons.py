"""Why a run proves nothing good: the client, too little was measured, or the target broke.

A target breaks when it has no space, is read-only or is gone. Such errors say nothing about the
program of a scenario or the speed of a file system: the run must be repeated.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from replayer.measure.health import Health, saturated, say_saturated
from replayer.measure.neighbour import why_not_as_asked
from replayer.measure.pacing import cut_share, say_cut, say_unbegun, unbegun_share
from replayer.measure.record import RunRecord
from replayer.measure.summary import OutcomeSummary, RoundSummary, Summary, TargetSummary
from replayer.measure.units import format_count, format_many, format_time_ns

_MEANINGS: Mapping[str, str] = {
    "ENOSPC": "there was no space or no inode left",
    "EDQUOT": "the quota was used up",
    "EROFS": "it was read-only",
    "ESTALE": "what was open was gone from the server",
    "ENOTCONN": "the mount was gone",
    "ECONNABORTED": "the mount was gone",
    "EHOSTDOWN": "the server was down",
    "ETIMEDOUT": "the server did not answer",
    "EIO": "the mount could not read or write",
}


def breakages_among(outcomes: Iterable[OutcomeSummary]) -> Counter[str]:
    """Count the unexpected outcomes that say so, by their errno names."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        if not outcome.expected and outcome.outcome in _MEANINGS:
            found[outcome.outcome] += outcome.count
    return found


def say_breakages(target: TargetSummary) -> str:
    """Say in a sentence what broke on a target, worst first."""
    found = breakages_among(each for op in target.overall.ops for each in op.outcomes)
    told = (
        f"{_MEANINGS[name]} ({format_count(count)} calls ended with {name})"
        for name, count in found.most_common()
    )
    return f"{target.name} broke during the run: {', '.join(told)}"


UNBEGUN_SHARE = 0.01
"""Chosen: one transaction in a hundred that never began would be the p99 that is not told."""
CUT_SHARE = UNBEGUN_SHARE
"""So would a transaction that never ended: a call in it waited for longer than its turn."""


def find_reasons(record: RunRecord, summary: Summary) -> Iterator[str]:
    """Yield in sentences why a run is inconclusive."""
    if record.status in _UNFINISHED:
        yield _UNFINISHED[record.status]
    if record.run.health is not None:
        yield from _of_the_client(record.run.health)
        yield from _of_users_given_up(record.run.health, summary)
    yield from _of_the_neighbour(record)
    yield from _of_the_duet(record)
    yield from record.damage
    for target in summary.targets:
        if unbegun_share(target.overall) > UNBEGUN_SHARE:
            yield say_unbegun(record.run.load, target)
        if cut_share(target.overall) > CUT_SHARE:
            yield say_cut(target)
        if not record.damage:
            yield from (*_without_success(record, target), *_without_call(target))
    if record.losses.total and record.status == "finished":
        yield f"{record.losses.total} damaged lines in the run folder could not be read"


def _without_success(record: RunRecord, target: TargetSummary) -> Iterator[str]:
    """Yield why nothing was measured; calls count where a locustfile has no transaction."""
    overall = target.overall
    times = [found.latency for found in overall.transactions]
    if any(each.count for each in times or [op.time for op in overall.outside]):
        return
    nothing = f"no transaction succeeded on {target.name} in the measured phase"
    load, warmed = record.run.load, _warmed(record, target)
    each = load.transactions_per_user
    if each is not None and warmed >= each * load.users * load.rounds:
        nothing += (
            f": the {format_many(each, 'transaction')} of each user ended in the warm-up "
            f"({load.warm_up_s:g} s); leave warm_up out, or give more iterations"
        )
    yield nothing


def _without_call(target: TargetSummary) -> Iterator[str]:
    """Yield which measured phases had no file call, and the transactions that ended in them."""
    nothing = f"no file call was made on {target.name} in the measured phase"
    if target.overall.called:
        for part in target.rounds:
            if not part.called:
                yield f"{nothing} of round {(part.number or 0) + 1}{_ended(part)}"
    elif target.overall.without_call:  # else nothing ended: that is told already
        yield f"{nothing}{_ended(target.overall)}"


def _ended(part: RoundSummary) -> str:
    names = part.without_call
    return f": {', '.join(names)} ended without one" if names else ""


def _warmed(record: RunRecord, target: TargetSummary) -> int:
    """Count the transactions that ended in the warm-up."""
    return sum(
        histogram.count
        for key, histogram in record.log.histograms.items()
        if key.segment.phase == "warm-up"
        and key.segment.target == target.index
        and key.op == "transaction"
    )


def _of_the_client(health: Health) -> Iterator[str]:
    if saturated(health):
        yield say_saturated(health)
    if health.stood_still_ns:
        yield (
            f"the client stood still for {format_time_ns(health.stood_still_ns)}: figures may be "
            "its own, not the file system's"
        )


def _of_the_duet(record: RunRecord) -> Iterator[str]:
    """Yield why two targets cannot be compared that were measured at the same time."""
    run = record.run
    if run.duet is None or (run.health is not None and saturated(run.health)):
        return  # that the client was saturated is told already
    why = run.duet.why_not(tuple(target.name for target in run.targets), run.health)
    if why is not None:
        yield why


def _of_users_given_up(health: Health, summary: Summary) -> Iterator[str]:
    """Yield that users hung to the end; fio and older run folders do not say since when."""
    if not health.users_given_up:
        return
    ages = [op.time.unfinished_ns for target in summary.targets for op in target.overall.ops]
    oldest_ns = max(filter(None, ages), default=None)
    known = (
        "their last calls are in no figure"
        if oldest_ns is None
        else f"the oldest call had lasted {format_time_ns(oldest_ns)}, and counts in max alone"
    )
    yield f"{health.users_given_up} users hung in a call: {known}"


def _of_the_neighbour(record: RunRecord) -> Iterator[str]:
    """Yield where the load beside the measured one was not what was asked for."""
    neighbour = record.run.neighbour
    if neighbour is None or record.status in _UNFINISHED:
        return
    names = {target.index: target.name for target in record.run.targets}
    for pair in neighbour.pairs:
        done = neighbour.done_in(pair.beside)
        why = "it had no turn" if done is None else why_not_as_asked(done)
        if why is not None:
            yield f"the neighbour of {names[pair.beside]} was not {neighbour.says}: {why}"


_UNFINISHED = {
    "running": "the run has not ended yet",
    "interrupted": "the run was interrupted",
    "failed": "the run failed before its end",
    "killed": "the run was killed: only what it had written by then is here",
}
