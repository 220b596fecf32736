"""One run in this process: its request is compiled, its targets are laid out, its users are led."""

import atexit
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.measure.facts import collect_machine
from replayer.measure.health import RunWarning, UntilDecided, health_warnings
from replayer.measure.run import part_in_words
from replayer.measure.units import NS_PER_S, format_about, format_seconds
from replayer.plan.document import say_limits, say_warmed
from replayer.report.claims import CLAIM_ROUNDS
from replayer.report.decision import PRECISION
from replayer.report.plan_changes import NONE_BESIDE
from replayer.report.regression import check_kept_run
from replayer.run.controller import ControlledRun
from replayer.run.duet import refuse_duet
from replayer.run.interruption import Interruption
from replayer.run.neighbour import CheckedNeighbour, check_neighbour
from replayer.run.options import DEFAULT_BUDGET_S, Settings
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
from replayer.run.results import check_thresholds
from replayer.run.runtime import Runtime
from replayer.run.schedule import (
    default_rounds,
    fit_rounds,
    make_duet,
    make_schedule,
)
from replayer.run.spawner import Spawner
from replayer.run.targets import MountError, NamedTarget
from replayer.run.verification import read_all_back, read_verification, refuse_others
from replayer.run.workload import Workload, make_workload
from replayer.run.writer import load_facts
from replayer.scenario.model import wrong_users
from replayer.scenario.units import wrong_run_time
from replayer.supervisor import leave_now


class LocalRun(ControlledRun):
    """A run whose users are threads of this process."""

    def __init__(self, session: PreparedRun, observer: Observer) -> None:
        self._session = session
        self._runtime = Runtime(session, range(session.request.users))
        self._runtime.pump.hand_to(self._runtime.statistics.merge)
        self._runtime.pump.hand_to(observer.watch)
        super().__init__(session.request, self._runtime.client, session.writer)

    def start(self) -> None:
        """Begin, as the users come."""
        self._runtime.start()
        super().start()

    def _hurry(self) -> None:
        self._session.engine.interrupt()

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what is wrong with the harness until now, worst first."""
        load = load_facts(self.request.workload, self.request.rounds)
        return health_warnings(self._runtime.health(), load, collect_machine())

    def close(self) -> int:
        """Write and show the results, remove the folders, and return the exit code."""
        self.controller.finish()
        self._runtime.close()
        # A run whose record could not be written whole has failed.
        failure = self.controller.failure or self._runtime.record_failure()
        read_all_back(self._session)
        self.request.progress.close()
        losses = find_losses(self._session, hung=self._runtime.hung)
        if losses and failure is not None:  # what failed is a consequence of that
            failure = MountError("; ".join(losses))
        try:
            failure = self._take_replay(failure)
            self._end(
                failure,
                self._runtime.statistics.task_failures(),
                health=self._runtime.health(),
                verification=read_verification(self._session.engine, self.request.workload.plan),
                losses=losses,
            )
        finally:
            leavings = put_away(self._session, hung=self._runtime.hung)
            self.request.progress.close()
            self.request.interruption.settle()
            self._runtime.statistics.release()
            if not self._runtime.hung:
                atexit.unregister(self.end_process)  # it has nothing to do, and would keep the run
        return self._say_leavings(leavings)

    def end_process(self) -> None:
        """Leave at once when threads hang in the kernel; the interpreter would wait for them."""
        if self._runtime.hung:
            leave_now(self.shown.exit_code)

    def _take_replay(self, failure: ReplayerError | None) -> ReplayerError | None:
        """Keep how far replays agreed with their traces; return why the run failed, if so."""
        session, plan = self._session, self.request.workload.plan
        replay = session.writer.run.replay
        if replay is None:
            return failure
        session.writer.note_replay(results=read_results(session.engine, plan))
        asked = self.request.settings.replay
        if asked is not None and asked.check_order and replay.event_log is not None:
            try:
                session.writer.note_replay(order=read_order(plan, Path(replay.event_log)))
            except ReplayerError as error:
                return failure or error
        return failure


def make_request(
    spawner: Spawner,
    settings: Settings,
    observer: Observer,
    interruption: Interruption,
    targets: Sequence[NamedTarget] | None = None,
) -> RunRequest:
    """Compile what is asked for, and check it as far as that needs no mount; targets may be others.

    Raises:
        ReplayerError: It cannot be run.
    """
    settings.files.check()
    targets = tuple(chosen_targets(settings) if targets is None else targets)
    rounds = settings.rounds or _rounds(spawner, settings, len(targets))
    workload = _make_workload(spawner, settings, rounds)
    why = _why_fixed(spawner, settings, workload, len(targets))
    if why is not None:
        _refuse_idle(settings, why)
    else:
        workload = _until_decided(settings, workload, len(targets))
        rounds = rounds if workload.until is None else workload.until.most_rounds
    neighbour = _check_neighbour(spawner, settings)
    if settings.duet:
        refuse_duet(settings, spawner, workload, targets)
        workload = replace(workload, duet=True)
    spawner.refuse_mixtures(workload.plan, len(targets), rounds)
    named = None if spawner.has_file_users else workload.plan.transactions
    check_thresholds(workload, targets, named)
    if settings.beside.baseline is not None:
        plan = json.loads(workload.plan.document())
        names = tuple(target.name for target in targets)
        said = NONE_BESIDE if neighbour is None else neighbour.says
        check_kept_run(settings.beside.baseline, plan, names, said)
    if spawner.has_python_users:
        refuse_others(workload.plan, "users of a locustfile")
    for line in _say_beforehand(workload):
        observer.progress.say(line)
    # Users in Python stay on the target they were dealt: all targets have their turn at once.
    turns = len(targets) if spawner.has_scenario_users else 1
    return RunRequest(
        settings=settings,
        workload=workload,
        targets=targets,
        rounds=rounds,
        schedule=(
            make_duet(rounds, workload.plan.duration_ns or 0)
            if workload.duet
            else make_schedule(turns, rounds, workload.plan.duration_ns)
        ),
        progress=observer.progress,
        interruption=interruption,
        spawner=spawner,
        spawn_rate=_spawn_rate(settings, workload) * (len(targets) if workload.duet else 1),
        neighbour=neighbour,
    )


def _check_neighbour(spawner: Spawner, settings: Settings) -> CheckedNeighbour | None:
    """Return what runs beside the users, if it can.

    Raises:
        ReplayerError: It cannot be run, or users of a locustfile would have no second setting.
    """
    order = settings.neighbour
    if order is None:
        return None
    why, hint = None, "leave it out"
    if spawner.has_python_users or spawner.is_shaped:
        why = "users and load shapes of a locustfile cannot begin anew for it"
    elif settings.duet:
        why, hint = "a duet has no turns for it", "leave --duet out: targets then take turns"
    elif settings.reuse:
        why, hint = "a kept folder has room for one of its two settings", "use --target"
    elif settings.remount_command is not None:
        why, hint = "with --remount-command a target has one turn", "use --cache warm"
    if why is not None:
        raise ReplayerError(f"--neighbour {order.scenario}: {why}", hint=hint)
    return check_neighbour(order)


def _say_beforehand(workload: Workload) -> Iterator[str]:
    """Yield what who waits for a run must know before it begins."""
    for part in workload.parts:
        yield f"a part only: {part_in_words(part)}"
    if workload.until is not None:
        each = format_seconds((workload.plan.duration_ns or 0) / NS_PER_S)
        yield (
            f"runs until decided: at least {CLAIM_ROUNDS} rounds of {each} on each target, at most "
            f"{format_about(workload.until.budget_s)}"
        )
    for label, text in (("verify", say_limits), ("warm-up", say_warmed)):
        if (said := text(workload.plan)) is not None:
            yield f"{label}: {said}"


def open_local_run(request: RunRequest, observer: Observer) -> LocalRun:
    """Look at the mounts, lay out the datasets and make the engine; Locust waits meanwhile.

    Raises:
        ReplayerError: Something refuses.
    """
    run = LocalRun(prepare_run(request), observer)
    # Registered before Locust registers its own, and so done after them.
    atexit.register(run.end_process)
    return run


SHAPED_USERS = 10_000
"""Chosen: room for all users of a load shape, which says only as it goes on how many it wants.

The users of a scenario share out its datasets: there the number must be said.
"""


def _rounds(spawner: Spawner, settings: Settings, targets: int) -> int:
    # A load shape and tasks in Python go on from where they are: they cannot be begun anew.
    if spawner.is_shaped or spawner.has_python_users:
        return 1
    is_judged = settings.beside.baseline is not None
    return default_rounds(targets, duet=settings.duet, is_judged=is_judged)


def _why_fixed(
    spawner: Spawner, settings: Settings, workload: Workload, targets: int
) -> str | None:
    """Say why a run does not go on until it has decided, if so."""
    reasons = (
        (not settings.ends_early, "runs of the web page have a fixed length"),
        (settings.run_time_s is not None, "-t fixes the length of the run"),
        (settings.rounds is not None, "--rounds fixes the length of the run"),
        (settings.beside.baseline is not None, "the length of a run with --baseline is fixed"),
        (targets == 1, "there is one target, and nothing to decide between"),
        (spawner.is_shaped, "the load shape ends the run"),
        (spawner.has_python_users, "users of a locustfile cannot begin anew in each round"),
        (
            workload.duration_ns is None or workload.plan.transactions_per_user is not None,
            "a round ends when the users have made their transactions",
        ),
    )
    return next((why for applies, why in reasons if applies), None)


def _refuse_idle(settings: Settings, why: str) -> None:
    for name, value in (("--precision", settings.precision), ("--budget", settings.budget_s)):
        if value is not None:
            raise ReplayerError(f"{name} has no effect: {why}", hint="leave it out")


def _until_decided(settings: Settings, workload: Workload, targets: int) -> Workload:
    """Return a workload with rounds for as long as the budget lasts; it may end earlier."""
    budget_s = DEFAULT_BUDGET_S if settings.budget_s is None else settings.budget_s
    precision = PRECISION if settings.precision is None else settings.precision
    length_ns, most = fit_rounds(targets, workload.plan.duration_ns or 0, budget_s)
    return replace(
        workload,
        plan=workload.plan.lasting(length_ns),
        duration_ns=length_ns * most,
        until=UntilDecided(precision=precision, budget_s=budget_s, most_rounds=most),
    )


def _make_workload(spawner: Spawner, settings: Settings, rounds: int) -> Workload:
    """Compile the scenario."""
    nothing = settings.scenario is None and settings.replay is None
    if nothing and spawner.has_scenario_users:
        message = "--scenario is missing"
        raise ReplayerError(
            message, hint="add --scenario FILE; list the shipped ones with 'replayer scenarios'"
        )
    _check_numbers(settings.users, settings.run_time_s)
    if settings.users is None and nothing and spawner.is_shaped:
        settings = replace(settings, users=SHAPED_USERS)
    return make_workload(settings, rounds)


def _spawn_rate(settings: Settings, workload: Workload) -> float:
    users, seconds = workload.plan.users, workload.ramp_up_ns / NS_PER_S
    if settings.spawn_rate is not None:
        return settings.spawn_rate
    return users / seconds if seconds else float(users)


def _check_numbers(users: int | None, run_time_s: int | None) -> None:
    wrong = None if users is None else wrong_users(users)
    if wrong is not None:
        raise ReplayerError(f"-u {wrong}")
    wrong = None if run_time_s is None else wrong_run_time(run_time_s)
    if wrong is not None:
        raise ReplayerError(f"-t {wrong}")
