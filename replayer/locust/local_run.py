"""One run in this process: made in Locust's ``init`` event, run, and closed when Locust quits."""

import atexit
import sys
from collections.abc import Sequence
from pathlib import Path

from locust.env import Environment
from locust.runners import MasterRunner

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.locust.controller import PhaseController
from replayer.locust.runtime import Runtime
from replayer.locust.users import (
    has_file_users,
    has_python_users,
    has_scenario_users,
    refuse_mixtures,
)
from replayer.measure.facts import collect_machine
from replayer.measure.health import RunWarning, health_warnings
from replayer.measure.run import part_in_words
from replayer.measure.runfolder import RunFolder
from replayer.plan.document import say_limits, say_warmed
from replayer.run.caches import refuse_idle_remount
from replayer.run.exit_watchdog import tidies_for
from replayer.run.interruption import Interruption, Level
from replayer.run.options import Settings, options_of
from replayer.run.prepared_run import (
    PreparedRun,
    RunRequest,
    chosen_targets,
    find_losses,
    prepare_run,
    put_away,
)
from replayer.run.progress import Observer
from replayer.run.replays import read_order, read_results
from replayer.run.results import Shown, check_thresholds, end_run
from replayer.run.schedule import ScheduledSegment, default_rounds, make_schedule
from replayer.run.targets import MountError, NamedTarget
from replayer.run.verification import read_all_back, read_verification, refuse_others
from replayer.run.workload import Load, Workload, make_workload
from replayer.run.writer import RunEnding, load_facts
from replayer.scenario.model import wrong_users
from replayer.scenario.units import wrong_run_time
from replayer.supervisor import leave_now

__all__ = ["LocalRun", "make_request", "open_local_run"]

NS_PER_S = 1_000_000_000


class LocalRun:
    """A session and the greenlets that play it.

    Attributes:
        controller: Who leads through the segments.
        shown: What came of its results, once it is closed.
    """

    def __init__(self, session: PreparedRun, environment: Environment, observer: Observer) -> None:
        self._session = session
        self._runtime = Runtime(session, environment, range(session.request.workload.plan.users))
        self._runtime.pump.hand_to(self._runtime.statistics.merge)
        self._runtime.pump.hand_to(observer.watch)
        self.controller = PhaseController(session.request, environment, self._runtime.client)
        self._code = 0
        self.shown = Shown(0)

    def start(self) -> None:
        """Locust begins its test: the users come."""
        # Locust has taken SIGTERM meanwhile, to exit without waiting for anyone.
        interruption = self._session.request.interruption
        interruption.watch()
        interruption.on_urgent(self._session.engine.interrupt)
        self._runtime.start()
        self.controller.start()

    @property
    def folder(self) -> RunFolder:
        """The run's records."""
        return self._session.writer.folder

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what is wrong with the harness until now, worst first."""
        request = self._session.request
        load = load_facts(request.workload, request.rounds)
        return health_warnings(self._runtime.health(), load, collect_machine())

    def close(self) -> int:
        """Write and show the results, remove the folders, and return the exit code."""
        request = self._session.request
        self.controller.finish()
        self._runtime.close()
        # A run whose record could not be written whole has failed.
        self.controller.failure = self.controller.failure or self._runtime.record_failure()
        read_all_back(self._session)
        request.progress.close()
        losses = find_losses(self._session, hung=self._runtime.hung)
        if losses and self.controller.failure is not None:  # what failed is a consequence of that
            self.controller.failure = MountError("; ".join(losses))
        try:
            self._take_replay()
            ending, failure = self._make_ending(losses), self.controller.failure
            self.shown = end_run(self._session.writer, ending, request.settings, failure)
            self._code = self.shown.exit_code
            self.controller.failure = next(iter(self.shown.problems), None)
        finally:
            leavings = put_away(self._session, hung=self._runtime.hung)
            request.progress.close()
            request.interruption.settle()
            self._runtime.release()
            if not self._runtime.hung:
                atexit.unregister(self.end_process)  # it has nothing to do, and would keep the run
        for line in (*leavings.kept, *leavings.left):
            _say(line)
        if leavings.left and (not self._code or request.interruption.has_abandoned):
            self._code = EXIT_ENVIRONMENT
            self.shown = Shown(self._code, why="; ".join(leavings.left))
            _say(f"replayer: exit code {self._code}, as not everything could be removed")
        return self._code

    def end_process(self) -> None:
        """Leave at once when threads hang in the kernel; the interpreter would wait for them."""
        if self._runtime.hung:
            leave_now(self._code)

    def _take_replay(self) -> None:
        """Keep how far replays agreed with their traces."""
        session, plan = self._session, self._session.request.workload.plan
        replay = session.writer.replay
        if replay is None:
            return
        session.writer.note_replay(results=read_results(session.engine, plan))
        asked = session.request.settings.replay
        if asked is None or not asked.check_order or replay.event_log is None:
            return
        try:
            session.writer.note_replay(order=read_order(plan, Path(replay.event_log)))
        except ReplayerError as error:
            self.controller.failure = self.controller.failure or error

    def _make_ending(self, losses: tuple[str, ...]) -> RunEnding:
        failure, plan = self.controller.failure, self._session.request.workload.plan
        interrupted = self._session.request.interruption.level > Level.NONE
        return RunEnding(
            users=self.controller.shaped_users,
            user_kinds=self.controller.user_kinds,
            status="failed" if failure else "interrupted" if interrupted else "finished",
            health=self._runtime.health(),
            failure=failure,
            verification=read_verification(self._session.engine, plan),
            losses=losses,
            task_failures=(*self.controller.shape_failures, *self._runtime.failed_tasks.found()),
        )


def make_request(
    environment: Environment,
    settings: Settings,
    observer: Observer,
    targets: Sequence[NamedTarget] | None = None,
    interruption: Interruption | None = None,
) -> RunRequest:
    """Compile what is asked for, and check it as far as that needs no mount.

    Args:
        environment: Locust's.
        settings: What is asked for.
        observer: Who is told.
        targets: Where, if not as the settings say.
        interruption: Who may end it, if someone watches already.

    Raises:
        ReplayerError: It cannot be run.
    """
    settings.files.check()
    targets = tuple(chosen_targets(settings) if targets is None else targets)
    rounds = settings.rounds or _rounds(environment, len(targets))
    workload = _make_workload(environment, settings, rounds)
    refuse_mixtures(environment, workload.plan, len(targets), rounds)
    named = None if has_file_users(environment) else workload.transactions
    check_thresholds(workload, targets, named)
    if options_of(environment).headless:  # a page has a command for those of its runs that need it
        refuse_idle_remount(workload.cache, settings.remount_command)
    if has_python_users(environment):
        refuse_others(workload.plan, "users of a locustfile")
    for part in workload.parts:
        observer.progress.say(f"a part only: {part_in_words(part)}")
    for label, text in (("verify", say_limits), ("warm-up", say_warmed)):
        if (said := text(workload.plan)) is not None:
            observer.progress.say(f"{label}: {said}")
    if interruption is None:
        leads = isinstance(environment.runner, MasterRunner)
        interruption = Interruption(tidies_for(environment.stop_timeout) if leads else None)
        interruption.watch()
    return RunRequest(
        settings=settings,
        workload=workload,
        targets=targets,
        rounds=rounds,
        schedule=_make_schedule(environment, workload, len(targets), rounds),
        progress=observer.progress,
        interruption=interruption,
        stop_timeout_s=float(environment.stop_timeout),
    )


def open_local_run(request: RunRequest, environment: Environment, observer: Observer) -> LocalRun:
    """Look at the mounts, lay out the datasets and make the engine; Locust waits meanwhile.

    Raises:
        ReplayerError: Something refuses.
    """
    run = LocalRun(prepare_run(request), environment, observer)
    # Registered before Locust registers its own, and so done after them.
    atexit.register(run.end_process)
    return run


SHAPED_USERS = 10_000
"""Chosen: room for all users of a load shape, which says only as it goes on how many it wants.

The users of a scenario share out its datasets: there the number must be said.
"""


def _rounds(environment: Environment, targets: int) -> int:
    # A load shape and tasks in Python go on from where they are: they cannot be begun anew.
    goes_on = environment.shape_class is not None or has_python_users(environment)
    return 1 if goes_on else default_rounds(targets)


def _make_schedule(
    environment: Environment, workload: Workload, targets: int, rounds: int
) -> tuple[ScheduledSegment, ...]:
    # Users in Python stay on the target they were dealt: all targets have their turn at once.
    turns = targets if has_scenario_users(environment) else 1
    return make_schedule(turns, rounds, workload.plan.body["stop"]["duration_ns"])


def _make_workload(environment: Environment, settings: Settings, rounds: int) -> Workload:
    """Compile the scenario, and give Locust the users, rate and time that it asks for."""
    options = options_of(environment)
    nothing = settings.scenario is None and settings.replay is None
    if nothing and has_scenario_users(environment):
        message = "a scenario is missing"
        raise ReplayerError(message, hint="add --scenario FILE; 'replayer scenarios' lists some")
    _check_numbers(options.num_users, options.run_time)
    asked = options.num_users
    if asked is None and nothing and environment.shape_class is not None:
        asked = SHAPED_USERS
    workload = make_workload(settings, Load(asked, options.run_time, rounds))
    users = workload.plan.users
    options.num_users = users
    if options.spawn_rate is None:
        seconds = workload.ramp_up_ns / NS_PER_S
        options.spawn_rate = users / seconds if seconds else float(users)
    # Locust would count the time of laying out, and cut rounds short: the controller keeps time.
    options.run_time = None
    return workload


def _check_numbers(users: int | None, run_time_s: int | None) -> None:
    wrong = None if users is None else wrong_users(users)
    if wrong is not None:
        message = f"-u {wrong}"
        raise ReplayerError(message)
    wrong = None if run_time_s is None else wrong_run_time(run_time_s)
    if wrong is not None:
        message = f"-t {wrong}"
        raise ReplayerError(message)


def _say(text: str) -> None:
    print(text, file=sys.stderr)
