"""A run on several workers, on the master's side: preparation, the run, and its end.

No user works in this process and it touches no target. It writes the run folder.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial

import gevent
from gevent import Greenlet

from replayer.cluster.agreement import Agreement, agree, names_of
from replayer.cluster.outcome import Outcome, list_clients
from replayer.cluster.recorder import MergedRecorder
from replayer.cluster.worker import Worker
from replayer.cluster.worker_pool import MasterPort, WorkerPool
from replayer.cluster.workers_client import WorkersClient
from replayer.errors import OutsideError, ReplayerError, exit_code_of
from replayer.measure.health import RunWarning, health_warnings
from replayer.measure.run import Target as TargetFacts
from replayer.measure.runfolder import create_run_folder
from replayer.run.caches import refuse_idle_remount
from replayer.run.controller import ControlledRun
from replayer.run.exit_watchdog import last_words, tidies_for
from replayer.run.interruption import Interruption, Level
from replayer.run.local_run import make_request
from replayer.run.options import Settings
from replayer.run.prepared_run import RunRequest
from replayer.run.progress import Observer
from replayer.run.roles import ClusterSettings
from replayer.run.targets import NamedTarget
from replayer.run.writer import RunEnding, RunWriter, TargetsAsFound, describe_run, load_facts

CLOCK_ASKS = 5  # chosen: the quickest of five answers is hardly ever delayed
LOST = "figures continue without it; it counts again if it returns"
FAREWELL_S = 5.0  # chosen: time for the workers to hear that there will be no run


class ClusterRun(ControlledRun):
    """A run whose users work in other processes."""

    def __init__(
        self,
        request: RunRequest,
        agreement: Agreement,
        recorder: MergedRecorder,
        client: WorkersClient,
    ) -> None:
        super().__init__(request, client, recorder.writer)
        self._pool = agreement.pool
        self._recorder = recorder
        self._client = client
        self._watch: Greenlet[[], None] | None = None
        self._ended_with: tuple[RunWarning, ...] | None = None
        self._statistics = request.spawner.open_statistics(recorder.begin_epoch_ns, client.targets)
        recorder.hand_to(self._statistics.merge)
        if not agreement.terms.has_page:
            self._pool.port.expect_workers(len(self._pool.living))
            self._watch = gevent.spawn(self._wait_for_locust)

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what is wrong with the workers until now, and once it is over with the run."""
        if self._ended_with is not None:
            return self._ended_with
        lost = (
            RunWarning(kind="other", message=f"{worker} is lost: it {worker.lost}", hint=LOST)
            for worker in self._pool.workers
            if worker.lost is not None and not worker.handed_over
        )
        return (*lost, *self._pool.port.warnings())

    def start(self) -> None:
        """Begin, as the users come."""
        if self._watch is not None:
            self._watch.kill()
        super().start()

    def _hurry(self) -> None:
        gevent.spawn(self._pool.tell, "interrupt")  # a signal handler must not switch

    def close(self) -> int:
        """Write and show the results, and return the exit code."""
        self.controller.finish()
        self._client.settle()  # if it ended before it began
        self._pool.close()
        self._pool.release()
        self.request.progress.close()
        outcome = self._client.outcome or Outcome()
        failure = self.controller.failure or outcome.failure or self._recorder.record_failure()
        if failure is None and self.request.interruption.level is Level.NONE:
            failure = self._client.find_loss()
        if outcome.replay is not None:
            self._writer.note_replay(results=outcome.replay)
        ending = self._end(
            failure,
            outcome.task_failures,
            health=outcome.health,
            warnings=(*outcome.warnings, *self._pool.port.warnings()),
            clients=outcome.clients,
            losses=outcome.leavings.losses,
        )
        self._ended_with = (*ending.warnings, *self._health_warnings(outcome))
        last_words()
        self.request.interruption.settle()
        self._statistics.release()
        return self._say_leavings(outcome.leavings)

    def _health_warnings(self, outcome: Outcome) -> tuple[RunWarning, ...]:
        if outcome.health is None:
            return ()
        load = load_facts(self.request.workload, self.request.rounds)
        machines = (client.machine for client in outcome.clients)
        return health_warnings(outcome.health, load, *machines)

    def _wait_for_locust(self) -> None:
        """Have Locust not wait for workers that are lost before it begins."""
        while self._pool.living:
            self._pool.look()
            self._pool.port.expect_workers(len(self._pool.living))
            gevent.sleep(0.1)
        self._pool.port.quit()


def open_cluster_run(
    port: MasterPort, settings: Settings, terms: ClusterSettings, observer: Observer
) -> ClusterRun:
    """Gather the workers, have them agree, and have everything laid out; Locust waits meanwhile.

    Raises:
        ReplayerError: Something refuses, here or on a worker.
    """
    spawner = port.new_spawner()
    interruption = Interruption(tidies_for(spawner.stop_timeout_s))
    interruption.watch()
    pool = WorkerPool(port, interruption, terms.timeout_s, "stay" if terms.keep_workers else "go")
    pool.watch_forks(terms.forks)
    try:
        pool.gather(terms.expect_workers, terms.within_s, observer.progress.say)
        names = names_of(pool, settings)
        # Locust tells no paths to workers, and so a master's targets have none.
        targets = tuple(NamedTarget(name, ()) for name in names)
        request = make_request(spawner, settings, observer, interruption, targets)
        refuse_idle_remount(request.workload.cache, settings.remount_command)
        return open_run(request, agree(pool, request, terms, observer.watch))
    except BaseException as error:
        observer.progress.close()
        dismiss(pool, error)
        raise


def open_run(request: RunRequest, agreement: Agreement) -> ClusterRun:
    """Make the run folder, and have the workers make theirs, lay out and start their engines.

    Raises:
        ReplayerError: Something refuses, here or on a worker.
    """
    settings, pool = request.settings, agreement.pool
    folder, workload = create_run_folder(settings.output, settings.runs), request.workload
    targets = tuple(TargetFacts.model_validate(each) for each in agreement.targets)
    found = TargetsAsFound(targets, agreement.machine, agreement.procedure)
    run = describe_run(folder.id, workload, settings.command, request.rounds, found)
    writer = RunWriter(folder, workload.plan.document(), run)
    last_words(partial(_last_words, writer, pool))
    recorder = MergedRecorder(writer, pool, request.progress)
    client = WorkersClient(recorder, request, agreement.terms.on_lost_worker)
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
    pool.port.deal_to({worker.id: worker.number for worker in pool.workers})
    return ClusterRun(request, agreement, recorder, client)


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


def _last_words(writer: RunWriter, pool: WorkerPool) -> Iterator[str]:
    """Bring the run folder to its end, where the process has no time to do more."""
    if writer.run.status == "running":
        error = OutsideError("it did not end in time and was killed")
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
    """The workers of one page."""

    def __init__(self, port: MasterPort, settings: Settings, terms: ClusterSettings) -> None:
        self._settings = settings
        """The command line's: its targets are those that every worker must have."""
        self._terms = terms
        self._pool = WorkerPool(port, Interruption(), terms.timeout_s, "wait")
        self._pool.watch_forks(terms.forks)

    def open(self, request: RunRequest, observer: Observer) -> ClusterRun:
        """Have those who are there agree on a run, on targets that are names, and prepare it.

        Raises:
            ReplayerError: Too few are there, or one refuses.
        """
        pool, terms = self._pool, self._terms
        pool.renew(request.interruption)
        try:
            with observer.progress.work(f"waiting for {terms.expect_workers} or more workers"):
                pool.gather(terms.expect_workers, terms.within_s, observer.progress.say)
            names_of(pool, self._settings)
            return open_run(request, agree(pool, request, terms, observer.watch))
        except BaseException as error:
            dismiss(pool, error)
            raise
