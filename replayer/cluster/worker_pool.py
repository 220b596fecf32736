"""The workers of a master: their numbers, signs of life, orders and answers.

Every wait here ends: with an answer, or when a worker gave no sign of life for the user's timeout.
"""

import atexit
import itertools
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Protocol

import gevent
from gevent.event import Event

from replayer.cluster import wire
from replayer.cluster.forks import kill_fork
from replayer.cluster.wire import News
from replayer.cluster.worker import Worker
from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.measure.facts import collect_machine
from replayer.measure.health import RunWarning
from replayer.run.descendants import living_below
from replayer.run.interruption import Interruption, Level
from replayer.run.spawner import Spawner

FIRST_S = 5.0  # chosen: whoever starts workers along with their master need not be told
RARELY_S = 300.0
"""Chosen: a log of a night's waiting then has some hundred lines."""
AT_MOST_EVERY_S = 1.0  # chosen: workers that come one after the other are told of together


class Reminder:
    """One wait, for a number to grow."""

    def __init__(self, now_s: float) -> None:
        self._said_s = now_s
        self._said: int | None = None
        self._pause_s = FIRST_S

    def is_due(self, count: int, now_s: float) -> bool:
        """Whether to say now how far it is; who is told so says it."""
        silent_s = now_s - self._said_s
        changed = self._said is not None and count != self._said
        if silent_s < (AT_MOST_EVERY_S if changed else self._pause_s):
            return False
        known = self._said is not None and not changed
        self._pause_s = min(2 * self._pause_s, RARELY_S) if known else 2 * FIRST_S
        self._said, self._said_s = count, now_s
        return True


FORKS_S = 1.0  # chosen: to look for them is to look at every process of the machine
POLL_S = 0.02  # chosen: begins of workers are then apart by less than an interval's fiftieth
ASLEEP_S = 1.0  # chosen: it looks ten times a second and more while it leads
LINGER_S = 1.5  # chosen: workers that wait for a run say hello each second
PREPARING_S = 60.0
"""Chosen: compiling a scenario of 500,000 files kept two workers on two CPUs from telling anything
for 20 s. Laying it out, which took a minute, never did for more than one."""
LEAVING_S = 10.0  # chosen: workers that leave try to tell all for 5 s
SILENT = frozenset({"prepare", "create", "join", "engine"})
"""Orders during which a worker may be well and silent: what they do holds the interpreter."""
TOO_MANY = "the run started without this worker"


class LostWorkerError(ReplayerError):
    """A worker died, hangs or has left."""

    exit_code = EXIT_ENVIRONMENT


Others = Literal["go", "wait", "stay"]
"""What becomes of workers without a run: they go, wait for the next one of this master, or stay for
the next master."""
Taker = Callable[[Worker, News], None]
Loss = Callable[[Worker], None]
Say = Callable[[str], None]


Listener = Callable[..., None]
"""Takes a message as ``msg``: ``node_id`` is the sender, ``data`` what it says."""


class MasterPort(Protocol):
    """What a pool asks of Locust's master: messages to workers, and users for them."""

    def register_message(self, kind: str, listener: Listener) -> None:
        """Hear messages of a kind."""

    def send_message(self, kind: str, data: dict[str, Any], worker: str) -> None:
        """Send a message to a worker."""

    def order_of(self, worker: str) -> int:
        """Return which place a worker has among those that came."""

    def count_users(self, workers: Collection[str]) -> Mapping[str, int]:
        """Return how many users of each class these workers run."""

    def deal_to(self, numbers: Mapping[str, int]) -> None:
        """Deal users to these workers alone, in the order of their numbers."""

    def expect_workers(self, count: int) -> None:
        """Have Locust begin its test with so many workers."""

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return what a reader of the figures must know of messages."""

    def new_spawner(self) -> Spawner:
        """Return what starts the users of one run."""

    def leave_workers(self) -> None:
        """Have Locust not end the workers when this process ends."""

    def quit(self) -> None:
        """End the process."""


class WorkerPool:
    """The workers of one run, or of one run after the other."""

    def __init__(
        self,
        port: MasterPort,
        interruption: Interruption,
        timeout_s: float,
        others: Others = "go",
    ) -> None:
        self.port = port
        if others == "stay":
            port.leave_workers()
        self.others = others
        """What becomes of those that come late, and of all when a run is over."""
        self._interruption = interruption
        self._timeout_s = timeout_s
        self._patience_s = timeout_s
        self._hellos: dict[str, Mapping[str, Any]] = {}
        self._tickets = itertools.count(1)
        self._answers: dict[tuple[int, str], Mapping[str, Any]] = {}
        self._by_id: dict[str, Worker] = {}
        self._answered = Event()
        self._closed = False
        self._last_ticket: int | None = None
        self._farewell: tuple[str, int] | None = None
        self._closing: tuple[Worker, ...] | None = None
        self._looked_s = self._awake_s = time.monotonic()
        self.workers: tuple[Worker, ...] = ()
        """Those that take part, by number."""
        self._forked = 0
        self.creator: Worker | None = None
        """The one that made the folders on the targets; None before, and where they are kept."""
        self.heirs: tuple[Worker, ...] = ()
        """Those that have found its folders through their own mount points."""
        self.serial = 0
        """The segment that they were told to begin last."""
        self.on_news: Taker = lambda _worker, _news: None
        self.on_loss: Loss = lambda _worker: None
        self.on_return: Loss = lambda _worker: None
        port.register_message(wire.HELLO, self._meet)
        port.register_message(wire.ANSWER, self._hear_answer)
        port.register_message(wire.NEWS, self._hear_news)

    def gather(self, count: int, within_s: float, say: Say) -> None:
        """Wait until so many workers are there.

        Raises:
            ReplayerError: They are not there in time, or the user has had enough.
        """
        begin = looked = time.monotonic()
        reminder = Reminder(begin)
        while len(self._hellos) < count:
            self._interruption.check(
                f"waiting for workers: {len(self._hellos)} of {count} connected"
            )
            now = time.monotonic()
            if now - looked > FORKS_S:
                looked = now
                self._check_forks()
            if within_s and now - begin > within_s:
                message = f"{len(self._hellos)} of {count} workers connected within {within_s:g} s"
                hint = "start the missing workers, or lower --expect-workers"
                raise LostWorkerError(message, hint=hint)
            if reminder.is_due(len(self._hellos), now):
                say(f"waits for workers: {len(self._hellos)} of {count} connected")
            gevent.sleep(POLL_S)
        if self.others == "wait":
            gevent.sleep(LINGER_S)
            count = len(self._hellos)
        now = time.monotonic()
        self.workers = tuple(
            Worker(number, name, self._hellos[name], now)
            for number, name in enumerate(sorted(self._hellos, key=self._order)[:count])
        )
        self._by_id = {worker.id: worker for worker in self.workers}
        for name in self._hellos.keys() - self._by_id.keys():
            self._turn_away(name)

    def watch_forks(self, count: int) -> None:
        """Know that this process has forked so many of them, which it waits for when it ends."""
        self._forked = count
        if count:
            atexit.register(self._kill_lost_forks)

    def _check_forks(self) -> None:
        """Refuse to wait for those that have ended before they said hello.

        Raises:
            ReplayerError: There are some.
        """
        living = len(living_below(os.getpid())) if self._forked else 0
        if living < self._forked:
            gone = self._forked - living
            message = f"{gone} of {self._forked} processes ended before the run started"
            raise LostWorkerError(
                message, hint="check dmesg: they may have been killed for lack of memory"
            )

    def _kill_lost_forks(self) -> None:
        """Kill forks that are lost; one that leaves by itself ends by itself."""
        here = collect_machine().host
        for worker in self.workers:
            is_leaving = worker.lost is None or worker.state.leaving is not None
            if not is_leaving and worker.hello["host"] == here:
                kill_fork(worker.hello["pid"])

    def renew(self, interruption: Interruption) -> None:
        """Begin anew: those who say hello from now on are there for the next run."""
        self._interruption = interruption
        self._hellos.clear()
        self._answers.clear()
        self._by_id = {}
        self._closed = False
        self._last_ticket = self._closing = self._farewell = None
        self._looked_s = self._awake_s = time.monotonic()
        self.workers, self.serial = (), 0
        self.creator, self.heirs = None, ()

    def release(self) -> None:
        """Have those who took part wait for the next run; a lost one hears it when it is back."""
        if self.others == "wait":
            self.tell("release")
        elif self.others == "stay":
            self.tell("stay")

    @property
    def living(self) -> tuple[Worker, ...]:
        """Those that are not lost."""
        return tuple(worker for worker in self.workers if worker.lost is None)

    @property
    def primary(self) -> Worker | None:
        """The one that lays out and removes: the first that is left."""
        return next(iter(self.living), None)

    def order(self, worker: Worker, do: str, **told: object) -> Any:  # noqa: ANN401 - any message
        """Have one worker do something, wait, and return what it answers.

        Raises:
            ReplayerError: It refused, or was lost meanwhile.
        """
        found = self.order_all([worker], do, told)
        if not found:
            raise LostWorkerError(f"{worker} is lost: it {worker.lost}", hint="start it again")
        return found[0]

    def order_all(
        self,
        workers: Sequence[Worker],
        do: str,
        told: Mapping[str, object] | None = None,
        patience_s: float | None = None,
    ) -> list[Any]:
        """Have workers do something at the same time, and wait for all, at most so long: a barrier.

        Raises:
            ReplayerError: One refused. A worker that is lost meanwhile is left out of the answers.
        """
        return list(self.ask(workers, do, told, patience_s).values())

    def ask(
        self,
        workers: Sequence[Worker],
        do: str,
        told: Mapping[str, object] | None = None,
        patience_s: float | None = None,
    ) -> dict[Worker, Any]:
        """Do what ``order_all`` does, and return who answered what."""
        return self._ask(next(self._tickets), workers, do, told, patience_s)

    def close_all(self, patience_s: float) -> dict[Worker, Any]:
        """Have all end and hand over what they measured; returns the last words of those who did.

        Whoever has answered can be missed no more. Whoever is lost stays lost from now on: figures
        that come once the run's are complete do not get into them.

        Raises:
            ReplayerError: One refused.
        """
        self._await_leaving()
        self._closing = self.living
        self._last_ticket = next(self._tickets)
        try:
            return self._ask(self._last_ticket, self._closing, "close", None, patience_s)
        finally:
            self._closing = ()

    def _await_leaving(self) -> None:
        """Wait for the last results of those that leave: to end their users takes them a while."""
        deadline_s = time.monotonic() + LEAVING_S
        while any(
            worker.state.leaving is not None and not worker.state.has_told_all
            for worker in self.workers
        ):
            if time.monotonic() > deadline_s or self._interruption.level > Level.NONE:
                return
            gevent.sleep(POLL_S)

    def _ask(
        self,
        ticket: int,
        workers: Sequence[Worker],
        do: str,
        told: Mapping[str, object] | None,
        patience_s: float | None,
    ) -> dict[Worker, Any]:
        longest_s = max(self._timeout_s, PREPARING_S)
        self._patience_s = longest_s if do in SILENT else self._timeout_s
        for worker in workers:
            self._send(wire.ORDER, {"ticket": ticket, "do": do, "told": told or {}}, worker)
        deadline_s = None if patience_s is None else time.monotonic() + patience_s
        self._wait(workers, ticket, deadline_s)
        answers = [(worker, self._answers.pop((ticket, worker.id), None)) for worker in workers]
        for worker, answer in answers:
            if answer is not None and answer.get("error") is not None:
                raise wire.unpack_error(answer["error"], str(worker))
        return {
            worker: wire.read_found(do, answer["found"], str(worker))
            for worker, answer in answers
            if answer is not None
        }

    def order_to_put_away(
        self, worker: Worker, told: Mapping[str, object], say: Say, patience_s: float
    ) -> list[Any]:
        """Have one worker put the targets in order; signals end that as they do in one process.

        Raises:
            ReplayerError: It refused.
        """
        interruption = self._interruption
        removes = partial(interruption.abandons_removal, say)
        ends = interruption.ends_restoring if worker.facts["keeps"] else removes
        watch = gevent.spawn(self._pass_on_abandonment, worker, ends)
        gevent.sleep(0)  # what is wanted already comes before the order
        try:
            return self.order_all([worker], "put_away", told, patience_s)
        finally:
            watch.kill()

    def _pass_on_abandonment(self, worker: Worker, ends: Callable[[], bool]) -> None:
        while not ends():
            gevent.sleep(POLL_S)
        self.tell("leave folders", [worker])

    def tell(self, do: str, workers: Sequence[Worker] | None = None) -> None:
        """Tell workers something that they do not answer."""
        for worker in self.workers if workers is None else workers:
            self._send(wire.ORDER, {"ticket": 0, "do": do, "told": {}}, worker)

    def look(self) -> None:
        """See who has given no sign of life for too long.

        A master that was held up itself has heard nobody meanwhile: it counts anew.
        """
        now = time.monotonic()
        if now - self._looked_s > ASLEEP_S:
            self._awake_s = now
        self._looked_s = now
        for worker in self.living:
            if now - max(worker.heard_s, self._awake_s) > self._patience_s:
                self._lose(worker, f"sent nothing for {self._patience_s:g} s")

    @property
    def successor(self) -> Worker | None:
        """The one that can remove what a lost one has made; None where nobody is lost, or can."""
        if self.creator is None or self.creator.lost is None:
            return None
        return next((worker for worker in self.heirs if worker.lost is None), None)

    def dismiss(self, why: str, exit_code: int, within_s: float) -> bool:
        """Tell all workers why there will be no run, and wait until they have removed their files.

        Another worker removes what a lost one has made. Whoever had to remove the folders may have
        died without a sign: returned is whether it has answered, which proves that they are gone.
        """
        self._farewell = (f"the master stopped the run: {why}", exit_code)
        for name in self._hellos.keys() - self._by_id.keys():
            self._turn_away(name, *self._farewell)
        successor = self.successor
        told = {"why": why, "then": self.others, "exit_code": exit_code}
        told["heir"] = None if successor is None else successor.number
        self.on_loss = lambda _worker: None  # a worker that needs longer is not reported as lost
        remover = successor or self.creator
        with suppress(ReplayerError):
            answers = self.ask(self.living, "dismiss", told, within_s)
            return remover is None or remover in answers
        return False

    def close(self) -> None:
        """Nobody is lost any more: the run is over."""
        self._closed = True

    def _order(self, name: str) -> tuple[int, str]:
        """Return what workers are numbered by: the order in which they came to Locust."""
        return self.port.order_of(name), name

    def _wait(self, workers: Sequence[Worker], ticket: int, deadline_s: float | None) -> None:
        cancelled = False
        while any(self._is_awaited(worker, ticket) for worker in workers):
            self.look()
            if self._interruption.level > Level.NONE and not cancelled:
                cancelled = True
                self.tell("cancel", workers)
            if deadline_s is not None and time.monotonic() > deadline_s:
                for worker in workers:
                    if self._is_awaited(worker, ticket):
                        self._lose(worker, "did not answer a command in time")
            self._answered.clear()
            self._answered.wait(POLL_S)

    def _is_awaited(self, worker: Worker, ticket: int) -> bool:
        return worker.lost is None and (ticket, worker.id) not in self._answers

    def _send(self, kind: str, data: dict[str, Any], worker: Worker) -> None:
        self.port.send_message(kind, data, worker.id)

    def _lose(self, worker: Worker, why: str) -> None:
        if worker.lost is None and not self._closed:
            worker.lost = why
            if not worker.handed_over:
                worker.was_lost.append((worker.heard_s, why))
                self.on_loss(worker)

    def _meet(self, msg: Any, **_: object) -> None:  # noqa: ANN401 - Locust's message
        if self._farewell is not None and msg.node_id not in self._by_id:
            self._turn_away(msg.node_id, *self._farewell)
        elif not self.workers:
            self._hellos[msg.node_id] = msg.data
        elif msg.node_id not in self._by_id:
            self._turn_away(msg.node_id)

    def _turn_away(
        self, name: str, why: str = TOO_MANY, exit_code: int = ReplayerError.exit_code
    ) -> None:
        if self.others == "wait":
            return
        if self.others == "stay":
            self.port.send_message(wire.ORDER, {"ticket": 0, "do": "stay", "told": {}}, name)
            return
        told = {"why": why, "exit_code": exit_code}
        message = {"ticket": 0, "do": "go", "told": told}
        self.port.send_message(wire.ORDER, message, name)

    def _recall(self, name: str) -> None:
        """Have a worker that still plays another run, of a master that is gone, end that."""
        if self.others == "go" and self.workers:
            self._turn_away(name)
            return
        told = {"ticket": 0, "do": "release", "told": {}}
        self.port.send_message(wire.ORDER, told, name)

    def _hear_answer(self, msg: Any, **_: object) -> None:  # noqa: ANN401 - Locust's message
        worker = self._by_id.get(msg.node_id)
        if worker is not None:
            self._sign_of_life(worker)
            self._answers[msg.data["ticket"], worker.id] = msg.data
            self._answered.set()
            if msg.data["ticket"] == self._last_ticket and msg.data.get("error") is None:
                worker.handed_over = True
                if worker.lost is not None:  # its user ended it while it was handing over
                    self.on_return(worker)

    def _hear_news(self, msg: Any, **_: object) -> None:  # noqa: ANN401 - Locust's message
        worker = self._by_id.get(msg.node_id)
        if worker is None:
            self._recall(msg.node_id)
            return
        news: News = msg.data
        worker.state = news.state
        self._sign_of_life(worker)
        if news.number is not None:
            if news.number not in worker.taken:
                self.on_news(worker, news)
                worker.taken.add(news.number)
            self._send(wire.TAKEN, {"number": news.number}, worker)
        if news.state.leaving is not None:
            self._lose(worker, news.state.leaving)

    def _sign_of_life(self, worker: Worker) -> None:
        """Note it; one that was lost is back if it is still where the others are."""
        worker.heard_s = time.monotonic()
        here = worker.state.serial == self.serial and worker.state.leaving is None
        counts = self._closing is None or worker in self._closing
        if worker.lost is not None and here and counts and not self._closed:
            worker.lost = None
            self.on_return(worker)
