"""Running a study: one command after the other, stopped in time, and continued later.

Each step is a command of this program in a process of its own: Locust runs once in a process, and
a step that fails does not end the others. A quick study has three minutes. They are shared among
the steps; how much longer a step takes than it measures is learned from the steps before it.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from replayer.errors import EXIT_BUG, EXIT_INCONCLUSIVE, ReplayerError
from replayer.fio.amounts import seconds_needed
from replayer.fio.checking import check_values
from replayer.fio.jobs import load_jobs
from replayer.fio.places import without_direct
from replayer.fio.program import find_fio
from replayer.measure.run import this_process
from replayer.measure.units import format_time_ns
from replayer.report.style import Style, fold
from replayer.run.interruption import Interruption, Level
from replayer.run.own_command import start_ourselves
from replayer.run.schedule import default_rounds
from replayer.run.targets import parse_targets
from replayer.run.watchdog import check_targets
from replayer.scenario.loading import load_scenario
from replayer.scenario.shipped import shipped_scenarios
from replayer.study.journal import (
    SETTLED,
    Attempt,
    Journal,
    StudyState,
    adopt,
    create_journal,
    find_left,
    find_places,
    finished_code,
    has_measured,
    open_journal,
    refuse_other_places,
)
from replayer.study.model import Study, StudyStep, load_study

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
    """How a study is run."""

    targets: tuple[str, ...]
    """``[NAME=]PATH`` each, absolute."""
    quick: bool
    """Whether it must end within three minutes."""
    rounds: int | None
    """Turns of each target; None means one for one target, three for several."""
    steps: int
    """How many steps share the time."""
    quiet: bool = False
    seconds: int | None = None
    """How long a quick step measures each target; None: an even share of the time."""

    def turns(self, step: StudyStep) -> int:
        """Return how many turns each target has in a step; quick ones last a second at least."""
        turns = step.rounds or self.rounds or default_rounds(len(self.targets))
        return min(turns, self.quick_seconds) if self.quick else turns

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
            further.append(f"--runtime={terms.quick_seconds // turns}s")
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


RESERVE_S = 8.0  # chosen: for the removal at the end of the last step
MARGIN = 0.9  # chosen: of a step's share; the rest is for what cannot be foreseen
STARTS = 2.0  # chosen: a step starts a program, and works out a report at its end


@dataclass(frozen=True)
class StepShare:
    """What a step may take: in all, before it is asked to end, and measuring each target."""

    limit_s: float
    seconds: int


@dataclass
class Budget:
    """What is left of the time, until an ``end`` on the monotonic clock.

    ``beside_s`` is how long a step is expected to take beside measuring.
    """

    end: float
    targets: int
    beside_s: float
    _least_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._least_s = self.beside_s

    def share(self, steps: int) -> StepShare:
        """Return the share of the next of so many steps that are left."""
        limit_s = max(self.end - time.monotonic(), 0.0) / max(steps, 1) * MARGIN
        seconds = int((limit_s - self.beside_s) / self.targets)
        return StepShare(limit_s, max(1, min(seconds, LONGEST_QUICK_S)))

    def learn(self, share: StepShare, took_s: float) -> None:
        """Note how long a step took in all."""
        self.beside_s = max(took_s - share.seconds * self.targets, self._least_s)


def quick_budget(targets: int) -> Budget:
    """Return the budget of a quick study that begins now, counted from this process's start."""
    used_s = _age_s()
    end = time.monotonic() + QUICK_S - 2 * used_s - RESERVE_S
    return Budget(end, targets, max(TURN_S * targets, STARTS * used_s))


def _age_s() -> float:
    """Return how long ago this process started: what its imports take, another's take too."""
    began_s = this_process().start_ticks / os.sysconf("SC_CLK_TCK")
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - began_s, 0.0)


PARENT = Path("replayer-studies")
POLL_S = 0.1
STEPS = Style(80)
"""How wide what is said between the steps may be."""
GRACE_S = 20.0  # chosen: a step's users end meanwhile, and its figures are written

WEIGHTIEST = (EXIT_BUG, 3, 2, 1)
"""Exit codes of steps, in the order in which they become that of the study."""


@dataclass(frozen=True)
class StudyRequest:
    """What was asked for."""

    study: Study
    source: str
    targets: tuple[str, ...]
    quick: bool
    rounds: int | None
    output: Path | None
    quiet: bool


def run_study(order: StudyRequest) -> Journal:
    """Run a study; return its folder.

    Raises:
        ReplayerError: The folder or the targets cannot be used.
    """
    _check(order.study, order.targets)
    path = order.output or PARENT / time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    state = StudyState(
        study=order.source,
        steps=order.study.fingerprint,
        targets=absolute(order.targets),
        places=find_places(order.targets),
        quick=order.quick,
        rounds=order.rounds,
    )
    journal = create_journal(path.absolute(), state)
    _play(journal, order.study, quiet=order.quiet)
    return journal


def resume_study(path: Path, *, quiet: bool) -> Journal:
    """Go on with a study that was interrupted; return its folder.

    Raises:
        ReplayerError: The folder is none of a study, its steps are others than when it began, or
            the targets cannot be used or lie on other mounts.
    """
    journal = open_journal(path)
    state = journal.state
    study = load_study(state.study)
    if study.fingerprint != state.steps:
        message = (
            f"{journal.path}: the steps of {state.study} have changed since this study started"
        )
        raise ReplayerError(message, hint="undo the change, or start a new study")
    for name in study.steps:
        if not journal.is_done(name):
            adopt(journal, name, partial(_say, quiet=quiet))
    if not all(map(journal.is_done, study.steps)):
        _check(study, state.targets)
        refuse_other_places(state.places, find_places(state.targets))
    _play(journal, study, quiet=quiet)
    return journal


def exit_code_of(study: Study, journal: Journal) -> int:
    """Return the exit code of a study: the weightiest of its steps; 4 if not all are done."""
    codes = {attempt.code for name in study.steps if (attempt := journal.last(name))}
    weightiest = next((code for code in WEIGHTIEST if code in codes), None)
    if weightiest is not None:
        return weightiest
    proven = codes <= {0, None} and all(map(journal.is_done, study.steps))
    return 0 if proven else EXIT_INCONCLUSIVE


def announce(study: Study, terms: StudyOptions) -> str:
    """Say how long a study takes."""
    if terms.quick:
        return f"at most {format_time_ns(QUICK_S * 1e9)}"
    each = {name: step_length(step, terms) for name, step in study.steps.items()}
    least = sum(length.least_s for length in each.values())
    most = sum(
        length.least_s if length.most_s is None else length.most_s for length in each.values()
    )
    text = f"{_minutes(least, most)}, plus the time to lay out files"
    open_ended = [name for name, length in each.items() if length.most_s is None]
    return f"{text}; {', '.join(open_ended)}: until the work is done" if open_ended else text


def _minutes(least_s: float, most_s: float) -> str:
    least, most = round(least_s / 60), round(most_s / 60)
    return f"{most} min" if least == most else f"{least} to {most} min"


def _check(study: Study, words: Sequence[str]) -> None:
    """Refuse before anything is made: no fio, a job that is not possible, targets that are not."""
    jobs = [step.fio for step in study.steps.values() if step.fio is not None]
    program = find_fio() if jobs else None
    for job in jobs:
        (file,) = load_jobs([job])
        if program is not None:
            check_values(program, file)
    check_targets(parse_targets(words))


def _play(journal: Journal, study: Study, *, quiet: bool) -> None:
    """Run what is left of a study until the user interrupts."""
    state = journal.state
    terms = StudyOptions(state.targets, state.quick, state.rounds, len(study.steps), quiet)
    long = announce(study, terms)
    for line in fold((f"study {study.letter} ({study.name}): {long}", f"  {journal.path}"), STEPS):
        _say(line, quiet=quiet)
    budget = quick_budget(len(terms.targets)) if terms.quick else None
    pending = [name for name in study.steps if not journal.is_done(name)]
    interruption = Interruption()
    interruption.watch()
    try:
        for number, name in enumerate(pending):
            if interruption.level > Level.NONE:
                return
            place = [*study.steps].index(name) + 1
            _say(f"step {place} of {len(study.steps)}: {name}", quiet=quiet)
            share = None if budget is None else budget.share(len(pending) - number)
            began = time.monotonic()
            attempt = _attempt(journal, (name, study.steps[name]), terms, interruption, share)
            if budget is not None and share is not None:
                budget.learn(share, time.monotonic() - began)
            journal.note(name, attempt)
            if attempt.says is not None:
                _say(f"  {name}: {attempt.says}", quiet=quiet)
    finally:
        interruption.unwatch()


def _attempt(
    journal: Journal,
    named: tuple[str, StudyStep],
    terms: StudyOptions,
    interruption: Interruption,
    share: StepShare | None,
) -> Attempt:
    """Run one step and return how it went."""
    name, step = named
    folder = journal.next_folder(name)
    lacking = missing(step)
    if lacking is not None:
        return Attempt(folder=folder.name, done=True, says=lacking)
    terms = terms if share is None else replace(terms, seconds=share.seconds)
    terms, left_out = able(step, terms)
    process = start_ourselves([*step_words(step, terms, folder), "--json"])
    cut = _wait(process, interruption, folder, None if share is None else share.limit_s)
    attempt = _judged(folder, process.returncode, interruption, left_out, cut=cut)
    left = find_left(folder, terms.targets)
    if not left:
        return attempt
    remedy = f"left behind; remove it with: replayer clean {shlex.join(left)}"
    says = remedy if attempt.says is None else f"{attempt.says}; {remedy}"
    return attempt.model_copy(update={"says": says})


def _judged(
    folder: Path, code: int, interruption: Interruption, left_out: str | None, *, cut: bool
) -> Attempt:
    """Return how an attempt went, from how its command ended."""
    if interruption.level > Level.NONE:
        found = finished_code(folder)  # it may have measured all, and was about to remove its files
        if found in SETTLED:
            return Attempt(folder=folder.name, done=True, code=found, says=left_out)
        return Attempt(folder=folder.name, done=False, says="interrupted")
    if cut:
        killed = "it did not end in time and was killed"
        says = killed if code == -signal.SIGKILL else "stopped early, to end in time"
        return Attempt(folder=folder.name, done=True, code=code, says=says)
    if code in SETTLED:
        return Attempt(folder=folder.name, done=True, code=code, says=left_out)
    return Attempt(folder=folder.name, done=False, code=code, says=_reason(folder, code))


def able(step: StudyStep, terms: StudyOptions) -> tuple[StudyOptions, str | None]:
    """Leave out targets that have no O_DIRECT where a step needs it and others have it."""
    lacking = () if step.fio is None else without_direct(load_jobs([step.fio]), terms.targets)
    others = tuple(target for target in terms.targets if target not in lacking)
    if not lacking or not others:
        return terms, None
    names = ", ".join(target.partition("=")[0] for target in lacking)
    return replace(terms, targets=others), f"not on {names}: no O_DIRECT"


def _wait(
    process: subprocess.Popen[bytes],
    interruption: Interruption,
    folder: Path,
    limit_s: float | None,
) -> bool:
    """Wait for a step; ask it to end when its time is over or the user interrupts.

    A step that has measured may take any time to remove its files. Returned is whether it was cut
    short for the time.
    """
    deadline = None if limit_s is None else time.monotonic() + limit_s
    asked_at: float | None = None
    presses = interruption.presses
    cut = False
    while process.poll() is None:
        late = deadline is not None and time.monotonic() > deadline
        over = late and not has_measured(folder)
        if asked_at is None and (over or interruption.level > Level.NONE):
            asked_at, cut, presses = time.monotonic(), over, interruption.presses
            process.send_signal(signal.SIGINT)
        elif interruption.presses > presses:
            presses = interruption.presses
            process.send_signal(signal.SIGINT)
        if asked_at is not None and time.monotonic() > asked_at + GRACE_S and over:
            process.kill()
        time.sleep(POLL_S)
    return cut


def _reason(folder: Path, code: int) -> str:
    with suppress(OSError, ValueError, KeyError):
        failure = json.loads((folder / "run.json").read_text())["failure"]
        if failure:
            return str(failure)
    return f"it ended with exit code {code}"


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
