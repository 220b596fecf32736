"""When a worker is lost, and when it is missed no more; messages stay within this process."""

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import gevent
import pytest

from replayer.cluster import wire
from replayer.cluster.worker_pool import LEAVING_S, LostWorkerError, WorkerPool
from replayer.cluster.workers_client import WorkersClient
from replayer.measure.health import Health
from replayer.run.interruption import GOES_ON, Interruption, Level

if TYPE_CHECKING:
    from replayer.cluster.recorder import MergedRecorder
    from replayer.cluster.worker_pool import MasterPort
    from replayer.run.prepared_run import RunRequest
    from replayer.run.roles import OnLostWorker

TIMEOUT_S = 2.0
HEALTH = Health(
    client_cpu_share=0.1, run_queue_delay_ns=0, in_call_ns=1, overhead_ns=None, users_given_up=0
)
LEAVINGS: dict[str, list[str]] = {"kept": ["here"], "left": [], "losses": []}
ANSWERS: dict[str, object] = {
    "close": {
        "health": HEALTH.model_dump(mode="json"),
        "replay": None,
        "error": None,
        "task_failures": [],
        "hung": False,
        "hanging": [],
    },
    "put_away": LEAVINGS,
}
"""What a worker finds; orders that are not here have no answer that is looked at."""


class Post:
    """What a worker pool asks of Locust; workers that are well answer each order at once."""

    def __init__(self) -> None:
        self._takers: dict[str, Callable[..., None]] = {}
        self.well = {"a", "b"}
        self.orders: list[str] = []
        self.sent: list[tuple[str, str, int | None]] = []
        self.before_answers: Callable[[str], None] = lambda _name: None

    def register_message(self, kind: str, taker: Callable[..., None]) -> None:
        self._takers[kind] = taker

    def order_of(self, name: str) -> int:
        return ord(name)

    def send_message(self, kind: str, data: dict[str, Any], worker: str) -> None:
        self.orders.append(data["do"])
        self.sent.append((worker, data["do"], data["told"].get("exit_code")))
        if kind == wire.ORDER and data["ticket"] and worker in self.well:
            self.before_answers(worker)
            found = ANSWERS.get(data["do"])
            self.come(wire.ANSWER, worker, {"ticket": data["ticket"], "found": found})

    def come(self, kind: str, name: str, data: dict[str, Any]) -> None:
        self._takers[kind](SimpleNamespace(node_id=name, data=wire.READERS[kind](data)))

    def beat(self, name: str) -> None:
        self.come(wire.NEWS, name, {"state": wire.WorkerState().pack()})

    def leave(self, name: str) -> None:
        self.come(wire.NEWS, name, {"state": wire.WorkerState(leaving="left").pack()})


class Clock:
    """The real one, and what was added to it."""

    def __init__(self) -> None:
        self._real = time.monotonic
        self.added_s = 0.0

    def monotonic(self) -> float:
        return self._real() + self.added_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    return made


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def interruption() -> Interruption:
    return Interruption()


@pytest.fixture
def pool(post: Post, clock: Clock, interruption: Interruption) -> WorkerPool:
    del clock  # it is set before a worker pool looks at it
    made = WorkerPool(cast("MasterPort", post), interruption, TIMEOUT_S)
    for name in ("a", "b"):
        say_hello(post, name)
    made.gather(2, 1.0, print)
    return made


def say_hello(post: Post, name: str) -> None:
    hello = {"protocol": wire.PROTOCOL, "host": "here", "pid": ord(name), "targets": ["here"]}
    post.come(wire.HELLO, name, hello)


def client_of(pool: WorkerPool, policy: "OnLostWorker") -> WorkersClient:
    recorder = SimpleNamespace(pool=pool)
    request = SimpleNamespace(targets=(SimpleNamespace(name="here"),), spawner=None)
    return WorkersClient(cast("MergedRecorder", recorder), cast("RunRequest", request), policy)


def pass_time(pool: WorkerPool, clock: Clock, post: Post, seconds: float, alive: str = "a") -> None:
    """Let a master that is awake hear nobody but some for a while."""
    for _ in range(round(seconds / 0.5)):
        clock.added_s += 0.5
        for name in alive:
            post.beat(name)
        pool.look()


def test_a_worker_that_comes_while_the_others_are_dismissed_is_sent_away(post: Post) -> None:
    pool = WorkerPool(cast("MasterPort", post), Interruption(), TIMEOUT_S)
    say_hello(post, "a")
    with pytest.raises(LostWorkerError, match="1 of 2 workers connected"):
        pool.gather(2, 0.05, print)
    pool.dismiss("1 of 2 workers connected", 3, 1.0)
    say_hello(post, "b")
    assert post.sent == [("a", "go", 3), ("b", "go", 3)]


def test_a_loss_is_dated_by_the_last_sign_of_life(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    pass_time(pool, clock, post, 3.0, alive="ab")
    first, second = pool.workers
    heard_s = second.heard_s
    pass_time(pool, clock, post, 3.0)
    assert second.was_lost == [(heard_s, "sent nothing for 2 s")]
    assert pool.living == (first,)


@pytest.mark.parametrize(("order", "lost"), [("join", False), ("lay_out", True)])
def test_silence_is_borne_where_an_order_holds_the_interpreter_only(
    pool: WorkerPool, clock: Clock, post: Post, *, order: str, lost: bool
) -> None:
    def answer_late() -> None:
        for _ in range(40):
            gevent.sleep(0.03)
            clock.added_s += 0.5
            post.beat("a")
        post.well.add("b")
        post.come(wire.ANSWER, "b", {"ticket": 1, "found": order})

    post.well.remove("b")
    gevent.spawn(answer_late)
    first, second = pool.workers
    answered = [first] if lost else [first, second]
    assert list(pool.ask(pool.living, order)) == answered


def test_a_second_signal_while_a_worker_removes_has_it_leave_the_folders(
    pool: WorkerPool, post: Post, interruption: Interruption
) -> None:
    said: list[str] = []

    def press_twice() -> None:
        gevent.sleep(0.1)
        interruption.presses += 1
        gevent.sleep(0.2)
        assert "leave folders" not in post.orders, "one of them lets the removal go on"
        interruption.presses += 1
        while "leave folders" not in post.orders:
            gevent.sleep(0.01)
        post.come(wire.ANSWER, "a", {"ticket": 1, "found": LEAVINGS})

    post.well.clear()
    keeper = pool.workers[0]
    keeper.facts = {"keeps": False}
    presses = gevent.spawn(press_twice)
    assert pool.order_to_put_away(keeper, {}, said.append, 60.0) == [LEAVINGS]
    presses.get()
    assert said == [GOES_ON]


def test_one_signal_while_a_worker_lays_out_anew_has_it_leave_that(
    pool: WorkerPool, post: Post, interruption: Interruption
) -> None:
    said: list[str] = []

    def press() -> None:
        gevent.sleep(0.1)
        assert post.orders == ["put_away"]
        interruption.presses += 1
        while "leave folders" not in post.orders:
            gevent.sleep(0.01)
        post.come(wire.ANSWER, "a", {"ticket": 1, "found": LEAVINGS})

    post.well.clear()
    keeper = pool.workers[0]
    keeper.facts = {"keeps": True}
    interruption.presses = 1  # which has ended the run
    presses = gevent.spawn(press)
    assert pool.order_to_put_away(keeper, {}, said.append, 60.0) == [LEAVINGS]
    presses.get()
    assert said == [], "nothing is removed"


def test_a_worker_lays_out_nothing_anew_where_the_run_shall_end_at_once(
    pool: WorkerPool, post: Post, interruption: Interruption
) -> None:
    pool.workers[0].facts = {"keeps": True}
    interruption.level = Level.AT_ONCE
    pool.order_to_put_away(pool.workers[0], {}, print, 60.0)
    assert post.orders == ["leave folders", "put_away"]


def test_one_that_has_found_a_lost_workers_folders_is_its_heir(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    first, second = pool.workers
    pool.creator = second
    assert pool.successor is None
    pass_time(pool, clock, post, 3.0)
    assert pool.successor is None  # nobody has found them yet
    pool.heirs = (first,)
    assert pool.successor is first


def test_what_a_lost_worker_has_measured_is_spoken_of_only_where_something_was(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    pass_time(pool, clock, post, 3.0)
    client = client_of(pool, "fail")
    hints = []
    for pool.serial in (0, 1):
        with pytest.raises(LostWorkerError) as refused:
            client.check_losses()
        hints.append(refused.value.hint.partition(";")[0])
    assert hints == ["nothing was measured", "what was measured so far is kept"]


def test_a_master_that_was_held_up_waits_anew_and_dates_by_what_it_has_heard(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    heard_s = [worker.heard_s for worker in pool.workers]
    clock.added_s += 10.0
    pass_time(pool, clock, post, 1.5, alive="")
    assert len(pool.living) == 2
    pass_time(pool, clock, post, 2.0, alive="")
    assert [worker.was_lost[0][0] for worker in pool.workers] == heard_s


def test_a_worker_that_does_not_close_is_missed(pool: WorkerPool, clock: Clock, post: Post) -> None:
    post.well.remove("b")
    pass_time(pool, clock, post, 2.0)
    assert list(pool.close_all(5.0)) == [pool.workers[0]]
    loss = client_of(pool, "fail").find_loss()
    assert isinstance(loss, LostWorkerError)
    assert str(loss).startswith("worker 1 (here, process 98) is lost: it sent nothing")
    assert client_of(pool, "continue").find_loss() is None


def test_a_run_without_any_worker_has_failed_though_it_may_go_on(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    post.well.clear()
    pass_time(pool, clock, post, 2.0, alive="")
    assert pool.close_all(5.0) == {}
    assert client_of(pool, "continue").find_loss() is not None


def test_a_worker_that_has_handed_over_everything_is_not_missed(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    told: list[object] = []
    pool.on_loss = told.append
    pool.close_all(5.0)
    first, second = pool.workers
    post.leave("a")
    pass_time(pool, clock, post, 3.0, alive="")
    assert pool.living == ()
    assert (first.was_lost, second.was_lost, told) == ([], [], [])
    assert client_of(pool, "fail").find_loss() is None


def test_a_worker_that_its_user_ends_while_it_hands_over_is_back(
    pool: WorkerPool, post: Post
) -> None:
    back: list[object] = []
    pool.on_return = back.append
    post.before_answers = lambda name: post.leave(name) if name == "b" else None
    assert len(pool.close_all(5.0)) == 2
    assert back == [pool.workers[1]]
    assert client_of(pool, "fail").find_loss() is None


def test_the_last_results_of_one_that_leaves_are_waited_for(pool: WorkerPool, post: Post) -> None:
    taken: list[int | None] = []
    pool.on_news = lambda _worker, news: taken.append(news.number)

    def tell_the_rest() -> None:
        gevent.sleep(0.2)
        state = wire.WorkerState(leaving="left")
        post.come(wire.NEWS, "b", {"state": state.pack(), "number": 1})
        post.come(wire.NEWS, "b", {"state": replace(state, has_told_all=True).pack()})

    post.leave("b")
    gevent.spawn(tell_the_rest)
    first, _ = pool.workers
    assert list(pool.close_all(5.0)) == [first]
    assert taken == [1]


def test_one_that_leaves_and_tells_no_more_is_waited_for_in_bounded_time(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    post.leave("b")
    gevent.spawn_later(0.1, lambda: setattr(clock, "added_s", LEAVING_S))
    begin_s = time.perf_counter()
    pool.close_all(5.0)
    assert time.perf_counter() - begin_s < LEAVING_S


def test_a_worker_that_comes_back_once_figures_are_complete_stays_lost(
    pool: WorkerPool, clock: Clock, post: Post
) -> None:
    pass_time(pool, clock, post, 3.0)
    first, second = pool.workers
    assert list(pool.close_all(5.0)) == [first]
    post.beat("b")
    assert second.lost is not None
    assert client_of(pool, "fail").find_loss() is not None
