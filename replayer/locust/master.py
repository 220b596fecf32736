"""Locust's master and its dispatch of users, changed in three ways.

It reads well-formed messages only: others are dropped and counted, where Locust would stop to
listen. It ends no test by itself: the worker pool decides which worker is lost. And it gives users
to the workers of the begin alone: worker i of n runs the users i, i + n, i + 2n and so on.
"""

import atexit
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import gevent
import zmq
from locust import User, env
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.rpc import Message
from locust.runners import (
    FALLBACK_INTERVAL,
    HEARTBEAT_DEAD_INTERNAL,
    HEARTBEAT_INTERVAL,
    STATE_MISSING,
    STATE_STOPPING,
    MasterRunner,
    WorkerNode,
)
from pydantic import Field, TypeAdapter, ValidationError

from replayer.cluster import wire
from replayer.cluster.wire import Count, WireForm
from replayer.errors import in_one_line
from replayer.measure.health import RunWarning

FRAMES = 2  # a ZMQ router's: who sent it, and what
MOST_SHOWN = 120
SENT_MS = 2000  # chosen: time for the last messages to leave this process


class _Heartbeat(WireForm):
    state: Literal["ready", "spawning", "running", "cleanup", "stopping", "stopped", "missing"]
    current_cpu_usage: float
    current_memory_usage: int = 0


class _Users(WireForm):
    user_classes_count: dict[str, Count]


class _Entry(WireForm):
    name: str
    method: str
    last_request_timestamp: float | None
    start_time: float
    num_requests: Count
    num_none_requests: Count
    num_failures: Count
    total_response_time: float
    max_response_time: float
    min_response_time: float | None
    total_content_length: float
    response_times: dict[float, Count]
    num_reqs_per_sec: dict[int, Count]
    num_fail_per_sec: dict[int, Count]


class _Error(WireForm):
    name: str
    method: str
    error: str
    occurrences: Count
    first_seen: float | None = None
    last_seen: float | None = None


class _Stats(_Users):
    stats: list[_Entry]
    stats_total: _Entry
    errors: dict[str, _Error]


class _Exception(WireForm):
    msg: str
    traceback: str


class _Logs(WireForm):
    worker_id: str
    logs: list[Any]


class _Locustfile(WireForm):
    version: str = Field(min_length=1)


_Anything: TypeAdapter[Any] = TypeAdapter(Any)
FORMS: dict[str, TypeAdapter[Any]] = {
    "client_ready": TypeAdapter(Literal[-1] | Annotated[str, Field(min_length=1, strict=True)]),
    "client_stopped": _Anything,
    "exception": TypeAdapter(_Exception),
    "heartbeat": TypeAdapter(_Heartbeat),
    "locustfile": TypeAdapter(_Locustfile),
    "logs": TypeAdapter(_Logs),
    "quit": _Anything,
    "spawning": _Anything,
    "spawning_complete": TypeAdapter(_Users),
    "stats": TypeAdapter(_Stats),
}
"""The data of Locust's own messages, as far as its master looks at it."""


@dataclass
class Unread:
    """The messages that were dropped."""

    count: int = 0
    first: str = ""
    """The first one: whose it was, and what was wrong."""

    def add(self, who: str, why: str) -> None:
        """Count one; the first is said at once."""
        self.count += 1
        if not self.first:
            self.first = in_one_line(f"from {who[:MOST_SHOWN]!r}: {why[:MOST_SHOWN]}")
            text = f"a message {self.first}; it is ignored, and so are later ones like it"
            sys.stderr.write(f"replayer: {text}\n")

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what a reader of the figures must know."""
        if not self.count:
            return ()
        some = f"{self.count:,} messages" if self.count > 1 else "1 message"
        message = (
            f"{some} to the master could not be read and were ignored; the first was {self.first}"
        )
        hint = "check who else can reach the master's port; keep it in your own network"
        return (RunWarning(kind="other", message=message, hint=hint),)


class Master(MasterRunner):
    """Locust's master; see above."""

    def __init__(self, *how: Any, **more: Any) -> None:  # noqa: ANN401 - as Locust's
        self.unread = Unread()
        self.leaves_workers = False
        super().__init__(*how, **more)
        atexit.register(self._send_the_rest, os.getpid())

    def _send_the_rest(self, process: int) -> None:
        """Wait until ZMQ's thread has sent why workers must go: it ends with the process."""
        if os.getpid() == process:
            self.server.close(linger=SENT_MS)
            self.server.socket.context.term()

    def client_listener(self) -> Any:  # noqa: ANN401 - it never returns
        """Hear messages, one after the other."""
        while True:
            try:
                self._hear(self.server.socket.recv_multipart())
            except zmq.ZMQError:
                self.connection_broken = True  # the heartbeats' greenlet opens it anew
                gevent.sleep(FALLBACK_INTERVAL)
            except KeyboardInterrupt:
                continue  # others end the process, as Locust has it

    def _hear(self, frames: Sequence[bytes]) -> None:
        """Handle a message, or drop it."""
        who = frames[0].decode(errors="replace") if frames else ""
        try:
            message = self._read(frames)
        except Exception as error:  # noqa: BLE001 - whatever comes, who listens must live
            self.unread.add(who, _put(error))
            return
        self.handle_message(who, message)

    def _read(self, frames: Sequence[bytes]) -> Message:
        """Return what a worker sent, with data of the form that its kind has.

        Raises:
            Exception: It cannot be read.
        """
        if len(frames) != FRAMES:
            raise ValueError(f"{len(frames)} frames instead of {FRAMES}")
        found: Message = Message.unserialize(frames[1])
        if not isinstance(found.type, str) or found.node_id != frames[0].decode():
            raise ValueError("no message kind, or a wrong sender name")
        if found.type in wire.READERS:
            found.data = wire.READERS[found.type](found.data)
        elif found.type in FORMS:
            FORMS[found.type].validate_python(found.data)
        elif found.type not in self.custom_messages:
            raise ValueError(f"no handler for {found.type!r}")
        return found

    def handle_message(self, client_id: str, msg: Message) -> None:
        """Act on a message; a worker that quits does not end the test."""
        if msg.type == "quit":
            self.clients.pop(client_id, None)
        else:
            super().handle_message(client_id, msg)

    def heartbeat_worker(self) -> Any:  # noqa: ANN401 - it never returns
        """Show who is silent; nothing follows from it here."""
        while True:
            gevent.sleep(HEARTBEAT_INTERVAL)
            if self.connection_broken:
                self.reset_connection()
                continue
            for client in list(self.clients.all):
                client.heartbeat -= 1
                if client.heartbeat < HEARTBEAT_DEAD_INTERNAL:
                    del self.clients[client.id]
                elif client.heartbeat < 0:
                    client.state, client.user_classes_count = STATE_MISSING, {}

    def quit(self) -> None:
        """End this process, and the workers unless they are left to the next master."""
        if not self.leaves_workers:
            super().quit()
            return
        self.stop(send_stop_to_client=False)
        self.greenlet.kill(block=True)

    def check_stopped(self) -> None:
        """Note that a stop is complete; a test without workers has not stopped by itself."""
        if self.state == STATE_STOPPING:
            super().check_stopped()


def read_carefully() -> None:
    """Have Locust make its masters of this kind; to be called before it makes one."""
    env.MasterRunner = Master  # type: ignore[attr-defined] # Locust looks it up when it makes one


def _put(error: Exception) -> str:
    """Say in some words why a message cannot be read."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"it cannot be read: {place}{': ' if place else ''}{first['msg']}"
    return f"it cannot be read: {str(error) or type(error).__name__}"


def dispatch_to(environment: Environment, numbers: Mapping[str, int]) -> None:
    """Have Locust deal to these workers, by its names of them, in the order of their numbers."""
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
