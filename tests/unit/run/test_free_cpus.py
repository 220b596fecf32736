"""Before a run: who uses the CPUs, and what a cgroup allows."""

import os
from pathlib import Path

import pytest

from replayer.run import free_cpus
from replayer.run.free_cpus import CpuUse, find_busiest, look_at_cpus, read_quota
from replayer.run.progress import ProgressDisplay
from tests.processes import spinners


def test_programs_that_use_all_cpus_are_named_with_their_share() -> None:
    cpus = len(os.sched_getaffinity(0))
    with spinners(3 * cpus):
        use = look_at_cpus()
        busiest = find_busiest()
    assert use.cpus == cpus
    assert use.leaves_hardly_any, use
    assert busiest["spinner"] > 0.2
    assert f"of the {cpus} CPU" in str(use)


def test_a_machine_with_one_busy_core_of_two_is_measured_on() -> None:
    assert not CpuUse(cpus=2, others=0.5).leaves_hardly_any
    assert CpuUse(cpus=2, others=0.5, stolen=0.3).leaves_hardly_any
    busy = CpuUse(2, others=0.96, stolen=0.2, programs={"rustc": 1.2, "make": 0.4})
    assert str(busy) == (
        "other programs use 96 % of the 2 CPUs (rustc 60 %, make 20 %), other machines on this "
        "host 20 %"
    )


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, None),
        ({"a": "max 100000", "a/b": "max 100000"}, None),
        ({"a": "50000 100000", "a/b": "max 100000"}, 0.5),
        ({"a": "300000 100000", "a/b": "150000 100000"}, 1.5),
    ],
)
def test_the_smallest_quota_of_all_cgroups_counts(
    tmp_path: Path, quotas: dict[str, str], expected: float | None
) -> None:
    (tmp_path / "own").write_text("0::/a/b\n")
    groups = tmp_path / "groups"
    (groups / "a/b").mkdir(parents=True)
    for path, text in quotas.items():
        (groups / path / "cpu.max").write_text(f"{text}\n")
    assert read_quota(tmp_path / "own", groups) == expected


def test_a_clock_that_takes_a_system_call_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    progress = ProgressDisplay()
    monkeypatch.setattr(progress, "say", said.append)
    for cost_ns in (25.0, 1200.0):
        monkeypatch.setattr(free_cpus, "clock_ns", lambda cost_ns=cost_ns: cost_ns)
        free_cpus.check_clock(progress)
    (line,) = said
    assert line.startswith("clock: one reading costs 1.20 µs")
