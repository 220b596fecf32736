"""Loops that follow a schedule: what never began, and whether a run ended when it was to.

Pure: figures of a summary in, shares and sentences out. Verdicts and reports say the same by them.
"""

from collections.abc import Iterator

from replayer.measure.health import LoadFacts, RunWarning
from replayer.measure.summary import RoundSummary, Summary, TargetSummary
from replayer.measure.units import format_count

__all__ = ["pacing_warnings", "say_unbegun", "unbegun_share"]

LONGER = 1.05  # chosen: beyond what starting and ending users takes
LONGER_S = 0.1  # chosen: the same for runs of seconds


def unbegun_share(overall: RoundSummary) -> float:
    """Return which part of the transactions that were due never began; 0 when nothing was due."""
    due = _due(overall)
    return overall.unbegun / due if due else 0.0


def say_unbegun(load: LoadFacts, target: TargetSummary) -> str:
    """Say how many of a target's transactions never began."""
    overall = target.overall
    what = "periods" if load.loop == "paced" else "arrivals"
    return (
        f"{format_count(overall.unbegun)} of {format_count(_due(overall))} {what} on {target.name} "
        "were never begun: users were busy"
    )


def pacing_warnings(load: LoadFacts, summary: Summary) -> Iterator[RunWarning]:
    """Yield what keeps figures from being those of the load that was asked for."""
    for target in summary.targets:
        if target.overall.unbegun:
            yield RunWarning(
                kind="arrivals missed",
                message=f"{say_unbegun(load, target)}; what did not begin is in no latency",
                hint=_relief(load),
            )
        begun_s, asked_s = _could_begin_s(load, target.overall), load.duration_s
        if begun_s and asked_s and begun_s > asked_s * LONGER + LONGER_S:
            yield RunWarning(
                kind="measured longer",
                message=f"{target.name} was measured for {begun_s:.3g} s, {asked_s:g} s were asked "
                "for: users went on after the end",
                hint="this client was too busy to end them in time: use fewer users (-u)",
            )


def _could_begin_s(load: LoadFacts, overall: RoundSummary) -> float | None:
    """Return for how long transactions could begin; None: not known."""
    if overall.drain_s is None:
        return None
    return overall.measured_s - (overall.drain_s if load.loop == "closed" else 0.0)


def _due(overall: RoundSummary) -> int:
    begun = sum(found.count + found.cancelled for found in overall.transactions)
    return begun + overall.unbegun


def _relief(load: LoadFacts) -> str:
    if load.loop == "paced":
        return "users need longer than their period: make it longer (users.every)"
    return (
        f"give arrivals more users than {format_count(load.users)} (users.count, -u), or a lower "
        "rate"
    )
