"""A worker's part in a run: each order of the master, done on the worker's own targets.

Orders come one after the other. None of them holds a path: where the targets are was said on the
worker's own command line, and is checked here as for any run.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import gevent

from replayer._native import Interval
from replayer.cluster import wire
from replayer.cluster.wire import WorkerState
from replayer.cluster.worker import users_of
from replayer.errors import ReplayerError
from replayer.measure.facts import collect_machine
from replayer.measure.runfolder import PARENT, RunFolder, create_run_folder
from replayer.run.caches import choose_procedure, remount
from replayer.run.interruption import InterruptedRunError
from replayer.run.options import Keep
from replayer.run.prepared_run import (
    PreparedRun,
    RunRequest,
    check_procedure,
    check_targets,
    layout_of,
    make_folders,
    put_away,
    start_engine,
)
from replayer.run.replays import read_results
from replayer.run.runtime import Runtime
from replayer.run.schedule import ScheduledSegment
from replayer.run.target_dir import AWAY, HANGING, TargetDir
from replayer.run.writer import RunEnding, RunWriter, describe_run, describe_targets, find_targets

RESENT_S = 3.0  # chosen: many times what an answer takes
MOST_EVENTS = 500  # chosen: lines a message; what is left goes with the next one
MOST_WAITING = 3600
"""Chosen: an hour of intervals; beyond it they are in the worker's own run folder alone."""

Send = Callable[[str, dict[str, Any]], None]


@dataclass
class _Unacknowledged:
    data: dict[str, Any]
    sent_s: float


@dataclass
class Reporter:
    """The results of one worker on their way.

    They are numbered, kept until the master has acknowledged them, and sent again after a while: a
    broken connection delays them and loses none. The worker's own run folder holds them as well.
    """

    send: Send
    events: Path
    _fresh: list[list[Any]] = field(default_factory=list)
    _waiting: dict[int, _Unacknowledged] = field(default_factory=dict)
    _number: int = 0
    _read_bytes: int = 0

    def add(self, interval: Interval) -> None:
        """Take what was measured."""
        self._fresh.append(wire.pack_interval(interval))

    def tell(self, state: WorkerState) -> None:
        """Send how the worker is, what is new, and again what nobody has acknowledged."""
        now_s = time.monotonic()
        data: dict[str, Any] = {"state": state.pack()}
        events = self._new_events()
        if (self._fresh or events) and len(self._waiting) < MOST_WAITING:
            self._number += 1
            data |= {"number": self._number, "intervals": self._fresh, "events": events}
            self._fresh = []
            self._waiting[self._number] = _Unacknowledged(data, now_s)
        self.send(wire.NEWS, data)
        for parcel in self._waiting.values():
            if now_s - parcel.sent_s > RESENT_S:
                parcel.sent_s = now_s
                self.send(wire.NEWS, {**parcel.data, "state": data["state"]})

    def is_safe(self, told: Mapping[str, Any]) -> None:
        """Forget what the master has."""
        self._waiting.pop(told["number"], None)

    @property
    def is_done(self) -> bool:
        """Whether the master has everything."""
        return not self._fresh and not self._waiting and not self._more_events()

    def _more_events(self) -> bool:
        return self.events.exists() and self.events.stat().st_size > self._read_bytes

    def _new_events(self) -> list[str]:
        """Return whole lines that were not told yet."""
        if not self._more_events():
            return []
        with self.events.open("rb") as file:
            file.seek(self._read_bytes)
            found: list[str] = []
            for line in file:
                if len(found) == MOST_EVENTS or not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                with suppress(ValueError):  # a full disk cuts lines short
                    wire.read_event(line)
                    found.append(line.decode())
        return found


REMOVALS = 10
AGAIN_S = 1.0
"""Chosen: workers find out within a second of each other that their master is gone."""


def remove_patiently(target_dir: TargetDir, *, hung: bool) -> list[str]:
    """Remove a folder, where others may work a moment longer; return what is left, in lines."""
    if hung or target_dir.is_hanging:
        return target_dir.say_left(HANGING)
    if not target_dir.sandboxes:
        return target_dir.say_left(AWAY)
    loss = target_dir.find_loss()
    return _try_to_remove(target_dir) if loss is None else [loss.remedy]


def _try_to_remove(target_dir: TargetDir) -> list[str]:
    for left in reversed(range(REMOVALS + 1)):
        try:
            target_dir.remove()
        except ReplayerError as error:
            if not left or isinstance(error, InterruptedRunError):  # its user has had enough
                return target_dir.say_left(str(error))
            gevent.sleep(AGAIN_S)
        else:
            break
    return []


PARTS = PARENT / "parts"
"""Where workers keep their own run folders unless a person says otherwise."""


@dataclass(frozen=True)
class WorkerTerms:
    """What the master told of the run."""

    number: int
    workers: int
    keep: Keep | None
    """Whether, and as what, the folders stay on the targets."""
    turn: int
    """How many parts this worker has had, with this one."""
    is_forked: bool
    """Whether it is a fork of a command, and not the command itself."""


OWN = frozenset(
    (
        *("create", "join", "lay_out", "remount", "engine"),
        *("clock", "begin", "end", "close", "put_away"),
    )
)
"""Orders that are methods of a worker's run."""
OF_CLIENT = {
    "caches": "prepare_caches",
    "write_out": "write_out",
    "measure": "end_warm_up",
    **{order: order for order in ("open_gauge", "close_gauge", "stop_users")},
}
"""Orders that are methods of the engine's client."""


class WorkerRun:
    """What a worker has of one run."""

    def __init__(self, request: RunRequest, terms: WorkerTerms, send: Send) -> None:
        settings, workload = request.settings, request.workload
        self._terms = terms
        self._send = send
        self._procedure = choose_procedure(workload.cache, settings.remount_command)
        check_procedure(self._procedure, request.rounds)
        self.request = replace(request, settings=replace(settings, keep=terms.keep))
        check_targets(self.request)
        works = layout_of(self.request)
        self._target_dirs = [TargetDir(target, works) for target in request.targets]
        self._writer: RunWriter | None = None
        self._session: PreparedRun | None = None
        self._runtime: Runtime | None = None
        self.reporter: Reporter | None = None
        self._serial = 0
        self._closed = False
        self._is_put_away = False

    def facts(self) -> dict[str, Any]:
        """Return what the master writes down of this worker."""
        described = describe_targets(self.request.targets)
        return {
            "targets": [facts.model_dump(mode="json") for facts in described],
            "machine": collect_machine().model_dump(mode="json"),
            "procedure": self._procedure.words,
            "paths": [[str(path) for path in t.paths] for t in self.request.targets],
            "users": len(self._slots()),
            "keeps": not self._is_to_be_removed,
        }

    def obey(self, order: str, told: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any answer
        """Do what the master orders."""
        if order in OF_CLIENT:
            return getattr(self._players.client, OF_CLIENT[order])(**told)
        if order not in OWN:
            raise KeyError(order)
        return getattr(self, order)(**told)

    def create(self, run: str) -> list[str]:
        """Make the run's folder on each target; returns what the folders are called."""
        self._open_record(run)
        make_folders(self.request, self._target_dirs, run)
        return [Path(target_dir.sandboxes[0].path).name for target_dir in self._target_dirs]

    def join(self, run: str, folders: list[str]) -> None:
        """Find the folders that another worker made, through this worker's mount points."""
        self._open_record(run)
        for target_dir, name in zip(self._target_dirs, folders, strict=True):
            if self.request.settings.reuse:
                target_dir.open(target_dir.target.paths)
            else:
                target_dir.join(wire.read_name(name))

    def lay_out(self, target: int) -> None:
        """Lay a target out, if it is not as the plan wants it."""
        self._target_dirs[target].lay_out()

    def remount(self) -> None:
        """Have the user's own command remount the targets, if that is how caches become cold."""
        if self._procedure.remount_command is not None:
            remount(self._procedure.remount_command, self._target_dirs)

    def engine(self) -> dict[str, Any]:
        """Make the engine and the slots."""
        writer, turn = self._record, (self._terms.number, self._terms.workers)
        self._session = start_engine(
            self.request, writer, self._target_dirs, self._procedure, turn=turn
        )
        self._runtime = Runtime(self._session, self._slots())
        self.reporter = Reporter(self._send, writer.folder.path / "events.jsonl")
        self._runtime.pump.hand_to(self.reporter.add)
        self._runtime.start()
        return {
            "lanes": self._target_dirs[0].works.plan.replay_lanes,
            "folder": str(writer.folder.path),
        }

    def clock(self) -> int:
        """Return the engine's time."""
        return self._active.engine.now_ns()

    def begin(
        self,
        target: int,
        round: int,  # noqa: A002 - the contract's word
        warm_up_ns: int,
        measured_ns: int | None,
        serial: int,
    ) -> None:
        """Let the users run."""
        self._players.client.begin(ScheduledSegment(target, round, measured_ns), warm_up_ns)
        self._serial = serial

    def end(self, grace_ns: int) -> int:
        """End the segment, in bounded time; returns how many users hang in the kernel for good."""
        self._players.client.end(grace_ns)
        return self._players.client.stuck_users()

    def close(self) -> dict[str, Any]:
        """End all users; returns the last word. Results are on their way by then."""
        runtime, session = self._players, self._active
        runtime.client.settle()
        runtime.close()
        self._closed = True
        failure = runtime.record_failure()
        plan = self.request.workload.plan
        replay = read_results(session.engine, plan) if plan.traces else None
        health = runtime.health()
        failed = runtime.statistics.task_failures()
        status: Literal["failed", "finished"] = "failed" if failure else "finished"
        refused = self._record.end(RunEnding(status, health=health, task_failures=failed))
        failure = failure or refused
        return {
            "health": health.model_dump(mode="json"),
            "replay": None if replay is None else replay.model_dump(mode="json"),
            "error": None if failure is None else wire.pack_error(failure),
            "task_failures": [found.model_dump(mode="json") for found in failed],
            "hung": runtime.hung,
            "hanging": [
                at for at, target_dir in enumerate(self._target_dirs) if target_dir.is_hanging
            ],
        }

    def put_away(self, hung: bool, hanging: list[int]) -> dict[str, list[str]]:  # noqa: FBT001 - a fact, sent by name
        """Remove the run's folders, or keep them; those on targets that hang are left behind."""
        for at in hanging:
            self._target_dirs[at].is_hanging = True
        leavings = put_away(self._active, hung=hung)
        self._is_put_away = True
        return {name: list(lines) for name, lines in vars(leavings).items()}

    @property
    def hung(self) -> bool:
        """Whether calls hang that can never be ended."""
        return self._runtime is not None and self._runtime.hung

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done: the master tells what could not be put away."""
        left = any(
            target_dir.made_here and target_dir.sandboxes for target_dir in self._target_dirs
        )
        is_tidy = self._is_put_away or not (left and self._is_to_be_removed)
        return self._closed and is_tidy

    @property
    def folder(self) -> str:
        """Where this worker's own records are."""
        return "(not created yet)" if self._writer is None else str(self._writer.folder.path)

    def state(self) -> WorkerState:
        """Return how this worker is."""
        if self._runtime is None or self._session is None:
            return WorkerState()
        client = self._runtime.client
        return WorkerState(
            serial=self._serial,
            running=client.running_users(),
            busy=client.busy_users(),
            given_up=client.stuck_users(),
            hanging=tuple((hang.call, hang.age_s) for hang in client.hanging()),
            refusal=self._refusal(),
        )

    def interrupt(self) -> None:
        """Cancel every user at once."""
        if self._session is not None:
            self._session.engine.interrupt()

    def abandon(self, why: ReplayerError) -> None:
        """End this part before the run is over; results so far are in its own folder."""
        if self._runtime is not None and not self._closed:
            self._runtime.close()
        if self._writer is not None and not self._closed:
            health = None if self._runtime is None else self._runtime.health()
            self._writer.end(RunEnding("failed", health=health, failure=why))
        self._closed = True

    def last_words(self) -> Iterator[str]:
        """Bring its record to an end, where the process has no time to do more."""
        if self._writer is not None and not self._closed:
            error = ReplayerError("it did not end in time and was killed")
            self._writer.end(RunEnding("failed", failure=error))
        yield f"its results are in {self.folder}"
        if any(target_dir.made_here for target_dir in self._target_dirs) and not self._is_put_away:
            paths = shlex.join(str(target.paths[0]) for target in self.request.targets)
            yield f"folders may be left behind; remove them with: replayer clean {paths}"

    def release(self) -> None:
        """Let Locust count by itself again: another part may follow."""
        if self._runtime is not None:
            self._runtime.statistics.release()

    def inherit(self, successor: int | None) -> None:
        """Take over the folders of a worker that is lost, if this one is to remove them."""
        for target_dir in self._target_dirs:
            target_dir.made_here |= successor == self._terms.number

    def remove_own(self) -> tuple[str, ...]:
        """Remove what this worker made when no master will order it; return what is left, in lines.

        Other workers may be at work there for a moment longer: it is tried again for a while.
        """
        if not self._is_to_be_removed:
            return ()
        hung = self.hung and not any(target_dir.is_hanging for target_dir in self._target_dirs)
        mine = (target_dir for target_dir in self._target_dirs if target_dir.made_here)
        return tuple(line for each in mine for line in remove_patiently(each, hung=hung))

    @property
    def _is_to_be_removed(self) -> bool:
        return not self.request.settings.keep and not self.request.settings.reuse

    def _refusal(self) -> dict[str, Any] | None:
        try:
            self._players.client.check()
        except ReplayerError as error:
            return wire.pack_error(error)
        return None

    def _slots(self) -> range:
        users = self.request.workload.plan.users
        return users_of(self._terms.number, self._terms.workers, users)

    def _open_record(self, run: str) -> None:
        output = self.request.settings.output
        name = f"{wire.read_name(run)}-{self._terms.number}"
        if output is None or self._terms.is_forked:
            output = PARTS / name
        elif self._terms.turn > 1:
            output = output.with_name(f"{output.name}-{self._terms.turn}")
        made = create_run_folder(output)
        workload, command = self.request.workload, self.request.settings.command
        found = find_targets(self.request.targets, self._procedure)
        begun = describe_run(name, workload, command, self.request.rounds, found)
        self._writer = RunWriter(RunFolder(made.path, name), workload.plan.document(), begun)

    @property
    def _record(self) -> RunWriter:
        assert self._writer is not None  # noqa: S101 - the master orders create or join first
        return self._writer

    @property
    def _players(self) -> Runtime:
        assert self._runtime is not None  # noqa: S101 - the master orders engine first
        return self._runtime

    @property
    def _active(self) -> PreparedRun:
        assert self._session is not None  # noqa: S101 - the master orders engine first
        return self._session
