"""Every user works on one worker, and on the one that slots it."""

from hypothesis import given
from hypothesis import strategies as st
from locust import User
from locust.env import Environment
from locust.runners import WorkerNode

from replayer.cluster.worker import users_of
from replayer.locust.master import dispatch_to


class Idle(User):
    """A user of no kind."""


@given(st.integers(1, 9), st.integers(1, 60))
def test_every_user_has_one_seat(workers: int, users: int) -> None:
    slots = [number for worker in range(workers) for number in users_of(worker, workers, users)]
    assert sorted(slots) == list(range(users))


@given(st.integers(1, 5), st.integers(1, 40))
def test_locust_deals_as_many_users_as_there_are_seats(workers: int, users: int) -> None:
    environment = Environment(user_classes=[Idle])
    nodes = [WorkerNode(f"host{9 - number}_x") for number in range(workers)]
    stranger = WorkerNode("late_x")
    dispatch_to(environment, {node.id: number for number, node in enumerate(nodes)})
    dispatcher = environment.dispatcher_class([*reversed(nodes), stranger], [Idle])
    dispatcher.new_dispatch(users, users)
    dealt = list(dispatcher)[-1]
    assert [dealt[node.id]["Idle"] for node in nodes] == [
        len(users_of(number, workers, users)) for number in range(workers)
    ]


def test_a_lost_workers_users_go_to_nobody() -> None:
    environment = Environment(user_classes=[Idle])
    nodes = [WorkerNode(f"host{number}_x") for number in range(3)]
    dispatch_to(environment, {node.id: number for number, node in enumerate(nodes)})
    dispatcher = environment.dispatcher_class(nodes, [Idle])
    dispatcher.new_dispatch(9, 9)
    before = list(dispatcher)[-1]
    dispatcher.remove_worker(nodes[1])
    again = environment.dispatcher_class([nodes[0], nodes[2]], [Idle])
    again.new_dispatch(9, 9)
    assert next(again) == before


def test_users_of_a_worker_that_was_lost_before_locust_deals_go_to_nobody() -> None:
    environment = Environment(user_classes=[Idle])
    numbers = {"host0_x": 0, "host1_x": 1}
    dispatch_to(environment, numbers)
    dispatcher = environment.dispatcher_class([WorkerNode("host1_x")], [Idle])
    dispatcher.new_dispatch(8, 8)
    assert list(dispatcher)[-1]["host1_x"]["Idle"] == 4
