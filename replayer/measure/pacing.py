"""Whether transactions began when they were to, ended, and made file calls.

Pure: figures of a summary in, shares and sentences out. Verdicts and reports say the same by them.
"""

from collections.abc import Iterator

from replayer.measure.health import Health, LoadFacts, RunWarning, relief_from_others
from replayer.measure.hlog import CANCELLED
from replayer.measure.summary import (
    RoundSummary,
    Statistics,
    Summary,
    TargetSummary,
    TransactionSummary,
)
from replayer.measure.units import (
    format_count,
    format_many,
    format_seconds,
    format_share,
    format_time_ns,
)

LONGER = 1.05  # chosen: beyond what starting and ending users takes
LONGER_S = 0.1  # chosen: the same for runs of seconds
WAKING_NS = 250e3
"""Chosen: waking the idle CPU of a virtual machine takes some 120 us, which no user feels."""
LATE_SAMPLES = 30  # chosen: one late begin among fewer makes most of their mean
LATE_SHARE = 0.25  # chosen: beyond it a latency is as much the client's as a saturated one's


def unbegun_share(overall: RoundSummary) -> float:
    """Return which part of the transactions that were due never began; 0 when nothing was due."""
    due = _due(overall)
    return overall.unbegun / due if due else 0.0


def cut_share(overall: RoundSummary) -> float:
    """Return how many calls were broken off, per transaction that began (or call, without any)."""
    tries = _begun(overall) or sum(op.count for op in overall.outside) + _cut(overall)
    return _cut(overall) / tries if tries else 0.0


def late_share(load: LoadFacts, transaction: TransactionSummary) -> float:
    """Return which part of a closed loop's latency is none of the file system's: the lag.

    Nothing but their thinking keeps such users from beginning, so who begins late was woken late,
    by this client. 0 where a schedule decides: there a slow transaction delays the next one.
    """
    whole_ns, lag_ns = transaction.latency.mean_ns, transaction.lag.mean_ns
    if load.loop != "closed" or not whole_ns or not lag_ns:
        return 0.0
    return min(lag_ns / whole_ns, 1.0)


def say_unbegun(load: LoadFacts, target: TargetSummary) -> str:
    """Say how many of a target's transactions never began."""
    overall = target.overall
    what = "periods" if load.loop == "paced" else "arrivals"
    return (
        f"{format_count(overall.unbegun)} of {format_count(_due(overall))} {what} on {target.name} "
        "never started: users were busy"
    )


def say_cut(target: TargetSummary) -> str:
    """Say how many calls on a target had not ended when its turn did."""
    cut = _cut(target.overall)
    oldest = max(target.overall.ops, key=lambda op: op.time.unfinished_ns or 0)
    return _say_open(target, format_many(cut, "call"), (oldest.op, oldest.time), cut)


def say_unfinished(target: TargetSummary) -> str | None:
    """Say how many transactions on a target had not ended when its turn did; None: all had."""
    cut = sum(each.cancelled for each in target.overall.transactions)
    if not cut:
        return None
    oldest = max(target.overall.transactions, key=lambda each: each.latency.unfinished_ns or 0)
    return _say_open(target, format_many(cut, "transaction"), (oldest.name, oldest.latency), cut)


def _say_open(target: TargetSummary, what: str, oldest: tuple[str, Statistics], count: int) -> str:
    name, times = oldest
    its, it, counts = "their", f"the oldest, {name},", "they count"
    if count == 1:
        its, it, counts = "its", name, "it counts"
    return (
        f"{what} on {target.name} had not ended when {its} turn did: {it} had lasted "
        f"{format_time_ns(times.unfinished_ns or 0)}; {counts} in max alone, as a bound"
    )


def pacing_warnings(
    load: LoadFacts, summary: Summary, health: Health | None
) -> Iterator[RunWarning]:
    """Yield what keeps figures from being those of the load that was asked for."""
    others = relief_from_others(health)
    for target in summary.targets:
        if target.overall.unbegun:
            yield RunWarning(
                kind="arrivals missed",
                message=f"{say_unbegun(load, target)}; latencies do not include them",
                hint=_relief(load),
            )
        yield from _without_call(target)
        yield from _woken_late(load, target, others)
        begun_s, asked_s = _could_begin_s(load, target.overall), load.duration_s
        if begun_s and asked_s and begun_s > asked_s * LONGER + LONGER_S:
            yield RunWarning(
                kind="measured longer",
                message=f"{target.name} was measured for {format_seconds(begun_s)}, "
                f"not {format_seconds(asked_s)}: users continued after the end",
                hint=others
                or "this client was too busy to stop them in time: use fewer users (-u)",
            )


def _without_call(target: TargetSummary) -> Iterator[RunWarning]:
    """Yield a warning if some transactions made no file call; if all, the verdict says so."""
    idle = target.overall.without_call
    if idle and target.overall.called:
        yield RunWarning(
            kind="no calls",
            message=f"{', '.join(idle)} made no file call on {target.name}: the time of "
            f"{'it' if len(idle) == 1 else 'them'} is not the mount's",
            hint="replayer check shows how many calls each transaction makes",
        )


def _woken_late(load: LoadFacts, target: TargetSummary, others: str | None) -> Iterator[RunWarning]:
    """Yield a warning if latencies are in large part lag, by the transaction where most is."""
    late_ones = (
        found
        for found in target.overall.transactions
        if found.count >= LATE_SAMPLES and (found.lag.mean_ns or 0.0) > WAKING_NS
    )
    shares = {late_share(load, found): found for found in late_ones}
    share = max(shares, default=0.0)
    if share <= LATE_SHARE:
        return
    worst = shares[share]
    late = format_time_ns(worst.lag.mean_ns or 0)
    yield RunWarning(
        kind="begun late",
        message=f"{worst.name} on {target.name} started {late} late on average "
        f"({format_share(share)} of its latency). The client was busy; this is not the mount",
        hint=f"see its time 'from its start' ({worst.name}.service in limits); "
        f"{others or 'fewer users (-u) or more CPUs reduce this'}",
    )


def _could_begin_s(load: LoadFacts, overall: RoundSummary) -> float | None:
    """Return for how long transactions could begin; None: not known."""
    if overall.drain_s is None:
        return None
    return overall.measured_s - (overall.drain_s if load.loop == "closed" else 0.0)


def _due(overall: RoundSummary) -> int:
    return _begun(overall) + overall.unbegun


def _begun(overall: RoundSummary) -> int:
    return sum(found.count + found.cancelled for found in overall.transactions)


def _cut(overall: RoundSummary) -> int:
    """Count calls that were waiting when their transaction was broken off."""
    return sum(
        found.count for op in overall.ops for found in op.outcomes if found.outcome == CANCELLED
    )


def _relief(load: LoadFacts) -> str:
    if load.loop == "paced":
        return "users need longer than their period: increase it (users.every)"
    return (
        f"use more than {format_count(load.users)} users for the arrivals (users.count, -u), or a "
        "lower rate"
    )
