"""A run on several workers, on the master's side: preparation, the run, and its end.

No user works in this process and it touches no target. It writes the run folder.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial

import gevent
from gevent import Greenlet
from locust.env import Environment
from locust.runners import MasterRunner

from replayer.cluster.agreement import Agreement, PoolTerms, agree, names_of
from replayer.cluster.outcome import Outcome, list_clients
from replayer.cluster.recorder import MergedRecorder
from replayer.cluster.worker import Worker
from replayer.cluster.worker_pool import WorkerPool
from replayer.cluster.workers_client import WorkersClient
from replayer.errors import EXIT_ENVIRONMENT, ReplayerError, exit_code_of
from replayer.locust.controller import PhaseController
from replayer.locust.local_run import make_request
from replayer.locust.master import Master, dispatch_to
from replayer.locust.stats_bridge import LocustStats
from replayer.measure.health import RunWarning, health_warnings
from replayer.measure.run import Target as TargetFacts
from replayer.measure.runfolder import RunFolder, create_run_folder
from replayer.run.exit_watchdog import last_words, tidies_for
from replayer.run.interruption import Interruption, Level
from replayer.run.options import Settings, options_of
from replayer.run.prepared_run import RunRequest
from replayer.run.progress import Observer
from replayer.run.results import Shown, end_run
from replayer.run.targets import NamedTarget
from replayer.run.writer import RunEnding, RunWriter, TargetsAsFound, load_facts, workload_facts

__all__ = ["ClusterRun", "PersistentPool", "dismiss", "gather_pool", "open_cluster_run", "open_run"]


CLOCK_ASKS = 5  # chosen: the quickest of five answers is hardly ever delayed
LOST = "figures go on without it; it counts again if it comes back"
FAREWELL_S = 5.0  # chosen: time for the workers to hear that there will be no run


class ClusterRun:
    """One run and its workers.

    Attributes:
        controller: Who leads through the segments.
        shown: What came of its results, once it is closed.
    """

    def __init__(
        self,
        request: RunRequest,
        agreement: Agreement,
        recorder: MergedRecorder,
        client: WorkersClient,
    ) -> None:
        self._request = request
        self._pool = agreement.pool
        self._recorder = recorder
        self._client = client
        self._watch: Greenlet[[], None] | None = None
        self._ended_with: tuple[RunWarning, ...] | None = None
        self.shown = Shown(0)

    def conduct(self, environment: Environment) -> None:
        """Get ready to begin."""
        self._environment = environment
        self.controller = PhaseController(self._request, environment, self._client)
        self._statistics = LocustStats(
            environment, self._recorder.begin_epoch_ns, tuple(self._client.targets)
        )
        self._recorder.hand_to(self._statistics.merge)
        if options_of(environment).headless:
            options_of(environment).expect_workers = len(self._pool.living)
            self._watch = gevent.spawn(self._wait_for_locust)

    @property
    def folder(self) -> RunFolder:
        """The run's records."""
        return self._recorder.writer.folder

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what is wrong with the workers until now, and once it is over with the run."""
        if self._ended_with is not None:
            return self._ended_with
        lost = (
            RunWarning(kind="other", message=f"{worker} is lost: it {worker.lost}", hint=LOST)
            for worker in self._pool.workers
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
        self.controller.start()

    def _hurry(self) -> None:
        """Have every user's call be interrupted; of a signal handler, and so not from within it."""
        gevent.spawn(self._pool.tell, "interrupt")

    def close(self) -> int:
        """Write and show the results, and return the exit code."""
        self.controller.finish()
        self._client.settle()  # if it ended before it began
        self._pool.close()
        self._request.progress.close()
        outcome, failure = self._client.outcome or Outcome(), self.controller.failure
        failure = failure or outcome.failure or self._recorder.record_failure()
        interrupted = self._request.interruption.level > Level.NONE
        if failure is None and not interrupted:
            failure = self._client.find_loss()
        writer = self._recorder.writer
        if outcome.replay is not None:
            writer.note_replay(results=outcome.replay)
        ending = RunEnding(
            status="failed" if failure else "interrupted" if interrupted else "finished",
            health=outcome.health,
            failure=failure,
            warnings=(*outcome.warnings, *self._unread()),
            clients=outcome.clients,
            losses=outcome.losses,
            task_failures=(*self.controller.shape_failures, *outcome.task_failures),
            users=self.controller.shaped_users,
            user_kinds=self.controller.user_kinds,
        )
        self.shown = shown = end_run(writer, ending, self._request.settings, failure)
        self._ended_with = (*ending.warnings, *self._health_warnings(outcome))
        self.controller.failure = next(iter(shown.problems), None)
        code = shown.exit_code
        last_words()
        self._request.interruption.settle()
        self._statistics.release()
        self._pool.release()
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
        while self._pool.living:
            self._pool.look()
            options.expect_workers = len(self._pool.living)
            gevent.sleep(0.1)
        if runner is not None:
            runner.quit()


def open_cluster_run(
    environment: Environment, settings: Settings, observer: Observer
) -> ClusterRun:
    """Gather the workers, have them agree, and have everything laid out; Locust waits meanwhile.

    Raises:
        ReplayerError: Something refuses, here or on a worker.
    """
    runner, options = environment.runner, options_of(environment)
    assert isinstance(runner, MasterRunner)  # noqa: S101 - whoever calls has looked
    interruption = Interruption(tidies_for(environment.stop_timeout))
    interruption.watch()
    pool = WorkerPool(runner, interruption, options.worker_timeout)
    pool.watch_forks(options.processes or 0)
    terms = PoolTerms(options.run_time, options.worker_timeout)
    try:
        pool.gather(options.expect_workers, options.expect_workers_max_wait, observer.progress.say)
        names = names_of(pool, settings)
        # Locust tells no paths to workers, and so a master's targets have none.
        targets = tuple(NamedTarget(name, ()) for name in names)
        request = make_request(environment, settings, observer, targets, interruption)
        agreement = agree(pool, request, terms, observer.watch)
        return open_run(environment, request, agreement)
    except BaseException as error:
        observer.progress.close()
        dismiss(pool, error)
        raise


def open_run(environment: Environment, request: RunRequest, agreement: Agreement) -> ClusterRun:
    """Make the run folder, and have the workers make theirs, lay out and start their engines.

    Raises:
        ReplayerError: Something refuses, here or on a worker.
    """
    settings, pool = request.settings, agreement.pool
    runner, options = environment.runner, options_of(environment)
    assert isinstance(runner, MasterRunner)  # noqa: S101 - see above
    folder, workload = create_run_folder(settings.output, settings.runs), request.workload
    writer = RunWriter(folder, workload.plan.document())
    targets = tuple(TargetFacts.model_validate(each) for each in agreement.targets)
    found = TargetsAsFound(targets, agreement.machine, agreement.procedure)
    writer.begin(workload_facts(workload, settings.command, request.rounds, found))
    last_words(partial(_last_words, writer, pool))
    names = tuple(target.name for target in request.targets)
    recorder = MergedRecorder(writer, pool, request.progress)
    client = WorkersClient(runner, recorder, names, options.on_lost_worker)
    try:
        _lay_out(client, agreement, writer.folder.id, request)
        recorder.begin()
        _make_engines(pool, writer)
        client.check_losses()
        for worker in pool.living:
            _set_clock(pool, worker, recorder.begin_ns)
        client.check_losses()
        writer.add_clients(list_clients(pool, recorder))
    except BaseException as error:
        interrupted = request.interruption.level > Level.NONE
        writer.end(RunEnding("interrupted" if interrupted else "failed", failure=error))
        raise
    recorder.hand_to(client.ledger.add)
    recorder.hand_to(agreement.watch)
    dispatch_to(environment, {worker.id: worker.number for worker in pool.workers})
    run = ClusterRun(request, agreement, recorder, client)
    run.conduct(environment)
    return run


def _lay_out(client: WorkersClient, agreement: Agreement, run: str, request: RunRequest) -> None:
    """Have one worker make and fill the folders, and the others find them."""
    pool = agreement.pool
    primary = pool.primary
    if primary is None:
        client.check_losses()
        return
    pool.creator = None if request.settings.reuse else primary
    folders = pool.order(primary, "create", run=run)
    others = [worker for worker in pool.living if worker is not primary]
    pool.heirs = tuple(pool.ask(others, "join", {"run": run, "folders": folders}))
    client.check_losses()
    for target, found in enumerate(request.targets):
        with request.progress.work(f"{primary} lays out {found.name}"):
            client.lay_out(target)
    pool.order_all(pool.living, "remount")


def _make_engines(pool: WorkerPool, writer: RunWriter) -> None:
    found = pool.ask(pool.living, "engine")
    for worker, said in found.items():
        worker.folder = said["folder"]
    writer.add_to_replay(lanes=max((said["lanes"] for said in found.values()), default=None))


def _set_clock(pool: WorkerPool, worker: Worker, begin_ns: int) -> None:
    """Learn how a worker's clock differs from ours, from the quickest of some answers."""
    best: tuple[int, int] | None = None
    for _ in range(CLOCK_ASKS):
        sent_ns = time.monotonic_ns()
        answers: list[int] = pool.order_all([worker], "clock")
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


def _last_words(writer: RunWriter, pool: WorkerPool) -> Iterator[str]:
    """Bring the run folder to its end, where the process has no time to do more."""
    if writer.run is not None and writer.run.status == "running":
        error = ForcedEndError("its process was told to end, and had to be ended by force")
        writer.end(RunEnding("failed", failure=error))
    yield f"results so far are in {writer.folder.path}"
    if pool.creator is not None:
        yield pool.creator.leaves


def dismiss(pool: WorkerPool, error: BaseException) -> None:
    """Tell the workers that there will be no run; what they made they remove."""
    text = str(error) if isinstance(error, ReplayerError) else type(error).__name__
    is_removed = pool.dismiss(text, exit_code_of(error), FAREWELL_S)
    if pool.creator is not None and not is_removed:
        _say(f"replayer: {pool.creator.leaves}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class PersistentPool:
    """The workers of one page.

    Args:
        environment: Locust's.
        runner: Its runner.
        settings: The command line's: its targets are those that every worker must have.
    """

    def __init__(self, environment: Environment, runner: MasterRunner, settings: Settings) -> None:
        self._environment = environment
        self._settings = settings
        options = options_of(environment)
        self._pool = WorkerPool(runner, Interruption(), options.worker_timeout, "wait")
        self._pool.watch_forks(options.processes or 0)

    def open(self, request: RunRequest, observer: Observer, run_time_s: int | None) -> ClusterRun:
        """Have those who are there agree on a run and prepare it.

        Args:
            request: What shall be run, on targets that are names.
            observer: Who is told.
            run_time_s: As the form had it.

        Raises:
            ReplayerError: Too few are there, or one refuses.
        """
        options, pool = options_of(self._environment), self._pool
        pool.renew(request.interruption)
        try:
            with observer.progress.work(f"waiting for {options.expect_workers} or more workers"):
                pool.gather(
                    options.expect_workers, options.expect_workers_max_wait, observer.progress.say
                )
            names_of(pool, self._settings)
            terms = PoolTerms(run_time_s, options.worker_timeout)
            agreement = agree(pool, request, terms, observer.watch)
            return open_run(self._environment, request, agreement)
        except BaseException as error:
            dismiss(pool, error)
            raise


def gather_pool(environment: Environment, settings: Settings) -> PersistentPool | None:
    """Return the workers of a page; None where it plays its runs by itself."""
    runner = environment.runner
    return (
        PersistentPool(environment, runner, settings) if isinstance(runner, MasterRunner) else None
    )
