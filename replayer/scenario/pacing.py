"""How transactions of a scenario follow each other, in words: what ``check`` and reports say."""

from typing import Any

from replayer.measure.units import format_time_ns
from replayer.scenario.draws import DurationDraw
from replayer.scenario.model import Scenario


def pace_in_words(scenario: Scenario) -> str:
    """Say when a transaction begins, with its numbers."""
    arrivals, users = scenario.arrivals, scenario.users
    if arrivals is not None:
        return f"{arrivals.process} arrivals, {arrivals.rate:g} a second in all"
    if users.every is not None:
        return f"one transaction every {_time(users.every)} and user"
    if users.think_time is not None:
        return f"the next transaction after a think time of {_time(users.think_time)}"
    return "the next transaction at once"


def pace_facts(scenario: Scenario) -> dict[str, Any]:
    """Return the same as plain values for JSON; what does not apply is null, times are in ns."""
    arrivals, users = scenario.arrivals, scenario.users
    return {
        "says": pace_in_words(scenario),
        "rate_per_s": None if arrivals is None else arrivals.rate,
        "process": None if arrivals is None else arrivals.process,
        "every_ns": _facts(users.every),
        "think_time_ns": _facts(users.think_time),
    }


def _facts(draw: DurationDraw | None) -> Any:  # noqa: ANN401 - a number, or a distribution
    if draw is None:
        return None
    facts = draw.model_dump(exclude_none=True)
    return facts.get("const", facts)


def _time(draw: DurationDraw) -> str:
    """Say what a time is drawn from."""
    if draw.const is not None:
        return format_time_ns(draw.const)
    if draw.uniform is not None:
        low, high = draw.uniform
        return f"{format_time_ns(low)} to {format_time_ns(high)}"
    if draw.lognormal is not None:
        median, p95 = draw.lognormal.median, draw.lognormal.p95
        return f"{format_time_ns(median)} in the median (p95 {format_time_ns(p95)})"
    if draw.exponential is not None:
        return f"{format_time_ns(draw.exponential)} in the mean"
    given = draw.values or draw.quantiles or ()
    return f"{format_time_ns(min(given))} to {format_time_ns(max(given))}, as listed"
