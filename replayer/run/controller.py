"""The run loop: a controller leads a client through the segments of a run.

The client makes the load: the engine of this process, workers, or fio. The controller decides when
users work, on which target and for how long. It never blocks gevent's hub: it looks, sleeps a
little, and makes long calls in threads.
"""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from gevent import Greenlet

from replayer.errors import EXIT_BUG, EXIT_ENVIRONMENT, ReplayerError, keep_bug
from replayer.measure.clients import TaskFailure
from replayer.measure.health import RunWarning, UntilDecided
from replayer.measure.record import load_run
from replayer.measure.runfolder import RunFolder
from replayer.measure.summarise import summarise
from replayer.measure.units import NS_PER_S
from replayer.report.claims import CLAIM_ROUNDS
from replayer.report.decision import OpenFigure, find_open_in, plan_looks
from replayer.report.ranking import rank, rank_pairs
from replayer.run.interruption import InterruptedRunError, Interruption, Level
from replayer.run.ledger import Ledger
from replayer.run.neighbour_process import NeighbourProcess, NeighbourTerms
from replayer.run.prepared_run import Leftovers, RunRequest, chosen_targets
from replayer.run.progress import Hang, ProgressDisplay, Tick
from replayer.run.results import Shown, end_run
from replayer.run.schedule import ScheduledSegment
from replayer.run.threads import call_in_thread
from replayer.run.writer import RunEnding, RunWriter

POLL_S = 0.05
RECORDED_S = 1.2  # chosen: an interval is recorded within its own length of a second
FOREVER_NS = 2**62  # a warm-up that only end_warm_up() ends
THREADS_S = 60.0  # chosen: ten thousand threads start within a few seconds on a busy machine


class LoadClient:
    """What makes the load. A step that a client has no need of does nothing."""

    targets: tuple[str, ...]
    ledger: Ledger

    def lay_out(self, target: int) -> None:
        """Lay out what a segment on a target needs."""

    def write_out(self, target: int) -> None:
        """Have written out what was written on a target."""

    def prepare(self, segment: ScheduledSegment) -> None:
        """Lay out what the segment needs, and bring the caches into their state."""

    def has_all_users(self) -> bool:
        """Whether all users of the run are started."""
        return True

    def lacks_threads(self) -> bool:
        """Whether users that are started still wait for their threads."""
        return False

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        """Let the users run: they begin nothing more when the segment's time is over."""

    def end_warm_up(self) -> None:
        """Measure from now on."""

    def open_gauge(self) -> None:
        """Measure the client's health: a measured phase begins."""

    def close_gauge(self) -> None:
        """Measure the client's health no more: the phase has ended."""

    def stop_users(self) -> None:
        """Stop users that ``end`` cannot stop: those with Python tasks."""

    def end(self, grace_ns: int) -> None:
        """End the segment: users finish within the grace, are cancelled, or are given up on."""

    def check(self) -> None:
        """Raise what keeps the run from having been as it should."""

    def watch(self) -> None:
        """Raise what must end the run at once."""
        self.check()

    def running_users(self) -> int:
        """Return how many users are at work."""
        return 0

    def busy_users(self) -> int:
        """Return how many users have more to do in this segment."""
        return 0

    def stuck_users(self) -> int:
        """Return how many users hang in the kernel for good."""
        return 0

    def hanging(self) -> tuple[Hang, ...]:
        """Return the calls that do not come back."""
        return ()

    def refine(self, tick: Tick) -> Tick:
        """Add to a tick what this client alone knows."""
        return tick

    def settle(self) -> None:
        """Carry all that was measured, after the last segment."""


@dataclass(frozen=True)
class Looks:
    """Looks at a run between its rounds: it ends once it has decided."""

    folder: Path
    until: UntilDecided

    def is_spent(self, rounds: int, took_s: float) -> bool:
        """Whether another round would take longer than the budget; the fewest are made anyway."""
        return rounds >= CLAIM_ROUNDS and took_s * (rounds + 1) / rounds > self.until.budget_s

    def are_due(self, rounds: int) -> bool:
        """Whether the run is looked at after so many; at the last one it ends anyway."""
        return rounds in plan_looks(self.until.most_rounds)[:-1]

    def find_end(self, rounds: int) -> int:
        """Return after how many rounds it will about end: these, if it has decided.

        Other greenlets run meanwhile.
        """
        gevent.sleep(RECORDED_S)
        found = call_in_thread(self._look, rounds)
        if found is None:
            return rounds
        *looks, last = (look for look in plan_looks(self.until.most_rounds) if look > rounds)
        return next((look for look in looks if found.rounds and look >= found.rounds), last)

    def _look(self, rounds: int) -> OpenFigure | None:
        record = load_run(self.folder)
        summary = summarise(record)
        rankings = rank_pairs(record, summary) or [rank(record, summary)]
        return find_open_in(record.run, rankings, rounds)


@dataclass(frozen=True)
class Terms:
    """What a run is, as the controller needs it."""

    schedule: Sequence[ScheduledSegment]
    rounds: int
    """Turns of each target."""
    warm_up_ns: int
    """Not measured, at the begin of each segment."""
    ends_by_count: bool
    """Whether a segment ends when its users have done their share."""
    events: int | None
    """How many calls a segment makes, where that is known."""
    stop_timeout_s: float
    progress: ProgressDisplay
    interruption: Interruption
    looks: Looks | None = None
    """None: it ends with its schedule."""
    neighbour: NeighbourProcess | None = None
    """Runs beside each second setting of a target; None: all run alone."""

    @classmethod
    def of(cls, request: RunRequest, folder: Path, neighbour: NeighbourProcess | None) -> "Terms":
        """Return those of a run whose load is users of a workload."""
        workload = request.workload
        return cls(
            schedule=request.schedule,
            rounds=request.rounds,
            warm_up_ns=workload.plan.warm_up_ns,
            ends_by_count=workload.plan.transactions_per_user is not None,
            events=workload.events,
            stop_timeout_s=request.spawner.stop_timeout_s,
            progress=request.progress,
            interruption=request.interruption,
            looks=None if workload.until is None else Looks(folder, workload.until),
            neighbour=neighbour,
        )


class BugError(ReplayerError):
    """A mistake of ours, told as any refusal."""

    exit_code = EXIT_BUG


class PhaseController:
    """Leads one run."""

    def __init__(
        self, terms: Terms, client: LoadClient, on_end: Callable[[], None] = lambda: None
    ) -> None:
        self._terms = terms
        self._client = client
        self._on_end = on_end
        """Called after the last segment, unless whoever called ``finish`` ends the run."""
        self._stop_wanted = False
        self._calls_before = 0
        self._greenlet: Greenlet[[], None] | None = None
        self.failure: ReplayerError | None = None
        self.most_users = 0
        """How many users there were at the same time, at most."""
        self.rounds = 0
        self._ends_after: int | None = None
        self._began_s = 0.0
        self._place = 0
        """Of the segment in the schedule."""

    def start(self) -> None:
        """Begin, in a greenlet."""
        self._greenlet = gevent.spawn(self.run)

    @property
    def is_asking(self) -> bool:
        """Whether the controller itself asks this: it cannot wait for its own end."""
        return self._greenlet is gevent.getcurrent()

    def finish(self) -> None:
        """End the segment that runs, and wait for it; unless the controller itself asks."""
        if self.is_asking:
            return
        self._stop_wanted = True
        if self._greenlet is not None:
            self._greenlet.join()

    def run(self) -> None:
        """Lead through all segments; what goes wrong is kept as the failure."""
        self._try(self._run_segments)
        if self._terms.neighbour is not None:
            self._try(self._terms.neighbour.remove)
        self._try(self._client.settle)
        if not self._stop_wanted:
            self._on_end()

    def _try(self, step: Callable[[], None]) -> None:
        """Keep the first error as the failure. A bug must end the run, not hang it."""
        try:
            step()
        except ReplayerError as error:
            if not self._is_wanted(error):
                self.failure = self.failure or error
        except Exception as error:  # noqa: BLE001 - see above
            self.failure = BugError(keep_bug(error))

    def _is_wanted(self, error: ReplayerError) -> bool:
        """Whether a run ends as whoever leads it has asked; a worker may end for its own user."""
        asked = self._terms.interruption.level > Level.NONE
        return asked and isinstance(error, InterruptedRunError)

    def _run_segments(self) -> None:
        self._client.check()
        if self._terms.neighbour is not None:
            self._terms.neighbour.lay_out()
        self._began_s = time.monotonic()
        for place, segment in enumerate(self._terms.schedule):
            self._place = place
            # Those who hang can take no part in another turn, and would be missed there.
            if self._is_ending() or self._client.stuck_users():
                break
            self._run_segment(segment)
            if self._has_decided(segment):
                break

    def _has_decided(self, segment: ScheduledSegment) -> bool:
        """Whether all targets have had their turn, and these rounds decide or are all there is."""
        looks, rounds = self._terms.looks, segment.round + 1
        following = self._terms.schedule[self._place + 1 : self._place + 2]
        is_whole = all(each.round > segment.round for each in following)
        if looks is None or not is_whole or self._is_ending():
            return False
        if looks.are_due(rounds):
            self._ends_after = looks.find_end(rounds)
        return self._ends_after == rounds or looks.is_spent(rounds, self._took_s())

    def _took_s(self) -> float:
        return time.monotonic() - self._began_s

    def _run_segment(self, segment: ScheduledSegment) -> None:
        neighbour = self._terms.neighbour
        if neighbour is None:
            self._measure(segment)
            return
        # What was written before, by the neighbour too, is not to go to a disk while this is timed.
        self._client.lay_out(segment.target)
        self._client.write_out(segment.target)
        with neighbour.beside(segment):
            self._measure(segment)

    def _measure(self, segment: ScheduledSegment) -> None:
        self._client.prepare(segment)
        ramped = self._ramps_under_load()
        self._client.ledger.begin_turn()
        self._calls_before = self._client.ledger.calls
        if not ramped:
            self._wait_for_users(segment)
        warm_up_ns = self._terms.warm_up_ns
        self._client.begin(segment, FOREVER_NS if ramped else warm_up_ns)
        self.rounds = segment.round + 1
        began_s = time.monotonic()
        try:
            if ramped:
                self._wait_for_users(segment)
                began_s = time.monotonic()
            began_s += warm_up_ns / NS_PER_S
            self._wait(segment, "warm-up", began_s)
            if ramped and not self._is_ending():
                self._client.end_warm_up()
                began_s = time.monotonic()
            if segment.phase == "measured":
                self._client.open_gauge()
            self._wait(segment, segment.title, _after(began_s, segment.duration_ns))
            self._client.check()
        finally:
            self._client.close_gauge()
            is_last = segment is self._terms.schedule[-1] or self._is_ending()
            if is_last and not self._stop_wanted:  # or else Locust is stopping them
                self._client.stop_users()
            self._client.end(int(self._terms.stop_timeout_s * NS_PER_S))

    def _ramps_under_load(self) -> bool:
        """Whether users work while others still arrive.

        A single segment by time: yes, a growing load is what a ramp-up is for. Several: no, each
        must be like the others. Ended by transactions: no, the first users would be done before
        the clock starts.
        """
        return not self._terms.ends_by_count and len(self._terms.schedule) == 1

    def _wait_for_users(self, segment: ScheduledSegment) -> None:
        while not self._client.has_all_users() and not self._is_ending():
            self._look(segment, "users arrive", None)
        deadline = time.monotonic() + THREADS_S
        while self._client.lacks_threads():
            if self._is_ending() or time.monotonic() > deadline:
                break
            self._look(segment, "users arrive", None)
        self._client.check()

    def _wait(self, segment: ScheduledSegment, phase: str, end_s: float | None) -> None:
        """Wait until a time: the engine, which is on time, ends the phase by itself."""
        while not self._is_ending() and not self._are_done():
            left_s = None if end_s is None else end_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return
            self._look(segment, phase, left_s)

    def _are_done(self) -> bool:
        return self._terms.ends_by_count and self._client.busy_users() == 0

    def _look(self, segment: ScheduledSegment, phase: str, left_s: float | None) -> None:
        """Show how things are, and sleep a little."""
        self._client.watch()
        if self._terms.neighbour is not None:
            self._terms.neighbour.check()
        running = self._client.running_users()
        self.most_users = max(self.most_users, running)
        names, rounds = self._client.targets, self._terms.rounds
        of = "" if self._terms.looks is not None else f" of {rounds}"
        turn = f"round {segment.round + 1}{of}, " if rounds > 1 else ""
        tick = Tick(
            phase=f"{turn}{' and '.join(names[each] for each in segment.targets)}, {phase}",
            users=running,
            left_s=left_s,
            ledger=self._client.ledger,
            targets=names,
            hanging=self._client.hanging(),
            done_share=self._done_share(),
            target=segment.target,
            more_s=self._more_s(segment, left_s),
        )
        self._terms.progress.tick(self._client.refine(tick))
        gevent.sleep(POLL_S if left_s is None else max(min(POLL_S, left_s), 0))

    def _more_s(self, segment: ScheduledSegment, left_s: float | None) -> float | None:
        """Return about how long it takes to decide; None: that is not known."""
        looks = self._terms.looks
        if looks is None or self._ends_after is None or segment.duration_ns is None:
            return None
        per_round, begun = len(self._terms.schedule) // self._terms.rounds, self._place + 1
        turns = max(self._ends_after * per_round - begun, 0)
        left_s = left_s or 0.0
        each_s = (self._took_s() + left_s) / begun  # with all that is laid out between
        return min(turns * each_s, looks.until.budget_s - self._took_s()) + left_s

    def _done_share(self) -> float | None:
        """Return how much of a segment of whole traces is done, as of the last interval."""
        events = self._terms.events
        done = self._client.ledger.calls - self._calls_before
        return done / events if events else None

    def _is_ending(self) -> bool:
        return self._stop_wanted or self._terms.interruption.level > Level.NONE


def _after(began_s: float, length_ns: int | None) -> float | None:
    return None if length_ns is None else began_s + length_ns / NS_PER_S


def _neighbour_of(request: RunRequest, writer: RunWriter) -> NeighbourProcess | None:
    """Return what runs beside a run, after writing down what that is."""
    if request.neighbour is None:
        return None
    terms = NeighbourTerms(
        writer.folder.path / "neighbour",
        request.progress,
        request.interruption,
        request.spawner.stop_timeout_s,
    )
    # A master's targets have no paths; these are the same ones.
    found = NeighbourProcess(request.neighbour, chosen_targets(request.settings), terms)
    writer.note_neighbour(found.facts)
    writer.folder.write_run(writer.run)
    return found


class ControlledRun(ABC):
    """A run whose targets are laid out: its users may come."""

    def __init__(self, request: RunRequest, client: LoadClient, writer: RunWriter) -> None:
        self.request = request
        self._writer = writer
        self.neighbour = _neighbour_of(request, writer)
        terms = Terms.of(request, writer.folder.path, self.neighbour)
        self.controller = PhaseController(terms, client, request.spawner.end_test)
        self.shown = Shown(0)

    @property
    def folder(self) -> RunFolder:
        """The run's records."""
        return self._writer.folder

    def start(self) -> None:
        """Begin, as the users come."""
        interruption = self.request.interruption
        interruption.watch()  # Locust has taken SIGTERM meanwhile, to exit without waiting
        interruption.on_urgent(self._hurry)
        self.controller.start()

    @abstractmethod
    def _hurry(self) -> None:
        """Interrupt every user's call; a signal handler asks this."""

    @abstractmethod
    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what is wrong with the harness until now, worst first."""

    @abstractmethod
    def close(self) -> int:
        """Write and show the results, remove the folders, and return the exit code."""

    def _end(
        self,
        failure: ReplayerError | None,
        tasks: Iterable[TaskFailure],
        **known: Any,  # noqa: ANN401 - see RunEnding
    ) -> RunEnding:
        """Write how it ended, judge it, and show its results."""
        interrupted = self.request.interruption.level > Level.NONE
        spawner = self.request.spawner
        if self.neighbour is not None:
            self._writer.note_neighbour(self.neighbour.facts)
        ending = RunEnding(
            status="failed" if failure else "interrupted" if interrupted else "finished",
            failure=failure,
            users=self.controller.most_users if spawner.is_shaped else None,
            rounds=self.controller.rounds,
            user_kinds=spawner.user_kinds,
            task_failures=(*spawner.shape_failures, *tasks),
            **known,
        )
        self.shown = end_run(self._writer, ending, self.request.settings, failure)
        self.controller.failure = next(iter(self.shown.problems), None)
        return ending

    def _say_leavings(self, leavings: Leftovers) -> int:
        """Say what is still on the targets; return the exit code."""
        code, left = self.shown.exit_code, leavings.left
        if self.neighbour is not None:
            left = (*left, *self.neighbour.left)
        for line in (*leavings.kept, *left):
            sys.stderr.write(f"{line}\n")
        if left and (not code or self.request.interruption.has_abandoned):
            code = EXIT_ENVIRONMENT
            self.shown = Shown(code, why="; ".join(left))
            sys.stderr.write(f"replayer: exit code {code}, because some folders were not removed\n")
        return code
