"""Faults that only a kernel of our own can have: of NFS and its network, of a disk, of the clock.

A program for the guest: it plays the faults that it is told, and writes what came of each.

    python -m tests.mounts.nfs_faults --output FILE [FAULT…]
"""

import argparse
import json
import os
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.mounts.machine import call, wait_for
from tests.mounts.scene import Scene, make_scene

__all__ = ["FAULTS"]

STOP_S = 2
SLACK_S = 5
HOME = Path("/tmp/faults")  # noqa: S108 - the guest's own
EXPORT = ("*:/exports/async",)
OPTIONS = "rw,async,no_root_squash,no_subtree_check,fsid=2"
AGAIN_S = 200  # how long a client may take to find its server again, see mount.nfs(8) timeo
SPARE = "/dev/ubdb"
NO_UDEV = {"DM_DISABLE_UDEV": "1"}  # there is none in the guest to make device nodes


def on_nfs(name: str, mount: str = "/nfs/async") -> Scene:
    """Return a scene on an NFS mount."""
    place = Path(mount, name)
    place.mkdir()
    return make_scene(HOME / name, place)


def export_is_removed_and_added_again() -> None:
    scene = on_nfs("export-again")
    scene.begin("tiny.yaml", "-t", "8s", "-s", str(STOP_S), "--threshold", "errors == 0")
    scene.wait_until_measuring()
    scene.happens()
    call("exportfs", "-u", *EXPORT)
    time.sleep(2)
    call("exportfs", "-i", "-o", OPTIONS, *EXPORT)
    ending = scene.end(120)
    assert "ESTALE" in ending.outcomes, (ending.outcomes, ending.said)
    assert ending.code == 3, ending.said
    assert list(scene.mount.glob("replayer-2*")) == [], ending.said
    scene.check_foreign()
    scene.tell("export removed for 2 s", "NFS 4.1", ending)


def export_is_removed_for_good() -> None:
    scene = on_nfs("export-gone")
    scene.begin("tiny.yaml", "-t", "6s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    call("exportfs", "-u", *EXPORT)
    ending = scene.end(120)
    call("exportfs", "-i", "-o", OPTIONS, *EXPORT)
    assert "ESTALE" in ending.outcomes, (ending.outcomes, ending.said)
    assert ending.code in {3, 4}, ending.said
    assert "replayer clean" in ending.said
    assert ending.took_s < 6 + STOP_S + SLACK_S + 20, ending.took_s  # a busy guest
    scene.clean()
    scene.tell("export removed for good", "NFS 4.1", ending)


def network_is_gone_for_a_while() -> None:
    scene = on_nfs("network-while", "/nfs/async-too")
    scene.begin("tiny.yaml", "-t", "30s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    call("ip", "link", "set", "here", "down")
    reported_s = scene.wait_until_told("hangs: user")
    call("ip", "link", "set", "here", "up")
    assert reported_s < 5 + 5, reported_s
    ending = scene.end(200)
    assert ending.code in {0, 4}, ending.said
    assert ending.outcomes == frozenset(), ending.outcomes
    scene.check_foreign()
    scene.tell("network gone for 6 s", "NFS 4.1", ending)


def network_is_gone_for_ever() -> None:
    scene = on_nfs("network-ever", "/nfs/async-too")
    scene.begin("tiny.yaml", "-t", "10s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    call("ip", "link", "set", "here", "down")
    scene.wait_until_told("hangs: user")
    ending = scene.end(120)
    call("ip", "link", "set", "here", "up")
    assert ending.took_s < 10 + STOP_S + SLACK_S, ending.took_s
    assert ending.code == 4, ending.said
    assert "left behind" in ending.said
    wait_for(lambda: answers(scene.mount), "the client has found its server", AGAIN_S)
    scene.clean()
    scene.tell("network gone for ever", "NFS 4.1", ending)


def answers(path: Path) -> bool:
    """Whether a mount answers within a second."""
    try:
        return subprocess.run(["ls", str(path)], check=False, timeout=1).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def packets_are_delayed_and_lost() -> None:
    call("modprobe", "sch_netem")
    scene = on_nfs("netem", "/nfs/async-too")
    scene.begin("tiny.yaml", "-t", "10s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    call("tc", "qdisc", "add", "dev", "here", "root", "netem", "delay", "20ms", "5ms", "loss", "3%")
    time.sleep(5)
    counted = call("tc", "-s", "qdisc", "show", "dev", "here")
    ending = scene.end(200)
    call("tc", "qdisc", "delete", "dev", "here", "root")
    assert "dropped 0," not in counted, counted
    assert ending.code in {0, 4}, ending.said
    assert ending.outcomes == frozenset(), ending.outcomes
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell("netem: delay 20 ms ± 5 ms, 3 % lost", "NFS 4.1", ending)


def server_has_no_space_left() -> None:
    scene = on_nfs("space")
    # To fill the disk takes a busy guest ten seconds.
    scene.begin("tiny.yaml", "-t", "30s", "-s", str(STOP_S), "--threshold", "errors == 0")
    scene.wait_until_measuring()
    scene.happens()
    space = os.statvfs("/disk")
    call("fallocate", "-l", str(space.f_bavail * space.f_frsize), "/disk/filler")
    with Path("/disk/filler-2").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    ending = scene.end(120)
    for name in ("/disk/filler", "/disk/filler-2"):
        Path(name).unlink()
    assert ending.outcomes == {"ENOSPC"}, (ending.outcomes, ending.said)
    assert ending.code == 3, ending.said
    assert list(scene.mount.glob("replayer-2*")) == [], ending.said
    scene.check_foreign()
    scene.tell("no space on the server", "NFS 4.1", ending)


def disk_fails_in_a_run() -> None:
    call("modprobe", "-a", "dm-mod", "dm-flakey")
    size = int(call("blockdev", "--getsz", SPARE))
    flakey("create", f"0 {size} flakey {SPARE} 0 3600 0")
    place = Path("/flakey")
    place.mkdir()
    call("mkfs.ext4", "-q", "-F", "/dev/mapper/flakey")
    call("mount", "/dev/mapper/flakey", place)
    scene = make_scene(HOME / "flakey", place)
    save = "transactions.save.1.write.size=64KiB"
    scene.begin("tiny.yaml", "-t", "10s", "-s", str(STOP_S), "--set", SYNCED, "--set", save)
    scene.wait_until_measuring()
    scene.happens()
    flakey("reload", f"0 {size} flakey {SPARE} 0 0 3600 1 error_writes")
    resume()
    ending = scene.end(120)
    assert ending.outcomes, ending.said
    assert ending.outcomes <= {"EIO", "EROFS"}, ending.outcomes
    assert ending.code == 3, ending.said
    call("umount", "-l", place)
    flakey("reload", f"0 {size} flakey {SPARE} 0 3600 0")
    resume()
    subprocess.run(["e2fsck", "-fy", "/dev/mapper/flakey"], check=False, capture_output=True)
    call("mount", "/dev/mapper/flakey", place)
    done = scene.shell.run("clean", scene.mount)
    assert done.code == 0 or "is empty" in done.err, done.err
    scene.tell("dm-flakey: writes fail", "ext4", ending)
    call("umount", "-l", place)
    call("dmsetup", "remove", "--force", "flakey", **NO_UDEV)


SYNCED = (
    "transactions.look=[{open: {in: work, name: 'sync-{seq}', flags: [create, wronly]}}, "
    "{write: {size: 8KiB}}, fsync, close]"
)


def flakey(verb: str, table: str) -> None:
    """Make the device, or give it another table."""
    call("dmsetup", verb, "flakey", "--table", table, **NO_UDEV)


def resume() -> None:
    """Have the other table be used, with calls under way or without."""
    call("dmsetup", "suspend", "--nolockfs", "--noflush", "flakey", **NO_UDEV)
    call("dmsetup", "resume", "flakey", **NO_UDEV)


def clock_is_set() -> None:
    scene = on_nfs("clock", "/nfs/sync")
    scene.begin("look.yaml", "-t", "6s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    call("date", "-s", "+1 day")
    time.sleep(2)
    call("date", "-s", "-2 days")
    ending = scene.end(120)
    call("date", "-s", "+1 day")
    assert ending.took_s < 6 + 30, ending.took_s
    assert ending.code in {0, 4}, ending.said
    (folder,) = (scene.shell.home / "replayer-runs").iterdir()
    document = json.loads(scene.shell.run("report", folder, "--format", "json").out)
    overall = document["summary"]["targets"][0]["overall"]
    assert 5.9 < overall["measured_s"] < 8, overall["measured_s"]
    assert all(row["time"]["max_ns"] < 6e9 for row in overall["ops"])
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.tell("clock set by +1 day, -2 days (the machine's own)", "NFS 4.1", ending)


FAULTS: Mapping[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        packets_are_delayed_and_lost,
        export_is_removed_and_added_again,
        export_is_removed_for_good,
        server_has_no_space_left,
        network_is_gone_for_a_while,
        network_is_gone_for_ever,
        disk_fails_in_a_run,
        clock_is_set,
    )
}


def main() -> None:
    """Play what the command line names, and write what came out: nothing, or what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("faults", nargs="*")
    options = parser.parse_args()
    found: dict[str, str] = {}
    for name in options.faults or FAULTS:
        try:
            FAULTS[name]()
            found[name] = ""
        except Exception:  # noqa: BLE001 - told by the test that reads it
            found[name] = traceback.format_exc()
        options.output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
