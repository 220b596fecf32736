"""Which run an environment of Locust belongs to: what its users need to find."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from locust.env import Environment

from replayer._native import Engine
from replayer.errors import ReplayerError
from replayer.run.mailbox import Mailbox
from replayer.run.user_registry import UserRegistry

__all__ = ["UserContext", "crew_of", "join"]


@dataclass(frozen=True)
class UserContext:
    """What the users of a run share.

    Attributes:
        engine: Their native threads.
        user registry: Their numbers.
        mailbox: Answers to users written in Python.
        targets: How many targets there are.
    """

    engine: Engine
    registry: UserRegistry
    mailbox: Mailbox
    targets: int

    def target_of(self, number: int) -> int:
        """Return the target that a user written in Python is dealt."""
        return number % self.targets


_contexts: WeakKeyDictionary[Environment, UserContext] = WeakKeyDictionary()


def join(environment: Environment, context: UserContext) -> None:
    """Let the environment's users find their run."""
    _contexts[environment] = context


def crew_of(environment: Environment) -> UserContext:
    """Return what the environment's users share.

    Raises:
        ReplayerError: No run was prepared: the users were started without Locust's ``init`` event.
    """
    try:
        return _contexts[environment]
    except KeyError:
        message = (
            "a FileUser or ScenarioUser runs under 'replayer run' or 'locust -f', not by itself"
        )
        raise ReplayerError(message) from None
