"""CPUs that processes share, and how much of them they used."""

import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.measure.cpus import busiest_shares, count_cpus
from replayer.measure.facts import MachineFacts, collect_machine, format_cpu_list, parse_cpu_list
from replayer.measure.health import health_warnings
from tests.unit.runs import make_health, make_load, make_machine


def on(cpu_list: str | None, host: str = "one", cpus: int | None = None) -> MachineFacts:
    """A process's machine: with these CPUs, or with a number of them that are not listed."""
    count = cpus if cpu_list is None else len(parse_cpu_list(cpu_list))
    return make_machine().model_copy(update={"host": host, "cpus": count, "cpu_list": cpu_list})


@given(st.frozensets(st.integers(0, 8191), min_size=1, max_size=64))
def test_a_list_of_cpus_is_read_as_it_was_written(cpus: frozenset[int]) -> None:
    text = format_cpu_list(cpus)
    machine = MachineFacts.model_validate({**make_machine().model_dump(), "cpu_list": text})
    assert machine.cpu_list is not None
    assert parse_cpu_list(machine.cpu_list) == cpus


def test_a_list_of_cpus_is_the_kernels() -> None:
    assert format_cpu_list([8, 0, 1, 2, 10, 11]) == "0-2,8,10-11"
    own = collect_machine().cpu_list
    assert own is not None
    assert parse_cpu_list(own) == os.sched_getaffinity(0)


def test_a_machine_of_an_older_run_is_read() -> None:
    older = make_machine().model_dump(exclude={"cpu_list"})
    assert MachineFacts.model_validate(older).cpu_list is None


@pytest.mark.parametrize(
    ("machines", "count"),
    [
        ([on("0-15")], 16),
        ([on("0-15"), on("0-15")], 16),
        ([on("0"), on("1")], 2),
        ([on("0-3"), on("2-5")], 6),
        ([on("0-15", "one"), on("0-15", "two"), on("0-15", "three")], 48),
        ([on(None, cpus=4), on(None, cpus=4), on(None, "two", cpus=4)], 8),
    ],
)
def test_each_cpu_of_each_host_counts_once(machines: Sequence[MachineFacts], count: int) -> None:
    assert count_cpus(machines) == count


@pytest.mark.parametrize(
    ("used", "share"),
    [
        ([("0", 0.38), ("1", 0.38)], 0.38),  # a CPU each
        ([("0", 1.0), ("1", 0.1)], 1.0),  # one has none left
        ([("0-1", 0.4), ("0-1", 0.5)], 0.9),  # the same two CPUs
        ([("0-1", 0.45), ("0", 0.1)], 0.5),  # 0.9 and 0.1 of two CPUs
        ([("0-1", 0.1), ("0", 0.9)], 0.9),
        ([("0-1", 0.75), ("1-2", 0.75), ("3-15", 0.0)], 1.0),  # three CPUs of which two overlap
        ([(None, 0.3), (None, 0.4)], 0.7),  # as of older workers: not known to be apart
    ],
)
def test_shares_are_added_of_the_same_cpus_only(
    used: Sequence[tuple[str | None, float]], share: float
) -> None:
    found = busiest_shares([(on(cpus, cpus=2), busy, 0.0) for cpus, busy in used])
    assert found == pytest.approx((share, 0.0))


def test_hosts_do_not_share_cpus_and_the_busier_one_counts() -> None:
    assert busiest_shares([(on("0", "one"), 0.4, 0.0), (on("0", "two"), 0.6, 0.1)]) == (0.6, 0.1)


def test_what_replays_did_outside_of_calls_is_added_as_well() -> None:
    both = [(on("0-1"), 0.45, 0.4), (on("0-1"), 0.5, 0.4)]
    assert busiest_shares(both) == pytest.approx((0.95, 0.8))


def test_users_of_a_fleet_share_the_cpus_of_all_its_clients() -> None:
    fleet = [on("0-15", host) for host in ("one", "two", "three")]
    busy = make_health(client_cpu_share=0.95)
    (warning,) = health_warnings(busy, make_load(users=300), *fleet)
    assert warning.hint.startswith("300 users share 48 CPUs: use fewer")
    assert warning.kind == "client busy"
    assert "the busiest of 3 clients, with those on its CPUs, used 95% of them" in warning.message
