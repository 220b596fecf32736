"""A worker's part in a run: each order of the master, done on the worker's own targets.

Orders come one after the other. None of them holds a path: where the targets are was said on the
worker's own command line, and is checked here as for any run.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from locust.env import Environment
from locust.runners import WorkerRunner

from replayer._native import Engine
from replayer.errors import ReplayerError
from replayer.load.caches import Remounted, choose_procedure
from replayer.load.chronicle import Chronicle, Ending, describe_targets
from replayer.load.effects import changes_files
from replayer.load.fleet import wire
from replayer.load.fleet.dealing import seats_of
from replayer.load.fleet.leftovers import remove_patiently
from replayer.load.fleet.reporter import Reporter, Send
from replayer.load.fleet.wire import State
from replayer.load.fleet_options import is_forked
from replayer.load.ground import Ground, Works
from replayer.load.marker import marker_note
from replayer.load.options import Keep, options_of
from replayer.load.remounting import remount
from replayer.load.replays import load_plan, read_results
from replayer.load.schedule import Segment
from replayer.load.session import (
    OVERHEAD_OPS,
    Request,
    Session,
    check_procedure,
    check_targets,
    put_away,
)
from replayer.load.threads import call_in_thread
from replayer.load.troupe import Troupe
from replayer.measure.facts import collect_machine
from replayer.measure.runfolder import PARENT, RunFolder, create_run_folder
from replayer.plan import describe_plan

__all__ = ["Part", "Terms"]

PARTS = PARENT / "parts"
"""Where workers keep their own run folders unless a person says otherwise."""


@dataclass(frozen=True)
class Terms:
    """What the master told of the run.

    Attributes:
        number: This worker's, from 0.
        workers: How many there are.
        keep: Whether, and as what, the folders stay on the targets.
        turn: How many parts this worker has had, with this one.
    """

    number: int
    workers: int
    keep: Keep | None
    turn: int


class Part:
    """What a worker has of one run.

    Args:
        environment: Locust's.
        request: What is run, on the worker's own targets.
        terms: What the master said.
        send: How messages get to the master.
    """

    def __init__(
        self, environment: Environment, request: Request, terms: Terms, send: Send
    ) -> None:
        settings, workload = request.settings, request.workload
        self._environment = environment
        self._terms = terms
        self._send = send
        self._procedure = choose_procedure(workload.cache, settings.remount_command)
        check_procedure(self._procedure, request.rounds)
        self.request = replace(request, settings=replace(settings, keep=terms.keep))
        check_targets(self.request)
        works = Works(
            load_plan(workload.plan),
            request.progress,
            request.interruption,
            request.stop_timeout_s,
        )
        self._grounds = [Ground(target, works) for target in request.targets]
        self._chronicle: Chronicle | None = None
        self._session: Session | None = None
        self._troupe: Troupe | None = None
        self._reporter: Reporter | None = None
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
            "users": len(self._seats()),
            "keeps": not self._is_to_be_removed,
        }

    def orders(self) -> Mapping[str, Callable[..., Any]]:
        """Return what can be ordered, by name."""
        names = (
            *("create", "join", "lay_out", "remount", "engine", "clock", "caches", "begin"),
            *("measure", "open_gauge", "close_gauge", "stop_users", "end", "close", "put_away"),
        )
        return {name: getattr(self, name) for name in names}

    def create(self, run: str) -> list[str]:
        """Make the run's folder on each target; returns what the folders are called."""
        needs = describe_plan(self.request.workload.plan)
        self._open_record(run)
        note = marker_note(
            run, self.request.workload.plan.fingerprint, self.request.workload.source
        )
        for ground in self._grounds:
            if self.request.settings.reuse:
                ground.take_over(note)
                ground.verify()
            else:
                ground.create(run, note)
                ground.require(needs.space_bytes, needs.inodes)
        return [Path(ground.sandboxes[0].path).name for ground in self._grounds]

    def join(self, run: str, folders: list[str]) -> None:
        """Find the folders that another worker made, through this worker's mount points."""
        self._open_record(run)
        for ground, name in zip(self._grounds, folders, strict=True):
            if self.request.settings.reuse:
                ground.open(ground.target.paths)
            else:
                ground.join(wire.read_name(name))

    def lay_out(self, target: int) -> None:
        """Lay a target out, if it is not as the plan wants it."""
        self._grounds[target].lay_out()

    def remount(self) -> None:
        """Have the user's own command remount the targets, if that is how caches become cold."""
        command = self.request.settings.remount_command
        if isinstance(self._procedure, Remounted) and command is not None:
            remount(command, self._grounds)

    def engine(self) -> dict[str, Any]:
        """Make the engine and the seats."""
        chronicle, plan = self._record, self.request.workload.plan
        works = self._grounds[0].works
        engine = Engine(
            works.plan,
            [ground.sandboxes for ground in self._grounds],
            record=str(chronicle.folder.path),
            turn=(self._terms.number, self._terms.workers),
        )
        self._session = Session(
            request=self.request,
            grounds=tuple(self._grounds),
            procedure=self._procedure,
            chronicle=chronicle,
            engine=engine,
            overhead_ns=call_in_thread(engine.overhead_ns, OVERHEAD_OPS),
            restless=changes_files(plan),
        )
        self._troupe = Troupe(self._session, self._environment, self._seats())
        self._reporter = Reporter(self._send, chronicle.folder.path / "events.jsonl")
        self._troupe.courier.hand_to(self._reporter.add)
        self._troupe.start()
        return {"lanes": works.plan.replay_lanes, "folder": str(chronicle.folder.path)}

    def clock(self) -> int:
        """Return the engine's time."""
        return self._playing.engine.now_ns()

    def caches(self, target: int) -> None:
        """Bring this machine's caches into their state."""
        self._players.band.prepare_caches(target)

    def begin(
        self,
        target: int,
        round: int,  # noqa: A002 - the contract's word
        warm_up_ns: int,
        measured_ns: int | None,
        serial: int,
    ) -> None:
        """Let the users run."""
        self._players.band.begin(Segment(target, round, measured_ns), warm_up_ns)
        self._serial = serial

    def measure(self) -> None:
        """Measure from now on."""
        self._players.band.end_warm_up()

    def open_gauge(self) -> None:
        """A measured phase begins."""
        self._players.band.open_gauge()

    def close_gauge(self) -> None:
        """It has ended."""
        self._players.band.close_gauge()

    def stop_users(self) -> None:
        """Have Locust stop its users."""
        runner = self._environment.runner
        if isinstance(runner, WorkerRunner):
            runner.stop_users(runner.user_classes_count)

    def end(self, grace_ns: int) -> int:
        """End the segment, in bounded time; returns how many users hang in the kernel for good."""
        self._players.band.end(grace_ns)
        return self._players.band.stuck_users()

    def close(self) -> dict[str, Any]:
        """End all users; returns the last word. Results are on their way by then."""
        troupe, session = self._players, self._playing
        troupe.band.settle()
        troupe.close()
        self._closed = True
        failure = troupe.record_failure()
        plan = self.request.workload.plan
        replay = read_results(session.engine, plan) if plan.traces else None
        health = troupe.health()
        failed = troupe.failed_tasks.found()
        status: Literal["failed", "finished"] = "failed" if failure else "finished"
        refused = self._record.end(Ending(status, health=health, task_failures=failed))
        failure = failure or refused
        return {
            "health": health.model_dump(mode="json"),
            "replay": None if replay is None else replay.model_dump(mode="json"),
            "error": None if failure is None else wire.pack_error(failure),
            "task_failures": [found.model_dump(mode="json") for found in failed],
            "hung": troupe.hung,
            "hanging": [at for at, ground in enumerate(self._grounds) if ground.is_hanging],
        }

    def put_away(self, hung: bool, hanging: list[int]) -> dict[str, list[str]]:  # noqa: FBT001 - a fact, sent by name
        """Remove the run's folders, or keep them for another run.

        Args:
            hung: Whether calls of any worker hang.
            hanging: On which targets, where that is known: they are left behind.
        """
        for at in hanging:
            self._grounds[at].is_hanging = True
        leavings = put_away(self._playing, hung=hung)
        self._is_put_away = True
        return {
            "kept": list(leavings.kept),
            "left": list(leavings.left),
            "losses": list(leavings.losses),
        }

    @property
    def hung(self) -> bool:
        """Whether calls hang that can never be ended."""
        return self._troupe is not None and self._troupe.hung

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done: the master tells what could not be put away."""
        left = any(ground.made_here and ground.sandboxes for ground in self._grounds)
        is_tidy = self._is_put_away or not (left and self._is_to_be_removed)
        return self._closed and is_tidy

    @property
    def folder(self) -> str:
        """Where this worker's own records are."""
        return "nowhere yet" if self._chronicle is None else str(self._chronicle.folder.path)

    @property
    def reporter(self) -> Reporter | None:
        """Who sends results; None before there can be any."""
        return self._reporter

    def state(self) -> State:
        """Return how this worker is."""
        if self._troupe is None or self._session is None:
            return State()
        band = self._troupe.band
        return State(
            serial=self._serial,
            running=band.running_users(),
            busy=band.busy_users(),
            given_up=band.stuck_users(),
            hanging=tuple((hang.call, hang.age_s) for hang in band.hanging()),
            refusal=self._refusal(),
        )

    def interrupt(self) -> None:
        """Cancel every user at once."""
        if self._session is not None:
            self._session.engine.interrupt()

    def abandon(self, why: ReplayerError) -> None:
        """End this part before the run is over; results so far are in its own folder."""
        if self._troupe is not None and not self._closed:
            self._troupe.close()
        if self._chronicle is not None and not self._closed:
            health = None if self._troupe is None else self._troupe.health()
            self._chronicle.end(Ending("failed", health=health, failure=why))
        self._closed = True

    def last_words(self) -> Iterator[str]:
        """Bring its record to an end, where the process has no time to do more."""
        if self._chronicle is not None and not self._closed:
            error = ReplayerError("its process was told to end, and had to be ended by force")
            self._chronicle.end(Ending("failed", failure=error))
        yield f"its part is in {self.folder}"
        if any(ground.made_here for ground in self._grounds) and not self._is_put_away:
            paths = shlex.join(str(target.paths[0]) for target in self.request.targets)
            yield f"its folders may be left behind: replayer clean {paths} removes them"

    def release(self) -> None:
        """Let Locust count by itself again: another part may follow."""
        if self._troupe is not None:
            self._troupe.release()

    def inherit(self, heir: int | None) -> None:
        """Take over the folders of a worker that is lost, if this one is to remove them."""
        for ground in self._grounds:
            ground.made_here |= heir == self._terms.number

    def remove_own(self) -> tuple[str, ...]:
        """Remove the folders that this worker made, when no master will order it.

        Other workers may be at work there for a moment longer: it is tried again for a while.

        Returns:
            What is left, in lines.
        """
        if not self._is_to_be_removed:
            return ()
        hung = self.hung and not any(ground.is_hanging for ground in self._grounds)
        mine = (ground for ground in self._grounds if ground.made_here)
        return tuple(line for each in mine for line in remove_patiently(each, hung=hung))

    @property
    def _is_to_be_removed(self) -> bool:
        return not self.request.settings.keep and not self.request.settings.reuse

    def _refusal(self) -> dict[str, Any] | None:
        try:
            self._players.band.check()
        except ReplayerError as error:
            return wire.pack_error(error)
        return None

    def _seats(self) -> range:
        users = self.request.workload.plan.users
        return seats_of(self._terms.number, self._terms.workers, users)

    def _open_record(self, run: str) -> None:
        output = self.request.settings.output
        name = f"{wire.read_name(run)}-{self._terms.number}"
        if output is None or is_forked(options_of(self._environment)):
            output = PARTS / name
        elif self._terms.turn > 1:
            output = output.with_name(f"{output.name}-{self._terms.turn}")
        made = create_run_folder(output)
        self._chronicle = Chronicle(RunFolder(made.path, name), self.request.workload)
        self._chronicle.begin(self.request.targets, self.request.rounds, self._procedure)

    @property
    def _record(self) -> Chronicle:
        assert self._chronicle is not None  # noqa: S101 - the master orders create or join first
        return self._chronicle

    @property
    def _players(self) -> Troupe:
        assert self._troupe is not None  # noqa: S101 - the master orders engine first
        return self._troupe

    @property
    def _playing(self) -> Session:
        assert self._session is not None  # noqa: S101 - the master orders engine first
        return self._session
