"""Advice from facts alone; each piece names its source."""

from typing import Any

import pytest

from replayer.doctor.advice import DISK_RULES, RULES, Advice, advise
from replayer.doctor.examination import PHP_ADVICE
from tests.unit.runs import make_mount

EFS = "fs-0123456789abcdef0.efs.eu-west-1.amazonaws.com:/"
FSX = "fs-0123456789abcdef0.fsx.eu-west-1.amazonaws.com:/fsx/"
RECOMMENDED = (
    "vers=4.1", "rsize=1048576", "wsize=1048576", "hard", "noresvport", "proto=tcp", "timeo=600",
    "retrans=2",
)  # fmt: skip


def advice_on(
    *options: str, source: str = "10.0.0.1:/export", kind: str = "nfs4"
) -> dict[str, Advice]:
    facts: dict[str, Any] = {"filesystem": kind, "source": source, "options": ("rw",)}
    return {item.setting: item for item in advise(make_mount(**facts, super_options=options))}


@pytest.mark.parametrize(
    ("option", "weight"),
    [
        ("soft", "warning"),
        ("softerr", "warning"),
        ("noac", "warning"),
        ("sync", "warning"),
        ("nocto", "warning"),
        ("lookupcache=none", "warning"),
        ("lookupcache=pos", "consider"),
        ("rsize=32768", "consider"),
        ("nconnect=8", "good"),
        ("nconnect=1", "consider"),
        ("noatime", "good"),
    ],
)
def test_an_option_of_nfs_is_judged(option: str, weight: str) -> None:
    assert advice_on(option)[option].weight == weight
    assert option not in advice_on()


def test_a_plain_nfs_mount_is_told_of_connections_attributes_and_the_export() -> None:
    assert list(advice_on("vers=4.2", "hard", "proto=tcp")) == [
        "actimeo",
        "nconnect",
        "sync or async export",
    ]


def test_actimeo_0_is_what_the_kernel_shows_it_as() -> None:
    shown = ("acregmin=0", "acregmax=0", "acdirmin=0", "acdirmax=0")
    assert advice_on(*shown)["actimeo=0"].weight == "warning"
    assert "actimeo" not in advice_on(*shown)


def test_a_long_actimeo_needs_no_advice() -> None:
    assert "actimeo" not in advice_on("acregmin=60", "acregmax=60")


def test_efs_as_its_helper_mounts_it_is_good() -> None:
    found = advice_on(*RECOMMENDED, source=EFS)
    assert found["mount helper"].weight == "good"
    assert not [item for item in found.values() if item.weight == "warning"]
    assert "BurstCreditBalance" in found["throughput mode"].says
    assert {"nconnect", "sync or async export"} & set(found) == set()


def test_a_mount_through_this_machine_may_be_the_tunnel_of_the_efs_helper() -> None:
    found = advice_on(*RECOMMENDED, "port=20371", "addr=127.0.0.1", source="127.0.0.1:/")
    assert "EFS mount helper" in found["addr"].says
    assert "nconnect" not in found
    assert "addr" not in advice_on(*RECOMMENDED, "addr=10.0.0.1")


def test_efs_mounted_otherwise_is_told_what_is_recommended() -> None:
    found = advice_on("vers=4.0", "timeo=150", "retrans=2", source=EFS)
    assert "timeo is 150, 600 is recommended" in found["mount helper"].says
    assert "noresvport" in found["mount helper"].says
    assert found["vers=4.0"].weight == "warning"


def test_fsx_is_told_what_its_exports_default_to() -> None:
    assert "exports are sync by default" in advice_on(source=FSX)["sync or async export"].says


def test_a_local_disk_is_judged_by_its_own_rules() -> None:
    assert list(advice_on("relatime", "sync", kind="ext4")) == ["sync"]
    assert advice_on("relatime", kind="xfs") == {}
    assert advice_on("soft", kind="unheard-of") == {}


@pytest.mark.parametrize("kind", DISK_RULES)
def test_a_disk_whose_reads_write_access_times_is_told_by_what_the_kernel_shows(kind: str) -> None:
    """Linux, fs/proc_namespace.c: no option is shown of a mount with strictatime."""
    assert list(advice_on(kind=kind)) == ["strictatime"]
    for option in ("relatime", "noatime", "lazytime", "ro"):
        assert advice_on(option, kind=kind) == {}


@pytest.mark.parametrize("option", ["nobarrier", "barrier=0", "data=writeback"])
def test_what_endangers_data_on_a_disk_is_warned_of(option: str) -> None:
    assert advice_on(option, kind="ext4")[option].weight == "warning"


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("ext3", "ext4(5)"),
        ("btrfs", "btrfs(5)"),
        ("f2fs", "kernel documentation, filesystems/f2fs"),
    ],
)
def test_advice_on_barriers_names_the_manual_of_the_file_system(kind: str, source: str) -> None:
    assert advice_on("nobarrier", kind=kind)["nobarrier"].source.startswith(source)


@pytest.mark.parametrize("option", ["nolock", "local_lock=all", "local_lock=flock"])
def test_locks_that_other_clients_do_not_see_are_warned_of(option: str) -> None:
    assert advice_on(option)["local_lock"].weight == "warning"
    assert "local_lock" not in advice_on("local_lock=none")


def test_what_sshfs_was_told_cannot_be_seen_and_is_asked_about() -> None:
    found = advice_on(kind="fuse.sshfs")
    assert {item.weight for item in found.values()} == {"ask"}
    assert "dir_cache, dcache_timeout" in found


def test_a_memory_file_system_without_a_limit_of_its_own_is_named() -> None:
    assert list(advice_on(kind="tmpfs")) == ["size"]
    assert advice_on("size=8388608k", kind="tmpfs") == {}


@pytest.mark.parametrize("kind", RULES)
def test_no_rule_speaks_of_one_setting_twice(kind: str) -> None:
    for source in ("10.0.0.1:/export", EFS, FSX):
        options = ("soft", "noac", "nconnect=4", "rsize=4096", "acregmin=0", "acregmax=0")
        facts: dict[str, Any] = {"filesystem": kind, "source": source}
        said = [found.setting for found in advise(make_mount(**facts, super_options=options))]
        assert len(said) == len(set(said))


def test_all_advice_names_its_source_and_warnings_come_first() -> None:
    found = list(advice_on("soft", "noac", "lookupcache=none", "nconnect=4").values())
    assert all(item.source for item in (*found, *PHP_ADVICE))
    weights = [item.weight for item in found]
    assert weights == sorted(weights, key=["warning", "consider", "ask", "good"].index)
