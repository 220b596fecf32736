"""What a worker was told by its own user, held against what its master tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from replayer.cluster.agreement import agreed_workload, refuse_differences
from replayer.errors import ReplayerError
from replayer.plan.replaying import ReplayOptions, compile_replay
from replayer.run.options import Settings
from replayer.run.roles import ClusterSettings
from replayer.trace.facts import load_facts
from replayer.trace.shipped import shipped_traces

TOLD: dict[str, Any] = {
    "users": 4,
    "run_time_s": 10,
    "rounds": 1,
    "segment_ns": 10_000_000_000,
    "seed": 7,
    "changes": ["mix.look=1"],
    "cache": "warm",
    "keep": None,
    "timeout_s": 20,
}


@pytest.mark.parametrize(
    ("settings", "timeout_s"),
    [
        (Settings(), 10),
        (Settings(seed=7, changes=("mix.look=1",), cache="warm", rounds=1), 10),
        (Settings(users=4, run_time_s=10), 20),
    ],
)
def test_a_worker_may_say_nothing_or_the_same(settings: Settings, timeout_s: float) -> None:
    refuse_differences(settings, ClusterSettings(timeout_s=timeout_s), TOLD)


@pytest.mark.parametrize(
    ("settings", "timeout_s", "says"),
    [
        (Settings(seed=8), 10, "--seed 8: the master has 7"),
        (Settings(changes=("mix.look=2",)), {}, "--set mix.look=2: the master has mix.look=1"),
        (Settings(cache="cold"), 10, "--cache cold: the master has warm"),
        (Settings(rounds=3), 10, "--rounds 3: the master has 1"),
        (Settings(keep="used"), 10, "--keep used: the master has none"),
        (Settings(users=5), 10, "-u 5: the master has 4"),
        (Settings(run_time_s=60), 10, "-t 60: the master has 10"),
        (Settings(), 30, "--worker-timeout 30: the master has 20"),
    ],
)
def test_what_a_worker_says_differently_is_refused_and_not_dropped(
    settings: Settings, timeout_s: float, says: str
) -> None:
    with pytest.raises(ReplayerError) as refused:
        refuse_differences(settings, ClusterSettings(timeout_s=timeout_s), TOLD)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    "change",
    [
        "tree.tar=other.tar",
        "datasets.tree.manifest=/etc/other",
        "tree.manifest=other.tsv",
        "datasets={tree: {manifest: lists/other}}",
        "transactions.remove=[{script: {in: tree, file: other}}]",
        "transactions.remove={trace: /srv/other}",
        "transactions.remove=[{repeat: {times: 1, steps: [replay: other]}}]",
    ],
)
def test_a_worker_reads_no_file_that_its_master_alone_names(change: str) -> None:
    told = {**TOLD, "changes": [change], "fingerprint": "0" * 64}
    with pytest.raises(ReplayerError, match="names a file, and a worker takes no path") as refused:
        agreed_workload(Settings(scenario="rm-rf"), told)
    assert str(refused.value).startswith(f"--set {change}: ")
    with pytest.raises(ReplayerError) as own:
        agreed_workload(Settings(scenario="rm-rf", changes=(change,)), told)
    assert "takes no path" not in str(own.value)


@pytest.mark.parametrize(
    "change", ["tree.manifest=plugin-428", "transactions.remove={trace: wordpress/front-warm}"]
)
def test_what_comes_with_the_program_may_be_named_by_a_master(change: str) -> None:
    told = {**TOLD, "changes": [change], "fingerprint": "0" * 64}
    with pytest.raises(ReplayerError, match="its plan is"):
        agreed_workload(Settings(scenario="rm-rf"), told)


def test_a_worker_without_a_trace_finds_the_shipped_one_that_its_master_replays() -> None:
    name = next(iter(shipped_traces()))
    facts = load_facts(name, Path())
    plan = compile_replay(facts, ReplayOptions(pace="asap", users=1))
    told = {"plan": plan.document(), "source": name, "cache": "as-is"}
    found = agreed_workload(Settings(), told)
    assert found.plan.fingerprint == plan.fingerprint
    assert found.plan.traces[0].sha256 == facts.sha256
    body = json.loads(plan.document())
    body["traces"][0]["sha256"] = "0" * 64
    with pytest.raises(ReplayerError, match="is not a shipped trace"):
        agreed_workload(Settings(), {**told, "plan": json.dumps(body)})
