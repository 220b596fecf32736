"""Before a run: who uses the CPUs, and what a cgroup allows."""

import os
from pathlib import Path

import pytest

from replayer.measure.run import Target
from replayer.run import preflight
from replayer.run.preflight import CpuUse, check_caches, find_busiest, look_at_cpus, read_quota
from replayer.run.progress import ProgressDisplay
from tests.processes import spinners
from tests.unit.runs import make_run


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
        monkeypatch.setattr(preflight, "clock_ns", lambda cost_ns=cost_ns: cost_ns)
        preflight.check_clock(progress)
    (line,) = said
    assert line.startswith("clock: one reading costs 1.20 µs")


def test_a_target_that_was_mounted_a_moment_ago_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    progress, (target,) = ProgressDisplay(), make_run().targets
    monkeypatch.setattr(progress, "say", said.append)
    ages = {"local": None, "young": 12, "old": 3600}
    check_caches(progress, [_mounted(target, name, age_s) for name, age_s in ages.items()])
    assert [line.split(" ago")[0] for line in said] == ["caches: young was mounted 12 s"]


def _mounted(target: Target, name: str, age_s: int | None) -> Target:
    mounts = tuple(mount.model_copy(update={"mounted_s": age_s}) for mount in target.mounts)
    return target.model_copy(update={"name": name, "mounts": mounts})
