"""What the harness's own health is made of."""

from typing import TYPE_CHECKING, cast

import gevent
import pytest

from replayer.measure.units import NS_PER_S
from replayer.run.client_health import ClientHealth, CpuWait, CpuWaits, Standstill

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


class Seconds:
    """An engine of which a second passes with each look: 10 ms in calls, and waits as given."""

    def __init__(self, *waits_ns: int) -> None:
        self._waits_ns = iter((0, *waits_ns))
        self._second = self._delay_ns = 0

    def now_ns(self) -> int:
        self._second += 1
        return self._second * NS_PER_S

    def run_queue_delay_ns(self) -> int:
        self._delay_ns += next(self._waits_ns)
        return self._delay_ns

    def in_call_ns(self) -> int:
        return 2 * self._second * 10**7

    def outside_ns(self) -> int:
        return 0


def test_seconds_in_which_users_waited_long_for_a_cpu_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[CpuWait] = []
    monkeypatch.setattr(gevent, "sleep", lambda _seconds: None)
    waits = CpuWaits(cast("Engine", Seconds(10**6, 10**7, 0)), lambda: 2, told.append)
    with pytest.raises(StopIteration):  # its last second
        waits.run()
    assert told == [CpuWait(at_s=3.0, length_s=1.0, waited_s=0.01, worked_s=0.02)]


def test_a_second_in_which_users_came_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[CpuWait] = []
    users = iter((64, 128, 128, 128))
    monkeypatch.setattr(gevent, "sleep", lambda _seconds: None)
    engine = cast("Engine", Seconds(10**9, 0, 10**7))
    with pytest.raises(StopIteration):
        CpuWaits(engine, lambda: next(users), told.append).run()
    assert [each.at_s for each in told] == [4.0]
