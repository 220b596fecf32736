"""What the harness's own health is made of."""

from typing import TYPE_CHECKING, cast

from replayer.run.client_health import ClientHealth, Standstill

if TYPE_CHECKING:
    from replayer._native import Engine


class Scaled:
    """An engine whose estimate of the users' waiting goes back."""

    def __init__(self) -> None:
        self.delays = iter((5_000, 3_000, 3_000))

    def run_queue_delay_ns(self) -> int:
        return next(self.delays)

    def in_call_ns(self) -> int:
        return 100_000

    def outside_ns(self) -> int:
        return 0


def test_nobody_waits_for_a_cpu_for_less_than_no_time() -> None:
    still = Standstill(lambda: 0, lambda _begin_ns, _length_ns: None)
    gauge = ClientHealth(cast("Engine", Scaled()), overhead_ns=None, standstill=still)
    gauge.open()
    gauge.close()
    assert gauge.health(calls=1, given_up=0, dropped=0).run_queue_delay_ns == 0
