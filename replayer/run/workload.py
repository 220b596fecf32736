"""What users do in a run: a scenario or a trace compiled for it, or the tasks of a locustfile.

Pure but for reading the files of scenarios and traces. The plan goes on to the engine and into the
run folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replayer.errors import ReplayerError
from replayer.measure.health import UntilDecided
from replayer.measure.run import DatasetPart
from replayer.measure.units import NS_PER_S
from replayer.ops import ALTERING
from replayer.plan.compile import compile_plan
from replayer.plan.document import Plan
from replayer.plan.replaying import ReplayOptions, choose_requests, compile_replay
from replayer.run.options import CacheState, ReplaySettings, Settings
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import pace_in_words
from replayer.scenario.units import read_rate
from replayer.trace.facts import TraceFacts, load_facts
from replayer.verdict.threshold import AS_RECORDED, with_default

FREE_FORM: dict[str, object] = {
    "format": 1,
    "name": "locustfile",
    "seed": 1,
    "users": 1,
    "written": "random",
    "pool_bytes": 4 * 1024 * 1024,
    "tables": [],
    "datasets": [],
    "pickers": [],
    "transactions": [{"name": "none", "steps": []}],
    "mix": [1],
    "pace": {"kind": "closed", "think": {"const": 0}},
    "warm_up_ns": 0,
}
"""The plan of a locustfile whose users are all written in Python: it lays out nothing."""


@dataclass(frozen=True)
class Workload:
    """A plan and what its scenario says beside it."""

    plan: Plan
    source: str
    """The scenario or trace as it was given, or the locustfile."""
    duration_ns: int | None
    """Measured time per target, all rounds together; None: until users are done."""
    ramp_up_ns: int
    """Time in which the users arrive."""
    cache: CacheState
    thresholds: tuple[tuple[str, str], ...]
    """Texts and where each was written."""
    pace: str
    parts: tuple[DatasetPart, ...] = ()
    """Datasets of which less than the whole is used."""
    until: UntilDecided | None = None
    """When it ends, if that is by what was measured."""
    duet: bool = False
    """Whether both targets are measured at the same time."""

    @property
    def events(self) -> int | None:
        """Events of a segment in which whole traces are replayed; None where that is not known."""
        (*others, last) = self.plan.body["transactions"]
        loops = self.plan.transactions_per_user
        steps = last["steps"]
        if others or loops is None or len(self.plan.traces) != 1 or len(steps) != 1:
            return None
        whole = steps[0]["do"] == "replay" and steps[0]["request"] is None
        return self.plan.users * loops * self.plan.traces[0].events if whole else None


def make_workload(settings: Settings, rounds: int) -> Workload:
    """Load and compile the scenario or trace, or make the plan of a locustfile without one.

    The rounds, turns of each target, share the run time.

    Raises:
        ReplayerError: It cannot be run.
    """
    if settings.replay is not None:
        return _replay(settings, settings.replay, rounds)
    if settings.scenario is None:
        return _free_form(settings, rounds)
    scenario = load_scenario(settings.scenario, settings.changes)
    plan = compile_plan(
        scenario,
        users=settings.users,
        seed=settings.seed,
        duration_ns=_segment_ns(settings, rounds, scenario.duration_ns),
    )
    return Workload(
        plan=plan,
        source=settings.scenario,
        duration_ns=_total_ns(settings, scenario.duration_ns),
        ramp_up_ns=scenario.users.ramp_up_ns,
        cache=settings.cache or scenario.cache,
        thresholds=with_default(
            (
                *((text, settings.scenario) for text in scenario.thresholds),
                *_stated(settings),
            )
        ),
        pace=pace_in_words(scenario),
        parts=tuple(
            DatasetPart(dataset=name, percent=percent) for name, percent in scenario.parts.items()
        ),
    )


def _replay(settings: Settings, replay: ReplaySettings, rounds: int) -> Workload:
    if settings.scenario is not None:
        message = f"--scenario and --trace exclude each other, got {settings.scenario} as well"
        raise ReplayerError(message, hint="a scenario may name traces: see scenarios/README.md")
    trace = load_facts(replay.trace, Path())
    requests = None if replay.requests is None else choose_requests(trace, replay.requests)
    options = ReplayOptions(
        pace=replay.pace,
        speed=replay.speed,
        rate=None if replay.rate is None else read_rate(replay.rate),
        loops=replay.loops,
        requests=requests,
        users=settings.users,
        seed=1 if settings.seed is None else settings.seed,
        duration_ns=_segment_ns(settings, rounds, None),
    )
    return Workload(
        plan=compile_replay(trace, options),
        source=replay.trace,
        duration_ns=_total_ns(settings, None),
        ramp_up_ns=0,
        cache=settings.cache or "as-is",
        thresholds=with_default(_stated(settings), AS_RECORDED),
        pace=_replay_in_words(trace, options),
    )


def _stated(settings: Settings) -> tuple[tuple[str, str], ...]:
    return tuple((text, "--threshold") for text in settings.thresholds)


def _replay_in_words(trace: TraceFacts, options: ReplayOptions) -> str:
    speed = 1.0 if options.speed is None else options.speed
    fast = "as recorded" if speed == 1 else f"{speed:g} times as fast"
    words = {
        "asap": "each event directly after the previous one",
        "closed": f"each event after its recorded pause, {fast}",
        "timed": f"each event at its recorded time, {fast}",
        "open": f"requests arrive {_arrivals(options, fast)}; inside, the pauses {fast}",
    }
    what = "whole trace" if options.requests is None else "requests"
    return f"{options.pace}, {what} {trace.name}: {words[options.pace]}"


def _arrivals(options: ReplayOptions, fast: str) -> str:
    return f"at random, {fast}" if options.rate is None else f"at random, {options.rate:g} a second"


def _free_form(settings: Settings, rounds: int) -> Workload:
    seed = 1 if settings.seed is None else settings.seed
    stop = {"duration_ns": _segment_ns(settings, rounds, None), "transactions": None}
    return Workload(
        plan=Plan({**FREE_FORM, "users": settings.users or 1, "seed": seed, "stop": stop}),
        source="locustfile",
        duration_ns=_total_ns(settings, None),
        ramp_up_ns=0,
        cache=settings.cache or "as-is",
        thresholds=with_default(_stated(settings)),
        pace="tasks of the locustfile",
    )


def _total_ns(settings: Settings, stated_ns: int | None) -> int | None:
    return stated_ns if settings.run_time_s is None else settings.run_time_s * NS_PER_S


def _segment_ns(settings: Settings, rounds: int, stated_ns: int | None) -> int | None:
    total_ns = _total_ns(settings, stated_ns)
    return None if total_ns is None else max(total_ns // rounds, 1)


WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC of Linux x86-64


def changes_files(plan: Plan) -> bool:
    """Whether running the plan leaves other files behind than were laid out."""
    if any(trace.changes_files for trace in plan.traces):
        return True
    return any(map(_changes, plan.steps("call")))


def _changes(step: Mapping[str, Any]) -> bool:
    if step["op"] == "open":
        return bool(step["flags"] & WRITE_FLAGS)
    return step["op"] in ALTERING
