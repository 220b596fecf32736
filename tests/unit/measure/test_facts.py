import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.errors import ReplayerError
from replayer.measure.facts import collect_facts, collect_machine, filesystem_of
from replayer.measure.guarantee import guarantee_of, place_of
from replayer.measure.health import health_warnings, saturated, say_saturated
from replayer.measure.mountinfo import Mount, load_mountinfo, mount_of, parse_mountinfo
from tests.unit.runs import make_health, make_load, make_machine, make_mount

# From a client of an NFS 4.2 export, and one of sshfs.
TABLE = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
60 27 0:50 / /mnt/nfs rw,noatime master:3 propagate_from:2 - nfs4 10.0.0.1:/export rw,vers=4.2
61 27 0:51 /sub /mnt/two\040words ro - fuse.sshfs me@host:/srv rw,user_id=0
62 60 0:52 / /mnt/nfs rw - tmpfs tmpfs rw,size=4k
"""


def found(path: str) -> Mount:
    mount = mount_of(PurePosixPath(path), parse_mountinfo(TABLE))
    assert mount is not None
    return mount


def test_a_path_lies_on_the_longest_mount_point_above_it() -> None:
    assert found("/home/me").kind == "ext4"
    assert found("/mnt/nfsother").kind == "ext4"
    assert found("/proc/1").kind == "proc"


def test_of_two_mounts_on_one_point_the_later_one_is_seen() -> None:
    assert found("/mnt/nfs/data").kind == "tmpfs"


def test_optional_fields_and_escapes_are_understood() -> None:
    mount = found("/mnt/two words/x")
    assert (mount.kind, mount.source, mount.root) == ("fuse.sshfs", "me@host:/srv", "/sub")
    assert mount.options == ("ro",)


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\r", "\x1c", "\x85", "\u2028"])
def test_a_name_may_hold_what_ends_a_line_elsewhere(end: str) -> None:
    line = f"63 27 0:53 / /mnt/a{end}b rw - nfs4 server:/a{end}b rw,vers=4.2\n"
    mounts = parse_mountinfo(TABLE + line)
    assert len(mounts) == TABLE.count("\n") + 1
    mount = mount_of(PurePosixPath(f"/mnt/a{end}b/data"), mounts)
    assert mount is not None
    assert (mount.kind, mount.source) == ("nfs4", f"server:/a{end}b")


@given(st.text(max_size=200))
def test_any_text_is_parsed_without_failing(text: str) -> None:
    parse_mountinfo(text)


def test_facts_of_a_real_folder_agree_with_findmnt(tmp_path: Path) -> None:
    facts = collect_facts(tmp_path)
    said = subprocess.run(
        ["findmnt", "-n", "-o", "FSTYPE,TARGET", "-T", str(tmp_path)],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert [facts.filesystem, facts.mount_point] == said
    assert facts.space.bytes_total == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_a_missing_path_is_named() -> None:
    with pytest.raises(ReplayerError, match="/no/such/place: No such file or directory"):
        collect_facts(Path("/no/such/place"))


def test_secrets_among_mount_options_are_not_kept() -> None:
    from replayer.measure.facts import _without_secret  # noqa: PLC0415 - no mount has one

    assert _without_secret("password=hunter2") == "password=…"
    assert _without_secret("vers=3.1.1") == "vers=3.1.1"


def test_this_machine_can_be_described() -> None:
    machine = collect_machine()
    assert machine.cpus == len(os.sched_getaffinity(0))
    assert machine.memory_bytes > 0
    assert os.uname().nodename not in machine.model_dump_json()


@pytest.mark.parametrize(
    ("filesystem", "options", "places"),
    [
        ("tmpfs", (), ("memory", "memory", "memory")),
        ("ext4", (), ("client cache", "client cache", "device")),
        ("xfs", ("sync",), ("device", "device", "device")),
        ("nfs4", ("vers=4.2",), ("client cache", "server", "server")),
        ("nfs", ("sync", "vers=3"), ("server", "server", "server")),
        ("cifs", ("cache=none",), ("server", "server", "server")),
        ("fuse.sshfs", (), ("daemon", "server", "server")),
        ("fuse.glusterfs", (), ("daemon", "daemon", "server")),
        ("fuse.s3fs", (), ("daemon", "daemon", "daemon")),
        ("overlay", ("volatile",), ("client cache", "client cache", "memory")),
        ("neverheardof", (), ("unknown", "unknown", "unknown")),
    ],
)
def test_each_mount_says_what_its_writes_are_worth(
    filesystem: str, options: tuple[str, ...], places: tuple[str, ...]
) -> None:
    promise = guarantee_of(make_mount(filesystem=filesystem, super_options=options))
    assert (promise.write, promise.close, promise.fsync) == places
    assert promise.source


@pytest.mark.parametrize(
    ("filesystem", "options", "place"),
    [
        ("tmpfs", (), "memory"),
        ("ext4", (), "device, not flushed"),
        ("ext4", ("nobarrier",), "device, not flushed"),
        ("ext4", ("sync",), "device"),
        ("nfs4", ("vers=4.2",), "server"),
        ("nfs", ("vers=3",), "server"),
        ("cifs", (), "server, not flushed"),
        ("fuse.sshfs", (), "daemon"),
        ("zfs", (), "client cache"),
        ("neverheardof", (), "unknown"),
    ],
)
def test_each_mount_says_where_a_write_past_the_page_cache_is(
    filesystem: str, options: tuple[str, ...], place: str
) -> None:
    promise = guarantee_of(make_mount(filesystem=filesystem, super_options=options))
    assert place_of(promise, "direct") == place


def test_an_nfs_client_says_that_it_cannot_see_the_export() -> None:
    promise = guarantee_of(make_mount(filesystem="nfs4"))
    assert promise.unseen is not None
    assert "export" in promise.unseen


def test_a_healthy_harness_warns_of_nothing() -> None:
    assert health_warnings(make_health(), make_load(), make_machine()) == ()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"client_cpu_share": 0.95}, "client busy"),
        ({"run_queue_delay_ns": 200, "in_call_ns": 1000}, "waited for a cpu"),
        ({"run_queue_delay_ns": None, "in_call_ns": 2_000_000}, "too short"),
        ({"overhead_ns": 5000.0}, "engine slow"),
        (
            {"clock_ns": 11_000.0, "overhead_ns": 12_000.0, "calls": 10, "in_call_ns": 2_000_000},
            "clock slow",
        ),
        ({"stood_still_ns": 2_000_000_000}, "stood still"),
        ({"users_given_up": 1}, "users given up"),
        ({"events_dropped": 3}, "events dropped"),
    ],
)
def test_each_weakness_of_the_harness_is_a_warning(change: dict[str, float], kind: str) -> None:
    warnings = health_warnings(make_health(**change), make_load(), make_machine())
    assert [warning.kind for warning in warnings] == [kind]


def test_what_was_too_short_to_tell_is_no_saturated_client() -> None:
    health = make_health(run_queue_delay_ns=None, in_call_ns=2_000_000)
    (warning,) = health_warnings(health, make_load(), make_machine())
    assert warning.message.startswith("users were in calls for 2.00 ms in total: too short")
    assert not saturated(health)


@pytest.mark.parametrize(
    ("call_ns", "found"),
    [(300_000, ([], False)), (60_000, (["clock slow"], False)), (40_000, (["clock slow"], True))],
)
def test_a_slow_clock_counts_by_its_share_of_the_calls(
    call_ns: int, found: tuple[list[str], bool]
) -> None:
    health = make_health(
        clock_ns=11_900.0, overhead_ns=12_100.0, calls=1000, in_call_ns=1000 * call_ns
    )
    warnings = health_warnings(health, make_load(), make_machine())
    assert ([warning.kind for warning in warnings], saturated(health)) == found


def test_a_slow_clock_says_what_it_costs() -> None:
    health = make_health(clock_ns=11_900.0, overhead_ns=12_100.0, calls=10, in_call_ns=600_000)
    (warning,) = health_warnings(health, make_load(), make_machine())
    assert "clock reading costs 11.9 µs" in warning.message
    assert "12.1 µs an op with it: 20% of" in warning.message


def test_the_hint_depends_on_what_the_user_asked_for() -> None:
    busy = make_health(client_cpu_share=1.0)
    hints = [
        health_warnings(busy, load, make_machine())[0].hint
        for load in (make_load(users=16), make_load(loop="open"), make_load(users=1))
    ]
    assert "think time" in hints[0]
    assert "arrival rate" in hints[1]
    assert "more CPUs" in hints[2]


@pytest.mark.parametrize(
    ("own", "others", "stolen", "hint"),
    [
        (0.012, 0.97, 0.0, "stop the other programs"),
        (0.3, 0.6, 0.05, "stop the other programs"),
        (0.6, 0.3, 0.05, "16 users share 2 CPUs: use fewer (-u), give them think time"),
        (0.1, 0.2, 0.6, "run when other machines of the host are idle"),
        (0.05, 0.03, 0.0, "the CPUs were idle most of the time: check whether a quota"),
        (0.012, None, None, "16 users share 2 CPUs: use fewer (-u), give them think time"),
    ],
)
def test_the_hint_is_about_who_used_the_cpus(
    own: float, others: float | None, stolen: float | None, hint: str
) -> None:
    health = make_health(
        client_cpu_share=own,
        others_cpu_share=others,
        stolen_cpu_share=stolen,
        run_queue_delay_ns=300,
    )
    (warning,) = health_warnings(health, make_load(users=16), make_machine())
    assert warning.hint.startswith(hint)
    told = f"; of these CPUs this client used {own:.0%}, other programs {others or 0:.0%}"
    assert (told in warning.message) == (others is not None)
    assert ("other machines (steal)" in warning.message) == bool(stolen)
    by = say_saturated(health).partition(": ")[0]
    assert by == {
        "stop": "the client was saturated by other programs",
        "run ": "the client was saturated by other machines of its host",
    }.get(hint[:4], "the client was saturated")


@pytest.mark.parametrize(
    ("delay_ns", "says"),
    [
        (570, "users waited for a CPU for 57% of their time in calls: "),
        (1020, "users waited for a CPU for 102% of their time in calls: "),
        (1110, "users waited for a CPU for 1.11 times their time in calls: "),
        (150_000, "users waited for a CPU for 150 times their time in calls: "),
    ],
)
def test_a_wait_of_more_than_all_of_the_time_is_no_percentage(delay_ns: int, says: str) -> None:
    health = make_health(run_queue_delay_ns=delay_ns, in_call_ns=1000)
    (warning,) = health_warnings(health, make_load(), make_machine())
    assert warning.message.startswith(says)


@pytest.mark.parametrize("place", ["", "/proc", "/sys"])
def test_a_file_system_that_the_mount_table_lacks_is_known_by_its_number(
    tmp_path: Path, place: str
) -> None:
    path = Path(place) if place else tmp_path.resolve()
    kind = collect_facts(path).filesystem
    known = {"nfs4": "nfs", "ext2": "ext4", "ext3": "ext4"}.get(kind, kind).partition(".")[0]
    assert filesystem_of(path, ()) == known
    assert filesystem_of(path, load_mountinfo()) == kind


def test_where_statfs_fails_the_file_system_is_unknown(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path / "nowhere", ()) == "unknown"
