"""The workers of a web page: they stay from run to run, and late ones are there for the next one.

What is run is the desk's; how a run is led is the leader's.
"""

from locust.env import Environment
from locust.runners import MasterRunner

from replayer.load.audience import Audience
from replayer.load.fleet.agreement import Terms, agree, names_of
from replayer.load.fleet.leader import Leader, dismiss, open_run
from replayer.load.fleet.muster import Muster
from replayer.load.interruption import Interruption
from replayer.load.options import Settings, options_of
from replayer.load.session import Request

__all__ = ["Company", "gather_company"]


class Company:
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
        self._muster = Muster(runner, Interruption(), options.worker_timeout, "wait")
        self._muster.watch_forks(options.processes or 0)

    def open(self, request: Request, audience: Audience, run_time_s: int | None) -> Leader:
        """Have those who are there agree on a run and prepare it.

        Args:
            request: What shall be run, on targets that are names.
            audience: Who is told.
            run_time_s: As the form had it.

        Raises:
            ReplayerError: Too few are there, or one refuses.
        """
        options, muster = options_of(self._environment), self._muster
        muster.renew(request.interruption)
        try:
            with audience.progress.work(f"waiting for {options.expect_workers} or more workers"):
                muster.gather(
                    options.expect_workers, options.expect_workers_max_wait, audience.progress.say
                )
            names_of(muster, self._settings)
            terms = Terms(run_time_s, options.worker_timeout)
            agreement = agree(muster, request, terms, audience.watch)
            return open_run(self._environment, request, agreement)
        except BaseException as error:
            dismiss(muster, error)
            raise


def gather_company(environment: Environment, settings: Settings) -> Company | None:
    """Return the workers of a page; None where it plays its runs by itself."""
    runner = environment.runner
    return Company(environment, runner, settings) if isinstance(runner, MasterRunner) else None
