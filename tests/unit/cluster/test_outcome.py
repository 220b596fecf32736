"""What several clients suffered, as one health."""

import pytest

from replayer.cluster.outcome import _worst
from replayer.measure.clients import Client
from replayer.measure.health import Health
from tests.unit.runs import make_health, make_machine


def client(number: int, health: Health) -> Client:
    return Client(
        number=number,
        machine=make_machine(),
        pid=number + 1,
        users=1,
        paths=(("/srv",),),
        status="finished",
        clock_within_ns=0,
        shares=(),
        health=health,
        folder="/tmp/part",  # noqa: S108 - a name only
    )


def test_a_client_that_stood_still_counts_though_another_waited_longer_for_a_cpu() -> None:
    stopped, busy = make_health(stood_still_ns=5), make_health(run_queue_delay_ns=900)
    worst = _worst([client(0, stopped), client(1, busy)])
    assert worst is not None
    assert (worst.stood_still_ns, worst.run_queue_delay_ns) == (5, 900)


def test_another_worker_of_the_same_cpus_is_no_other_program() -> None:
    one = make_health(client_cpu_share=0.3, others_cpu_share=0.6, run_queue_delay_ns=900)
    two = make_health(client_cpu_share=0.4, others_cpu_share=0.5)
    worst = _worst([client(0, one), client(1, two)])
    assert worst is not None
    assert worst.others_cpu_share == pytest.approx(0.2)
    alone = _worst([client(0, one)])
    assert alone is not None
    assert alone.others_cpu_share == pytest.approx(0.6)
