"""Locust's worker: it carries our messages, and is ready for one run after the other."""

from collections.abc import Callable
from typing import Any

from locust import __version__
from locust.env import Environment
from locust.rpc import Message
from locust.runners import STATE_INIT, WorkerRunner

from replayer.locust.spawner import LocustSpawner


class LocustWorker:
    """Locust's worker, as a worker process needs it.

    Attributes:
        name: Locust's name of this worker.
        stop_timeout_s: How long users may take to end.
    """

    def __init__(self, environment: Environment, runner: WorkerRunner) -> None:
        self._environment = environment
        self._runner = runner
        self.name = runner.client_id
        self.stop_timeout_s = float(environment.stop_timeout or 0)
        environment.events.test_stop.add_listener(self._skip_pause)

    def register_message(self, kind: str, listener: Callable[..., None]) -> None:
        """Hear messages of a kind."""
        self._runner.register_message(kind, listener)

    def send_message(self, kind: str, data: dict[str, Any]) -> None:
        """Send a message to the master."""
        self._runner.send_message(kind, data)

    def on_life(self, listener: Callable[..., None]) -> None:
        """Hear of each heartbeat of the master."""
        self._environment.events.heartbeat_received.add_listener(listener)

    def get_ready(self) -> None:
        """Stop the users, and be ready for the next run."""
        self._runner.stop()
        self._runner.worker_state = STATE_INIT
        # A new master does not know us yet.
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
