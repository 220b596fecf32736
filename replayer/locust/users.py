"""Locust users whose work is done by the engine's native threads.

A ``ScenarioUser`` runs the plan's transactions: its greenlet starts its thread, waits and stops it.
A ``FileUser`` is for users' own locustfiles: its tasks are Python, and its native thread makes the
file calls. What users of a locustfile cannot take part in is refused here.
"""

from collections.abc import Mapping
from typing import Literal
from weakref import WeakKeyDictionary

from gevent import GreenletExit, Timeout
from locust import User, task
from locust.env import Environment
from locust.user.task import LOCUST_STATE_RUNNING, LOCUST_STATE_WAITING

from replayer.errors import ReplayerError
from replayer.locust.filesystem import FileSystem
from replayer.measure.clients import UserKind
from replayer.measure.units import format_many
from replayer.plan.document import Plan
from replayer.run.spawner import UserContext
from replayer.run.user_registry import UserSlot

_contexts: WeakKeyDictionary[Environment, UserContext] = WeakKeyDictionary()


def join(environment: Environment, context: UserContext) -> None:
    """Let the environment's users find their run."""
    _contexts[environment] = context


def context_of(environment: Environment) -> UserContext:
    """Return what the environment's users share.

    Raises:
        ReplayerError: No run was prepared: the users were started without Locust's ``init`` event.
    """
    try:
        return _contexts[environment]
    except KeyError:
        message = "a FileUser or ScenarioUser runs only under 'replayer run' or 'locust -f'"
        raise ReplayerError(message) from None


class _NativeUser(User):
    """A user that has a native thread for as long as its greenlet runs."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._context = context_of(environment)
        self._slot: UserSlot | None = None

    def _sit_down(self) -> UserSlot | None:
        """Take a number, or leave it to the controller to say that there is none."""
        self._state = LOCUST_STATE_RUNNING
        self._slot = self._context.registry.take(self)
        return self._slot


class ScenarioUser(_NativeUser):
    """A user of the scenario."""

    @task
    def transactions(self) -> None:
        """Stand for the plan in Locust's tables of tasks; the engine does the work."""

    def run(self) -> None:  # type: ignore[misc] # final for users with tasks; this one has none
        """Have the native thread work until it has ended."""
        slot = self._sit_down()
        if slot is None:
            return
        try:
            self._context.engine.start_user(slot.number)
            slot.ended.wait()
        except OSError as error:
            self._context.registry.refuse_thread(slot, error)
        except GreenletExit:
            self._context.registry.cancel(slot)

    def stop(self, force: bool = False) -> bool:  # noqa: FBT001, FBT002 - Locust's own signature
        """Let the native thread finish its transaction, or end it before its next call."""
        if self._slot is not None and not force:
            self._context.registry.stop(self._slot)
        return bool(super().stop(force=force))


class FileUser(_NativeUser):
    """A user written in Python whose file calls are made, timed and recorded natively.

    Each user is dealt one target, in turn, and is confined to the run's folder on it::

        class Editor(FileUser):
            wait_time = between(1, 3)

            @task
            def save(self):
                with self.fs.transaction("save"), self.fs.open("notes.txt", "w") as file:
                    file.write(4096)
                    file.fsync()
    """

    abstract = True
    fs: FileSystem
    """The target's files, as this user reaches them."""

    def run(self) -> None:  # type: ignore[misc] # the tasks run as ever, inside of it
        """Run the tasks, with a native thread at hand."""
        slot = self._sit_down()
        if slot is None:
            return
        engine = self._context.engine
        try:
            engine.start_interactive(slot.number, self._context.target_of(slot.number))
        except OSError as error:
            self._context.registry.refuse_thread(slot, error)
            return
        self.fs = FileSystem(self._context.mailbox, slot.number)
        try:
            # Locust starts users while caches are still prepared: their calls would be measured.
            self._state = LOCUST_STATE_WAITING  # Locust ends them at once
            self._context.registry.wait_until_open()
            self._state = LOCUST_STATE_RUNNING
            super().run()  # type: ignore[no-untyped-call] # of Locust
        except (Timeout, SystemExit) as error:
            # No Exceptions: Locust would lose the user, or the whole run, and call it a success.
            self.environment.events.user_error.fire(
                user_instance=self, exception=error, tb=error.__traceback__
            )
        finally:
            engine.cancel_user(slot.number)


def count_native(environment: Environment, counts: Mapping[str, int]) -> int:
    """Count the users that have a native thread each; those of HTTP, say, have none."""
    seated = [kind for kind in environment.user_classes if issubclass(kind, _NativeUser)]
    return sum(counts.get(kind.__name__, 0) for kind in seated)


def list_kinds(environment: Environment, counts: Mapping[str, int]) -> tuple[UserKind, ...]:
    """Return how many users there are of each kind, if not all of them run the scenario."""
    if not has_python_users(environment):
        return ()
    return tuple(
        UserKind(name=kind.__name__, does=_doing(kind), count=counts[kind.__name__])
        for kind in sorted(environment.user_classes, key=lambda kind: kind.__name__)
        if counts.get(kind.__name__)
    )


def _doing(kind: type[User]) -> Literal["scenario", "file calls", "other"]:
    if issubclass(kind, ScenarioUser):
        return "scenario"
    return "file calls" if issubclass(kind, FileUser) else "other"


def has_scenario_users(environment: Environment) -> bool:
    """Whether users of the scenario take part."""
    return any(issubclass(kind, ScenarioUser) for kind in environment.user_classes)


def has_file_users(environment: Environment) -> bool:
    """Whether users take part whose tasks, in Python, name transactions of their own."""
    return any(issubclass(kind, FileUser) for kind in environment.user_classes)


def has_file_users_alone(environment: Environment) -> bool:
    """Whether no others take part."""
    return all(issubclass(kind, FileUser) for kind in environment.user_classes)


def has_python_users(environment: Environment) -> bool:
    """Whether users with tasks of their own take part."""
    return any(not issubclass(kind, ScenarioUser) for kind in environment.user_classes)


def refuse_mixtures(environment: Environment, plan: Plan, targets: int, rounds: int) -> None:
    """Refuse turns that a locustfile cannot take part in, and roles that its users would take.

    And targets on which not as many of them would work: they stay on the one that they are dealt.

    Raises:
        ReplayerError: With what can be done instead.
    """
    if environment.shape_class is not None:
        _refuse_turns_of_a_shape(plan, targets, rounds)
    if has_file_users(environment) and rounds > 1:
        message = f"--rounds {rounds}: tasks of a locustfile cannot restart for another turn"
        raise ReplayerError(message, hint="leave --rounds out, and compare several runs")
    if has_file_users_alone(environment) and plan.users % targets:
        message = (
            f"{format_many(plan.users, 'user')} of a locustfile cannot be divided evenly among "
            f"{targets} targets: the first targets would have more users and appear faster"
        )
        fewer = plan.users - plan.users % targets
        numbers = " or ".join(f"-u {each}" for each in (fewer, fewer + targets) if each)
        raise ReplayerError(message, hint=f"{numbers}, or run it once for each target")
    if not has_scenario_users(environment):
        return
    if has_file_users(environment) and targets > 1:
        raise ReplayerError(
            f"{targets} targets take turns, and tasks of a locustfile cannot restart for another "
            "turn",
            hint="run it once for each target and compare the runs, or run the locustfile alone",
        )
    if has_python_users(environment) and plan.body.get("roles"):
        message = "a scenario with roles needs all users, but some are of a locustfile"
        raise ReplayerError(message, hint="leave the locustfile out")


def _refuse_turns_of_a_shape(plan: Plan, targets: int, rounds: int) -> None:
    """Refuse what would have other load than the shape says, or another one in each turn."""
    if targets > 1:
        message = f"a load shape must have one target at a time, got {targets}"
        raise ReplayerError(message, hint="run it once for each target, and compare the runs")
    if rounds > 1:
        message = f"--rounds {rounds}: a load shape cannot restart for another round"
        raise ReplayerError(message, hint="leave --rounds out, and compare several runs")
    each = plan.transactions_per_user
    if each is not None:
        raise ReplayerError(
            f"a load shape sets the number of users, but each user ends after {each:,} "
            "transactions (iterations of a scenario, --loops of a trace)",
            hint="leave the load shape out, or set a time limit: duration, or -t with a trace",
        )
