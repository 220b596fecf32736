"""A run as its master leads it: agreement, preparation, and the end with everybody's results.

No user works here and no target is touched: that is the workers'. The run folder is written here.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial

import gevent
from gevent import Greenlet
from locust.env import Environment
from locust.runners import MasterRunner

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError, exit_code_of
from replayer.load.audience import Audience
from replayer.load.chronicle import Chronicle, Ending, load_facts
from replayer.load.conductor import Conductor
from replayer.load.exit_watchdog import last_words, tidies_for
from replayer.load.fleet.agreement import Agreement, Terms, agree, names_of
from replayer.load.fleet.dealing import deal_to
from replayer.load.fleet.distant import DistantBand
from replayer.load.fleet.locust_master import Master
from replayer.load.fleet.minutes import Minutes
from replayer.load.fleet.muster import Muster
from replayer.load.fleet.outcome import Outcome, list_clients
from replayer.load.fleet.worker import Worker
from replayer.load.interruption import Interruption, Level
from replayer.load.locust_statistics import Statistics
from replayer.load.options import Settings, options_of
from replayer.load.results import Shown, end_run
from replayer.load.session import Request
from replayer.load.stage import make_request
from replayer.load.targets import Target
from replayer.measure.health import RunWarning, health_warnings
from replayer.measure.run import Target as TargetFacts
from replayer.measure.runfolder import RunFolder, create_run_folder

__all__ = ["Leader", "dismiss", "open_leader", "open_run"]

CLOCK_ASKS = 5  # chosen: the quickest of five answers is hardly ever delayed
LOST = "figures go on without it; it counts again if it comes back"
FAREWELL_S = 5.0  # chosen: time for the workers to hear that there will be no run


class Leader:
    """One run and its workers.

    Attributes:
        conductor: Who leads through the segments.
        shown: What came of its results, once it is closed.
    """

    def __init__(
        self, request: Request, agreement: Agreement, minutes: Minutes, band: DistantBand
    ) -> None:
        self._request = request
        self._muster = agreement.muster
        self._minutes = minutes
        self._band = band
        self._watch: Greenlet[[], None] | None = None
        self._ended_with: tuple[RunWarning, ...] | None = None
        self.shown = Shown(0)

    def conduct(self, environment: Environment) -> None:
        """Get ready to begin."""
        self._environment = environment
        self.conductor = Conductor(self._request, environment, self._band)
        self._statistics = Statistics(
            environment, self._minutes.begin_epoch_ns, tuple(self._band.targets)
        )
        self._minutes.hand_to(self._statistics.merge)
        if options_of(environment).headless:
            options_of(environment).expect_workers = len(self._muster.living)
            self._watch = gevent.spawn(self._wait_for_locust)

    @property
    def folder(self) -> RunFolder:
        """The run's records."""
        return self._minutes.chronicle.folder

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what is wrong with the workers until now, and once it is over with the run."""
        if self._ended_with is not None:
            return self._ended_with
        lost = (
            RunWarning(kind="other", message=f"{worker} is lost: it {worker.lost}", hint=LOST)
            for worker in self._muster.workers
            if worker.lost is not None and not worker.handed_over
        )
        return (*lost, *self._unread())

    def start(self) -> None:
        """Locust begins its test."""
        if self._watch is not None:
            self._watch.kill()
        interruption = self._request.interruption
        interruption.watch()  # Locust has taken SIGTERM meanwhile
        interruption.on_urgent(self._hurry)
        self.conductor.start()

    def _hurry(self) -> None:
        """Have every user's call be interrupted; of a signal handler, and so not from within it."""
        gevent.spawn(self._muster.tell, "interrupt")

    def close(self) -> int:
        """Write and show the results, and return the exit code."""
        self.conductor.finish()
        self._band.settle()  # if it ended before it began
        self._muster.close()
        self._request.progress.close()
        outcome, failure = self._band.outcome or Outcome(), self.conductor.failure
        failure = failure or outcome.failure or self._minutes.record_failure()
        interrupted = self._request.interruption.level > Level.NONE
        if failure is None and not interrupted:
            failure = self._band.find_loss()
        chronicle = self._minutes.chronicle
        if outcome.replay is not None:
            chronicle.note_replay(results=outcome.replay)
        ending = Ending(
            status="failed" if failure else "interrupted" if interrupted else "finished",
            health=outcome.health,
            failure=failure,
            warnings=(*outcome.warnings, *self._unread()),
            clients=outcome.clients,
            losses=outcome.losses,
            task_failures=(*self.conductor.shape_failures, *outcome.task_failures),
            users=self.conductor.shaped_users,
            user_kinds=self.conductor.user_kinds,
        )
        self.shown = shown = end_run(chronicle, ending, self._request.settings, failure)
        self._ended_with = (*ending.warnings, *self._health_warnings(outcome))
        self.conductor.failure = next(iter(shown.problems), None)
        code = shown.exit_code
        last_words()
        self._request.interruption.settle()
        self._statistics.release()
        self._muster.release()
        for line in outcome.leavings:
            _say(line)
        if outcome.left and (not code or self._request.interruption.has_abandoned):
            code = EXIT_ENVIRONMENT
            self.shown = Shown(code, why="; ".join(outcome.leavings))
            _say(f"replayer: exit code {code}, as not everything could be removed")
        return code

    def _unread(self) -> tuple[RunWarning, ...]:
        runner = self._environment.runner
        return runner.unread.warnings() if isinstance(runner, Master) else ()

    def _health_warnings(self, outcome: Outcome) -> tuple[RunWarning, ...]:
        if outcome.health is None:
            return ()
        load = load_facts(self._request.workload, self._request.rounds)
        machines = (client.machine for client in outcome.clients)
        return health_warnings(outcome.health, load, *machines)

    def _wait_for_locust(self) -> None:
        """Have Locust not wait for workers that are lost before it begins."""
        options = options_of(self._environment)
        runner = self._environment.runner
        while self._muster.living:
            self._muster.look()
            options.expect_workers = len(self._muster.living)
            gevent.sleep(0.1)
        if runner is not None:
            runner.quit()


def open_leader(environment: Environment, settings: Settings, audience: Audience) -> Leader:
    """Gather the workers, have them agree, and have everything laid out; Locust waits meanwhile.

    Raises:
        ReplayerError: Something refuses, here or on a worker.
    """
    runner, options = environment.runner, options_of(environment)
    assert isinstance(runner, MasterRunner)  # noqa: S101 - whoever calls has looked
    interruption = Interruption(tidies_for(environment.stop_timeout))
    interruption.watch()
    muster = Muster(runner, interruption, options.worker_timeout)
    muster.watch_forks(options.processes or 0)
    terms = Terms(options.run_time, options.worker_timeout)
    try:
        muster.gather(
            options.expect_workers, options.expect_workers_max_wait, audience.progress.say
        )
        names = names_of(muster, settings)
        # Locust tells no paths to workers, and so a master's targets have none.
        targets = tuple(Target(name, ()) for name in names)
        request = make_request(environment, settings, audience, targets, interruption)
        agreement = agree(muster, request, terms, audience.watch)
        return open_run(environment, request, agreement)
    except BaseException as error:
        audience.progress.close()
        dismiss(muster, error)
        raise


def open_run(environment: Environment, request: Request, agreement: Agreement) -> Leader:
    """Make the run folder, and have the workers make theirs, lay out and start their engines.

    Raises:
        ReplayerError: Something refuses, here or on a worker.
    """
    settings, muster = request.settings, agreement.muster
    runner, options = environment.runner, options_of(environment)
    assert isinstance(runner, MasterRunner)  # noqa: S101 - see above
    chronicle = Chronicle(create_run_folder(settings.output, settings.runs), request.workload)
    chronicle.begin_with(
        tuple(TargetFacts.model_validate(each) for each in agreement.targets),
        request.rounds,
        agreement.procedure,
        agreement.machine,
    )
    last_words(partial(_last_words, chronicle, muster))
    names = tuple(target.name for target in request.targets)
    minutes = Minutes(chronicle, muster, request.progress)
    band = DistantBand(runner, minutes, names, options.on_lost_worker)
    try:
        _lay_out(band, agreement, chronicle.folder.id, request)
        minutes.begin()
        _make_engines(muster, chronicle)
        band.check_losses()
        for worker in muster.living:
            _set_clock(muster, worker, minutes.begin_ns)
        band.check_losses()
        chronicle.add_clients(list_clients(muster, minutes))
    except BaseException as error:
        interrupted = request.interruption.level > Level.NONE
        chronicle.end(Ending("interrupted" if interrupted else "failed", failure=error))
        raise
    minutes.hand_to(band.ledger.add)
    minutes.hand_to(agreement.watch)
    deal_to(environment, {worker.id: worker.number for worker in muster.workers})
    leader = Leader(request, agreement, minutes, band)
    leader.conduct(environment)
    return leader


def _lay_out(band: DistantBand, agreement: Agreement, run: str, request: Request) -> None:
    """Have one worker make and fill the folders, and the others find them."""
    muster = agreement.muster
    keeper = muster.keeper
    if keeper is None:
        band.check_losses()
        return
    muster.maker = None if request.settings.reuse else keeper
    folders = muster.order(keeper, "create", run=run)
    others = [worker for worker in muster.living if worker is not keeper]
    muster.heirs = tuple(muster.ask(others, "join", {"run": run, "folders": folders}))
    band.check_losses()
    for target, found in enumerate(request.targets):
        with request.progress.work(f"{keeper} lays out {found.name}"):
            band.lay_out(target)
    muster.order_all(muster.living, "remount")


def _make_engines(muster: Muster, chronicle: Chronicle) -> None:
    found = muster.ask(muster.living, "engine")
    for worker, said in found.items():
        worker.folder = said["folder"]
    chronicle.add_to_replay(lanes=max((said["lanes"] for said in found.values()), default=None))


def _set_clock(muster: Muster, worker: Worker, begin_ns: int) -> None:
    """Learn how a worker's clock differs from ours, from the quickest of some answers."""
    best: tuple[int, int] | None = None
    for _ in range(CLOCK_ASKS):
        sent_ns = time.monotonic_ns()
        answers: list[int] = muster.order_all([worker], "clock")
        came_ns = time.monotonic_ns()
        for there_ns in answers:  # one, or none of a worker that was lost meanwhile
            middle_ns = (sent_ns + came_ns) // 2 - begin_ns
            found = (came_ns - sent_ns, middle_ns - there_ns)
            best = found if best is None else min(best, found)
    if best is not None:
        worker.within_ns, worker.offset_ns = best[0] // 2, best[1]


class ForcedEndError(ReplayerError):
    """A run whose process had to be ended before it had gathered everything."""

    exit_code = EXIT_ENVIRONMENT


def _last_words(chronicle: Chronicle, muster: Muster) -> Iterator[str]:
    """Bring the run folder to its end, where the process has no time to do more."""
    if chronicle.run is not None and chronicle.run.status == "running":
        error = ForcedEndError("its process was told to end, and had to be ended by force")
        chronicle.end(Ending("failed", failure=error))
    yield f"results so far are in {chronicle.folder.path}"
    if muster.maker is not None:
        yield muster.maker.leaves


def dismiss(muster: Muster, error: BaseException) -> None:
    """Tell the workers that there will be no run; what they made they remove."""
    text = str(error) if isinstance(error, ReplayerError) else type(error).__name__
    is_removed = muster.dismiss(text, exit_code_of(error), FAREWELL_S)
    if muster.maker is not None and not is_removed:
        _say(f"replayer: {muster.maker.leaves}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
