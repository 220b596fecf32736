"""Locust's master and worker, as the room cluster needs them: our messages, and users."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from locust import __version__
from locust.env import Environment
from locust.rpc import Message
from locust.runners import STATE_INIT, MasterRunner, WorkerRunner

from replayer.cluster.worker_pool import Listener
from replayer.locust.master import Master, dispatch_to
from replayer.locust.spawner import LocustSpawner, options_of
from replayer.measure.health import RunWarning


class LocustMaster:
    """Locust's master, as the pool of its workers needs it."""

    def __init__(self, environment: Environment, runner: MasterRunner) -> None:
        self._environment = environment
        self._runner = runner

    def register_message(self, kind: str, listener: Listener) -> None:
        """Hear messages of a kind."""
        self._runner.register_message(kind, listener)

    def send_message(self, kind: str, data: dict[str, Any], worker: str) -> None:
        """Send a message to a worker."""
        self._runner.send_message(kind, data, client_id=worker)

    def order_of(self, worker: str) -> int:
        """Return which place a worker has among those that came."""
        return int(self._runner.get_worker_index(worker))

    def count_users(self, workers: Collection[str]) -> Mapping[str, int]:
        """Return how many users of each class these workers run."""
        counts: Counter[str] = Counter()
        for node in self._runner.clients.values():
            if node.id in workers:
                counts.update(node.user_classes_count)
        return counts

    def deal_to(self, numbers: Mapping[str, int]) -> None:
        """Deal users to these workers alone, in the order of their numbers."""
        dispatch_to(self._environment, numbers)

    def expect_workers(self, count: int) -> None:
        """Have Locust begin its test with so many workers."""
        options_of(self._environment).expect_workers = count

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what a reader of the figures must know of messages."""
        runner = self._runner
        return runner.unread.warnings() if isinstance(runner, Master) else ()

    def new_spawner(self) -> LocustSpawner:
        """Return what starts the users of one run."""
        return LocustSpawner(self._environment)

    def leave_workers(self) -> None:
        """Have Locust not end the workers when this process ends."""
        if isinstance(self._runner, Master):
            self._runner.leaves_workers = True

    def quit(self) -> None:
        """End the process."""
        self._runner.quit()


class LocustWorker:
    """Locust's worker, as a worker process needs it."""

    def __init__(self, environment: Environment, runner: WorkerRunner) -> None:
        self._environment = environment
        self._runner = runner
        self.name = runner.client_id
        self.stop_timeout_s = float(environment.stop_timeout or 0)
        environment.events.test_stop.add_listener(self._skip_pause)

    def register_message(self, kind: str, listener: Listener) -> None:
        """Hear messages of a kind."""
        self._runner.register_message(kind, listener)

    def send_message(self, kind: str, data: dict[str, Any]) -> None:
        """Send a message to the master."""
        self._runner.send_message(kind, data)

    def on_life(self, listener: Listener) -> None:
        """Hear of each heartbeat of the master."""
        self._environment.events.heartbeat_received.add_listener(listener)

    def get_ready(self) -> None:
        """Stop the users, and be ready for the next run."""
        self._runner.stop()
        self._runner.worker_state = STATE_INIT
        self.introduce()

    def introduce(self) -> None:
        """Have a new master's Locust know this worker."""
        self._runner.client.send(Message("client_ready", __version__, self._runner.client_id))

    def new_spawner(self) -> LocustSpawner:
        """Return what starts the users of one run."""
        spawner = LocustSpawner(self._environment)
        spawner.stop_timeout_s = self.stop_timeout_s
        return spawner

    def quit(self) -> None:
        """End the process."""
        self._runner.quit()

    def _skip_pause(self, **_: object) -> None:
        """Have Locust not sleep for its stop timeout: it would hear nothing meanwhile."""
        self._environment.stop_timeout = 0.0  # the next run brings it along
