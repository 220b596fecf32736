"""The command of each step, and how long it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.fio import seconds_needed
from replayer.fio.jobs import load_jobs
from replayer.run.schedule import default_rounds
from replayer.run.targets import parse_targets
from replayer.scenario.loading import load_scenario
from replayer.scenario.shipped import shipped_scenarios
from replayer.study.model import StudyStep

QUICK_S = 180.0
"""What --quick promises."""
QUICK_SHARE = 0.8  # chosen: of that time is planned; the rest is for a slow mount
TURN_S = 3.0  # measured on a busy machine of two CPUs: starts a program, lays out small files
LONGEST_QUICK_S = 15  # chosen: a minute's rate shows within as long


@dataclass(frozen=True)
class Length:
    """How long something measures: at least, and at most; None: as long as its work takes."""

    least_s: float
    most_s: float | None


@dataclass(frozen=True)
class StudyOptions:
    """How a study is run.

    Attributes:
        targets: ``[NAME=]PATH`` each, absolute.
        quick: Whether it must end within three minutes.
        rounds: Turns of each target; None means one for one target, three for several.
        steps: How many steps share the time.
        quiet: Whether steps show no progress.
        seconds: How long a quick step measures each target; None: an even share of the time.
    """

    targets: tuple[str, ...]
    quick: bool
    rounds: int | None
    steps: int
    quiet: bool = False
    seconds: int | None = None

    def turns(self, step: StudyStep) -> int:
        """Return how many turns each target has in a step."""
        if self.quick:
            return 1
        return step.rounds or self.rounds or default_rounds(len(self.targets))

    @property
    def quick_seconds(self) -> int:
        """How long a step measures each target with --quick."""
        if self.seconds is not None:
            return self.seconds
        share = QUICK_S * QUICK_SHARE / (len(self.targets) * self.steps)
        return max(1, min(int(share - TURN_S), LONGEST_QUICK_S))


def absolute(words: Sequence[str]) -> tuple[str, ...]:
    """Return targets with their names and absolute paths: a study may go on from elsewhere."""
    return tuple(
        f"{target.name}={','.join(map(str, target.paths))}" for target in parse_targets(words)
    )


def missing(step: StudyStep) -> str | None:
    """Return why a step cannot be run with this version; None if it can."""
    if step.scenario is not None and step.scenario not in shipped_scenarios():
        return f"this version has no scenario {step.scenario}"
    return None


def further_words(step: StudyStep, terms: StudyOptions) -> tuple[str, ...]:
    """Return the words that a step has of its own."""
    return (*step.words, *(step.quick if terms.quick else step.full))


def step_words(step: StudyStep, terms: StudyOptions, folder: Path) -> list[str]:
    """Return the words of a step's command, without the program."""
    targets = [f"--target={target}" for target in terms.targets]
    turns = terms.turns(step)
    ends = [f"--rounds={turns}", f"--output={folder}", *targets]
    quiet = ["--quiet"] if terms.quiet else []
    further = [*quiet, *further_words(step, terms)]
    if step.fio is not None:
        if terms.quick:
            further.append(f"--runtime={terms.quick_seconds}s")
        return ["baseline", step.fio, *further, *ends]
    if terms.quick:
        further.append(f"--run-time={terms.quick_seconds}s")
    elif step.turn_s is not None:
        further.append(f"--run-time={step.turn_s * turns}s")
    return ["run", step.job, *further, *ends]


def step_length(step: StudyStep, terms: StudyOptions) -> Length:
    """Return how long a step measures in all."""
    if terms.quick:
        return Length(0.0, float(terms.quick_seconds * len(terms.targets)))
    if step.fio is not None:
        each = [seconds_needed(file) for file in load_jobs([step.fio])]
        known = [seconds for seconds in each if seconds is not None]
        total = sum(known) * terms.turns(step) * len(terms.targets)
        return Length(total, total if len(known) == len(each) else None)
    try:
        scenario = load_scenario(step.job, _changes(further_words(step, terms)))
    except ReplayerError:
        return Length(0.0, None)
    # A scenario's duration is that of a target, all its rounds together.
    own_s = None if scenario.duration_ns is None else scenario.duration_ns / 1e9
    own_s = own_s if step.turn_s is None else float(step.turn_s * terms.turns(step))
    if own_s is None:
        return Length(0.0, None)
    most = own_s * len(terms.targets)
    return Length(most if scenario.iterations is None else 0.0, most)


def _changes(words: Sequence[str]) -> list[str]:
    """Return what ``--set`` says among words."""
    return [value for name, value in pairwise(words) if name == "--set"]
