"""Locust as the spawner of a run: it starts the users, stops them, and keeps its own statistics."""

import argparse
from collections.abc import Mapping

import gevent
from locust import stats
from locust.env import Environment
from locust.runners import STATE_STOPPED, LocalRunner, MasterRunner, WorkerRunner

from replayer.errors import ReplayerError
from replayer.locust import users
from replayer.locust.failures import ShapeWatch, SpawnWatch
from replayer.locust.stats_bridge import LocustStats
from replayer.measure.clients import TaskFailure, UserKind
from replayer.plan.document import Plan
from replayer.run.prepared_run import RunRequest
from replayer.run.spawner import UserContext

CSV_LATE_S = 0.05  # chosen: Locust's writer of CSV files wakes within it


class LocustSpawner:
    """Locust's users, for one run."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._shape = ShapeWatch(environment)
        self._spawns = SpawnWatch(environment)
        self._most_of: dict[str, int] = {}
        self.stop_timeout_s = float(environment.stop_timeout or 0)
        self.is_shaped = environment.shape_class is not None
        self.has_scenario_users = users.has_scenario_users(environment)
        self.has_file_users = users.has_file_users(environment)
        self.has_python_users = users.has_python_users(environment)
        self.has_all = False
        """Whether all users are started, or all of this stage of a load shape."""

    @property
    def user_kinds(self) -> tuple[UserKind, ...]:
        """How many users of each kind there were at most, where a locustfile brought some."""
        return users.list_kinds(self._environment, self._most_of)

    @property
    def shape_failures(self) -> tuple[TaskFailure, ...]:
        """What the load shape has raised, which ends it."""
        return self._shape.found

    def note_all(self) -> None:
        """Note that Locust has started all users, or all of this stage of a load shape."""
        runner = self._environment.runner
        for name, count in ({} if runner is None else runner.target_user_classes_count).items():
            self._most_of[name] = max(self._most_of.get(name, 0), count)
        self.has_all = True

    def refuse_mixtures(self, plan: Plan, targets: int, rounds: int) -> None:
        """Refuse a plan, or turns, that the users cannot take part in."""
        users.refuse_mixtures(self._environment, plan, targets, rounds)

    def connect(self, context: UserContext) -> None:
        """Let the users of this process find their run."""
        users.join(self._environment, context)

    def open_statistics(self, begin_epoch_ns: int, targets: tuple[str, ...]) -> LocustStats:
        """Fill Locust's statistics from now on."""
        return LocustStats(self._environment, begin_epoch_ns, targets)

    def check(self) -> None:
        """Refuse to go on where users that were asked for are not started."""
        self._spawns.check()

    def native_users(self, counts: Mapping[str, int] | None = None) -> int:
        """Return how many users have a native thread each."""
        runner = self._environment.runner
        if counts is None:
            counts = {} if runner is None else runner.user_classes_count
        return users.count_native(self._environment, counts)

    def stop_users(self) -> None:
        """Stop the users of this process; the run goes on."""
        runner = self._environment.runner
        if isinstance(runner, LocalRunner):
            runner.stop()
        elif isinstance(runner, WorkerRunner):
            runner.stop_users(runner.user_classes_count)

    def end_test(self) -> None:
        """End Locust's test; with a page, others may follow."""
        options = options_of(self._environment)
        if options.csv_prefix:
            gevent.sleep(stats.CSV_STATS_INTERVAL_SEC + CSV_LATE_S)
        runner = self._environment.runner
        if runner is not None and options.headless:
            runner.quit()
        elif runner is not None:
            runner.stop()


def begin_test(environment: Environment, request: RunRequest) -> None:
    """Have Locust start its test, for a run that the page has ordered."""
    runner = environment.runner
    if not isinstance(runner, LocalRunner | MasterRunner):
        return
    if runner.user_count == 0:
        runner.update_state(STATE_STOPPED)  # whatever a key pressed in the terminal has left
    if environment.shape_class is not None:
        runner.start_shape()
    else:
        runner.start(request.users, request.spawn_rate)


def hand_load_over(environment: Environment, request: RunRequest) -> None:
    """Have Locust, which starts the test of a command line by itself, start this run's users."""
    options = options_of(environment)
    options.num_users, options.spawn_rate = request.users, request.spawn_rate
    # Locust would count the time of laying out, and cut rounds short: the controller keeps time.
    options.run_time = None


def options_of(environment: Environment) -> argparse.Namespace:
    """Return the command line that Locust has parsed."""
    if environment.parsed_options is None:
        message = "this Locust environment has no command line: start it with Locust's main()"
        raise ReplayerError(message)
    parsed: argparse.Namespace = environment.parsed_options
    return parsed
