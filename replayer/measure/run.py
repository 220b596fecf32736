"""The form of ``run.json``: what one run was, on which machine and targets, and how it went.

Frozen values only. The command that runs fills them; ``load_run`` gives them back. A change that
readers of today would misread raises ``FORMAT``.
"""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from replayer.errors import exit_code_of
from replayer.measure.clients import Client, TaskFailure, UserKind, machines_of
from replayer.measure.duet import Duet
from replayer.measure.facts import Frozen, MachineFacts, MountFacts, collect_facts, collect_machine
from replayer.measure.guarantee import Guarantee, guarantee_of
from replayer.measure.health import Health, LoadFacts, RunWarning, health_warnings
from replayer.measure.neighbour import Neighbour
from replayer.measure.replay import ReplayFacts
from replayer.measure.summary import Summary
from replayer.measure.verification import Verification

FORMAT: Final = 1

Status = Literal["running", "finished", "interrupted", "failed"]
Outcome = Literal["pass", "fail", "inconclusive"]
Confinement = Literal["jailed", "guarded", "fenced", "checked"]
"""jailed, guarded: as the engine says; checked: fio, whose job file was checked option by option;
fenced: and which the kernel keeps in the folder"""


def utc_text() -> str:
    """Return the wall-clock time in UTC for a person: ``2026-11-21T02:48:39Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_PROC = Path("/proc")
_START_TIME = 19  # field 22 of proc_pid_stat(5), counted from the one after the name


class Process(Frozen):
    """Which process runs it: a number alone is used again by others."""

    pid: int
    start_ticks: int
    """Field 22 of proc_pid_stat(5)."""
    boot: str
    """The machine's boot id: processes of another boot are gone."""
    pid_namespace: int | None = None
    """Inode of the PID namespace that the number is of (a container has one of its own); null: it
    is not known."""


class DatasetPart(Frozen):
    """How much of a tree is used, where it is not the whole."""

    dataset: str
    percent: Annotated[int, Field(ge=1, lt=100)]
    """Of its directories, each with what lies in it."""


class PlanFacts(Frozen):
    """The plan, which stands beside in plan.json."""

    name: str
    fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    seed: int
    scenario: str
    """The file it was compiled from, as it was given."""
    parts: tuple[DatasetPart, ...] = ()
    """Datasets of which less than the whole is used."""


def part_in_words(part: DatasetPart) -> str:
    """Say that figures are those of a part of a dataset, and how to have the whole."""
    return (
        f"{part.dataset}: {part.percent} % of the directories of the whole "
        f"(--set {part.dataset}.part=100% takes all)"
    )


class CacheFacts(Frozen):
    """The state of caches that each round began with."""

    asked: Literal["as-is", "cold", "warm"]
    procedure: str
    """What was done to get there, in words."""


class Target(Frozen):
    """A named directory, through one or more mount points of the same export."""

    index: int
    """Histograms and the timeline name it by this number."""
    name: str
    confinement: Confinement
    """How calls were kept inside the run's folder."""
    mounts: Annotated[tuple[MountFacts, ...], Field(min_length=1)]
    guarantee: Guarantee


class StatedThreshold(Frozen):
    """A threshold as it was written, and where."""

    text: str
    source: str


class Headline(Frozen):
    """What users of a target waited for: all transactions, or the weightiest alone.

    Null: too few samples.
    """

    target: str
    what: str
    """Such as ``all transactions``."""
    p50_ns: float | None
    p95_ns: float | None


class BaselineFigure(Frozen):
    """A figure of a target beside that of the kept run."""

    target: str
    what: str
    figure: str
    before_ns: float
    after_ns: float
    ratio: float | None
    """How many times as long it takes now; null: it took no time."""
    low: float | None
    """Of the ratio's 95 % interval; null: too little was measured."""
    high: float | None
    outcome: Outcome


class Baseline(Frozen):
    """The kept run that a run was held against, and what came of it."""

    name: str
    run: str
    folder: str
    tolerance: float
    """By what share of its time a figure may be slower."""
    figures: tuple[BaselineFigure, ...]


CloudUnit = Literal["bytes", "percent", "CPU minutes"]


class CloudMetric(Frozen):
    """A metric while a run went on."""

    metric: str
    unit: CloudUnit
    file: str
    points: int
    """How many the file has."""
    first: str | None
    """When the file's points begin, in UTC; null: it has none."""
    last: str | None
    at_s: tuple[float, ...]
    """When each point within the run begins, in seconds since the engine did."""
    values: tuple[float, ...]


class Run(Frozen):
    """One execution of a plan."""

    format: Literal[1] = FORMAT
    id: str
    status: Status = "running"
    command: tuple[str, ...]
    began: str
    """Wall-clock time in UTC, to name it by."""
    ended: str | None = None
    process: Process
    machine: MachineFacts
    """That of the first of several clients; each has its own."""
    plan: PlanFacts
    load: LoadFacts
    user_kinds: tuple[UserKind, ...] = ()
    """Which users there were, where a locustfile brought some; empty: all run the scenario, or they
    were not all there before the run ended."""
    cache: CacheFacts
    targets: Annotated[tuple[Target, ...], Field(min_length=1)]
    thresholds: tuple[StatedThreshold, ...] = ()
    replay: ReplayFacts | None = None
    """Null when no trace was replayed."""
    neighbour: Neighbour | None = None
    """Null when no other load ran beside the measured one."""
    verification: Verification | None = None
    """Null when reads were not verified, or the run has not ended."""
    task_failures: tuple[TaskFailure, ...] = ()
    """What tasks of a locustfile, or its load shape, raised, the first first."""
    health: Health | None = None
    """Null until the run has ended."""
    warnings: tuple[RunWarning, ...] = ()
    failure: str | None = None
    """Why it failed, in a line."""
    failure_code: int | None = None
    """The exit code that this called for; null: it did not fail."""
    losses: tuple[str, ...] = ()
    """What was taken away from its targets while it ran: folders, markers; in sentences."""
    clients: tuple[Client, ...] = ()
    """Who measured, where it was several processes; empty: the process above."""
    summary: Summary | None = None
    """For other programs; replayer itself always works it out again from the histograms."""
    verdict: Outcome | None = None
    baseline: Baseline | None = None
    """Null when it was held against no kept run."""
    credits: tuple[CloudMetric, ...] = ()
    """What a cloud's export says of its time; empty: none was given."""
    duet: Duet | None = None
    """Null when its targets were not measured at the same time, or it has not ended."""
    headlines: tuple[Headline, ...] = ()
    """Of each target, for lists of runs; empty: nothing was measured, or an older version ran."""

    @property
    def machines(self) -> tuple[MachineFacts, ...]:
        """What each process used whose users made calls."""
        return machines_of(self.clients, self.machine)


def collect_target(
    index: int, name: str, paths: Sequence[Path], confinement: Confinement
) -> Target:
    """Describe a target through each of its mount points.

    Raises:
        ReplayerError: A path does not exist or cannot be asked.
    """
    mounts = tuple(collect_facts(path) for path in paths)
    return Target(
        index=index,
        name=name,
        confinement=confinement,
        mounts=mounts,
        guarantee=guarantee_of(mounts[0]),
    )


def this_process() -> Process:
    """Return this process, so that readers can tell whether it still runs."""
    return Process(
        pid=os.getpid(),
        start_ticks=_start_ticks(os.getpid()) or 0,
        boot=_boot(),
        pid_namespace=_pid_namespace(),
    )


def describe_owner() -> dict[str, object]:
    """Return what the marker of a folder says of this process: where it is, and which."""
    process = this_process()
    return {
        "host": collect_machine().host,
        "process": process.model_dump(exclude={"pid_namespace"}),
        # Apart: a reader that does not know it leaves it out, and does not misread the process.
        "pid_namespace": process.pid_namespace,
    }


def is_alive(process: Process) -> bool:
    """Whether that very process still runs here; of one that is elsewhere nothing is known."""
    if process.boot != _boot() or is_elsewhere(process):
        return False
    return process.start_ticks == _start_ticks(process.pid)


def is_elsewhere(process: Process) -> bool:
    """Whether it was begun on this kernel in another PID namespace: it cannot be seen from here."""
    own = _pid_namespace()
    known = own is not None and process.pid_namespace is not None
    return known and process.boot == _boot() and process.pid_namespace != own


def finish(
    run: Run,
    status: Literal["finished", "interrupted", "failed"],
    *,
    health: Health | None = None,
    failure: BaseException | None = None,
    extra: Sequence[RunWarning] = (),
) -> Run:
    """Return the run as it ended, with the warnings that its health calls for."""
    found = health_warnings(health, run.load, *run.machines) if health is not None else ()
    return run.model_copy(
        update={
            "status": status,
            "ended": utc_text(),
            "health": health,
            "failure": None if failure is None else str(failure),
            "failure_code": None if failure is None else exit_code_of(failure),
            "warnings": (*run.warnings, *found, *extra),
        }
    )


def with_results(
    run: Run, *, summary: Summary, verdict: Outcome, headlines: tuple[Headline, ...] = ()
) -> Run:
    """Return the run with its results, for programs that read run.json alone."""
    found = {"summary": summary, "verdict": verdict, "headlines": headlines}
    return run.model_copy(update=found)


def _start_ticks(pid: int) -> int | None:
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie keeps its entry until it is reaped, but it is dead.
    return None if fields[0] in "ZX" else int(fields[_START_TIME])


def _pid_namespace() -> int | None:
    try:
        return (_PROC / "self/ns/pid").stat().st_ino
    except OSError:  # a kernel without them, or another system
        return None


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"unknown on {sys.platform}"
