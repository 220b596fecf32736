"""The workers of a web page: they stay from run to run, and late ones are there for the next one.

What is run is the run control's; how a run is led is the leader's.
"""

from locust.env import Environment
from locust.runners import MasterRunner

from replayer.cluster.agreement import PoolTerms, agree, names_of
from replayer.cluster.cluster_run import ClusterRun, dismiss, open_run
from replayer.cluster.worker_pool import WorkerPool
from replayer.run.interruption import Interruption
from replayer.run.observer import Observer
from replayer.run.options import Settings, options_of
from replayer.run.prepared_run import RunRequest

__all__ = ["PersistentPool", "gather_pool"]


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
