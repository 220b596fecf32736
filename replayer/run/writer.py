"""The run folder of a run: what is written at its begin, while it goes on, and at its end.

Facts and their form are the measure room's; here they are gathered in the order in which a run
learns them. Reports read the folder and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from replayer._native import confinement
from replayer.errors import ReplayerError
from replayer.measure.clients import Client, TaskFailure, UserKind
from replayer.measure.facts import MachineFacts, collect_machine
from replayer.measure.health import LOOPS, Health, LoadFacts, RunWarning
from replayer.measure.neighbour import Neighbour
from replayer.measure.run import (
    CacheFacts,
    PlanFacts,
    Run,
    StatedThreshold,
    collect_target,
    finish,
    this_process,
    utc_text,
)
from replayer.measure.run import Target as TargetFacts
from replayer.measure.runfolder import RunFolder
from replayer.measure.units import NS_PER_S
from replayer.measure.verification import Verification
from replayer.report.decision import plan_looks
from replayer.run.caches import CacheProcedure
from replayer.run.replays import describe_replay
from replayer.run.targets import NamedTarget
from replayer.run.workload import Workload


class RunWriter:
    """Writes one run folder, whoever makes the load."""

    def __init__(self, folder: RunFolder, plan: bytes, run: Run) -> None:
        self.folder = folder
        self.run = run
        """What is told of the run by now."""
        folder.write_plan(plan)
        folder.write_run(run)

    def note(self, kind: str, t_s: float, fields: Mapping[str, JsonValue]) -> None:
        """Append an event."""
        self.folder.append_event(kind, t_s, fields)

    def note_replay(self, **known: object) -> None:
        """Note what is known of replays by now, if anything is replayed; the end writes it."""
        if self.run.replay is not None:
            replay = self.run.replay.model_copy(update=known)
            self.run = self.run.model_copy(update={"replay": replay})

    def add_to_replay(self, **known: object) -> None:
        """Write what is known of replays by now, if anything is replayed."""
        self.note_replay(**known)
        if self.run.replay is not None:
            self.folder.write_run(self.run)

    def note_neighbour(self, neighbour: Neighbour) -> None:
        """Note what ran beside the measured load; the end writes it."""
        self.run = self.run.model_copy(update={"neighbour": neighbour})

    def add_clients(self, clients: tuple[Client, ...]) -> None:
        """Write who measures."""
        self.run = self.run.model_copy(update={"clients": clients})
        self.folder.write_run(self.run)

    def end(self, ending: "RunEnding") -> ReplayerError | None:
        """Write how it went; return what refused to take it."""
        load = self.run.load
        if ending.users is not None:
            load = load.model_copy(update={"users": ending.users})
        if load.until is not None and ending.rounds:
            each_s = (load.duration_s or 0.0) / load.rounds
            length = {"rounds": ending.rounds, "duration_s": each_s * ending.rounds}
            load = load.model_copy(update=length)
        ended = finish(
            self.run.model_copy(update={"load": load}),
            ending.status,
            health=ending.health,
            failure=ending.failure,
            extra=ending.warnings,
        ).model_copy(
            update={
                "clients": ending.clients,
                "verification": ending.verification,
                "losses": ending.losses,
                "task_failures": ending.task_failures,
                "user_kinds": ending.user_kinds,
            }
        )
        self.run, refused = self.folder.write_end(ended)
        return refused


@dataclass(frozen=True)
class RunEnding:
    """How a run ended."""

    status: Literal["finished", "interrupted", "failed"]
    health: Health | None = None
    """What the harness suffered; None if nothing ran."""
    failure: BaseException | None = None
    warnings: tuple[RunWarning, ...] = ()
    """What a reader of the figures must know beside that."""
    clients: tuple[Client, ...] = ()
    """Who measured, where it was several."""
    verification: Verification | None = None
    """What reads returned, if that was checked."""
    losses: tuple[str, ...] = ()
    task_failures: tuple[TaskFailure, ...] = ()
    users: int | None = None
    """How many there were, where that was not known before."""
    user_kinds: tuple[UserKind, ...] = ()
    """Which they were, where a locustfile brought some."""
    rounds: int = 0
    """How many were begun; 0: none."""


@dataclass(frozen=True)
class TargetsAsFound:
    """The targets of a run as one machine sees them."""

    targets: tuple[TargetFacts, ...]
    machine: MachineFacts
    procedure: str
    """How its caches are brought into their state, in words."""


def describe_run(
    name: str, workload: Workload, command: tuple[str, ...], rounds: int, at: TargetsAsFound
) -> Run:
    """Return what is known of a run of a workload before anything runs."""
    cold = workload.cache == "cold"
    return Run(
        id=name,
        command=command,
        began=utc_text(),
        process=this_process(),
        machine=at.machine,
        plan=PlanFacts(
            name=workload.plan.name,
            fingerprint=workload.plan.fingerprint,
            seed=workload.plan.seed,
            scenario=workload.source,
            parts=workload.parts,
        ),
        load=load_facts(workload, rounds),
        cache=CacheFacts(asked=workload.cache, procedure=at.procedure),
        targets=at.targets,
        thresholds=state_thresholds(workload.thresholds),
        replay=describe_replay(workload.plan),
        warnings=tuple(_never_cold(at.targets)) if cold else (),
    )


def state_thresholds(written: Iterable[tuple[str, str]]) -> tuple[StatedThreshold, ...]:
    """Return thresholds, each a text and where it was written, as run.json has them."""
    return tuple(StatedThreshold(text=text, source=source) for text, source in written)


def find_targets(targets: Sequence[NamedTarget], procedure: CacheProcedure) -> TargetsAsFound:
    """Describe targets as this machine sees them."""
    return TargetsAsFound(describe_targets(targets), collect_machine(), procedure.words)


def describe_targets(targets: Sequence[NamedTarget]) -> tuple[TargetFacts, ...]:
    """Return what run.json says of targets, as this machine sees them."""
    return tuple(
        collect_target(index, target.name, target.paths, confinement())
        for index, target in enumerate(targets)
    )


def _never_cold(targets: Sequence[TargetFacts]) -> Iterator[RunWarning]:
    """Yield which targets have nothing but memory to keep their files in."""
    for target in targets:
        if target.guarantee.fsync == "memory":
            yield RunWarning(
                kind="other",
                message=f"{target.name} is in memory ({target.mounts[0].filesystem}): its files "
                "are never cold",
                hint="cold reads need a target with a device or a server",
            )


def load_facts(work: Workload, rounds: int) -> LoadFacts:
    """Return how the users of a run work."""
    return LoadFacts(
        users=work.plan.users,
        loop=LOOPS[work.plan.body["pace"]["kind"]],
        pace=work.pace,
        rounds=rounds,
        duration_s=None if work.duration_ns is None else work.duration_ns / NS_PER_S,
        transactions_per_user=work.plan.transactions_per_user,
        warm_up_s=work.plan.warm_up_ns / NS_PER_S,
        ramp_up_s=work.ramp_up_ns / NS_PER_S,
        looks=1 if work.until is None else len(plan_looks(work.until.most_rounds)),
        until=work.until,
        duet=work.duet,
    )
