"""What all programs used of the CPUs, held against what this one used itself."""

import os
import time
from pathlib import Path

import pytest

from replayer.measure import cpus
from replayer.measure.cpus import CpuTime, read_cpu_time

STAT = """\
cpu  900 0 900 900 0 0 0 900 0 0
cpu0 100 10 20 500 30 1 2 40 50 5
cpu1 700 0 0 100 0 0 0 0 0 0
cpu2 1 0 0 0 0 0 0 0 0 0
intr 5 0
"""


def test_the_cpus_that_this_process_may_use_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    monkeypatch.setattr(cpus, "_STAT", stat)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    found = read_cpu_time()
    ticks = [ns // cpus.TICK_NS for ns in (found.busy_ns, found.stolen_ns, found.whole_ns)]
    assert ticks == [133 + 700, 40, 703 + 800]


@pytest.mark.parametrize("text", [None, "cpu0 1 2\n", "cpu0 a b c d e f g h\n"])
def test_a_kernel_that_does_not_tell_is_not_known(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = tmp_path / "stat"
    if text is not None:
        stat.write_text(text)
    monkeypatch.setattr(cpus, "_STAT", stat)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    assert read_cpu_time().shares_beside(0) == (None, None)


@pytest.mark.parametrize(
    ("own_s", "shares"), [(0.5, (0.4, 0.1)), (0.0, (0.9, 0.1)), (1.0, (0.0, 0.1))]
)
def test_what_is_not_ours_is_of_other_programs(own_s: float, shares: tuple[float, float]) -> None:
    second = CpuTime(900_000_000, 100_000_000, 1_000_000_000)
    assert second.shares_beside(own_s * 1e9) == pytest.approx(shares)


def test_a_few_ticks_say_nothing() -> None:
    assert CpuTime(10**7, 0, 10**7).shares_beside(0) == (None, None)


def test_what_this_process_computes_is_counted_by_the_kernel_too() -> None:
    before, own = read_cpu_time(), time.process_time_ns()
    while time.process_time_ns() - own < 300_000_000:
        pass
    used = read_cpu_time() - before
    assert used.busy_ns + 2 * cpus.TICK_NS >= 300_000_000 * 0.8
    assert used.whole_ns >= used.busy_ns + used.stolen_ns
