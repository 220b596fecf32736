"""Dealing Locust's users to the workers that a run began with, and to no others.

Worker i of n slots the users i, i + n, i + 2n …: the same turns that Locust deals in. A worker that
is lost takes its users along, and one that comes later gets none: Locust would deal all users anew,
and two of them would work under one number.
"""

from collections.abc import Mapping, Sequence

from locust import User
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.runners import WorkerNode

__all__ = ["dispatch_to", "users_of"]


def users_of(number: int, workers: int, users: int) -> range:
    """Return the users that a worker runs."""
    return range(number, users, workers)


def dispatch_to(environment: Environment, numbers: Mapping[str, int]) -> None:
    """Have Locust deal to these workers, in the order of their numbers.

    Args:
        environment: The master's.
        numbers: The number of each worker, by Locust's name of it.
    """
    dispatchers: list[_FixedDispatcher] = []

    def deal(worker_nodes: list[WorkerNode], user_classes: list[type[User]]) -> UsersDispatcher:
        """Return the run's dispatcher; Locust asks anew after a worker was lost."""
        if not dispatchers:
            there = {node.id: node for node in worker_nodes}
            # Locust may not know one that was lost before: its users are nobody else's.
            nodes = [there.get(name) or WorkerNode(name) for name in numbers]
            dispatchers.append(_FixedDispatcher(nodes, user_classes, numbers))
        return dispatchers[0]

    environment.dispatcher_class = deal  # type: ignore[assignment] # it is only ever called


class _FixedDispatcher(UsersDispatcher):
    """Locust's own dispatcher, without its changes of mind."""

    def __init__(
        self, nodes: Sequence[WorkerNode], users: list[type[User]], numbers: Mapping[str, int]
    ) -> None:
        self._numbers = numbers
        super().__init__(list(nodes), users)

    @property
    def dispatch_in_progress(self) -> bool:
        """Whether to leave users where they are: Locust asks before it deals anew."""
        return True

    def _sort_workers(self) -> None:
        self._worker_nodes = sorted(self._worker_nodes, key=lambda node: self._numbers[node.id])

    def add_worker(self, worker_node: WorkerNode) -> None:
        """Deal to nobody new; one that was lost and is back has its users still."""

    def remove_worker(self, worker_node: WorkerNode) -> None:
        """Deal nobody's users to others."""
