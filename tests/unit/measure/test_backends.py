"""What two mounts are known to share."""

from pathlib import Path

import pytest

from replayer.measure.backends import disks_of, find_shared
from tests.unit.runs import make_mount


def device(root: Path, number: str, *way: str) -> Path:
    """A block device as /sys has it."""
    place = root.joinpath("devices", *way)
    place.mkdir(parents=True)
    (place / "dev").write_text(f"{number}\n")
    links = root / "dev/block"
    links.mkdir(parents=True, exist_ok=True)
    (links / number).symlink_to(place)
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One disk with two partitions, another one, a mirror of both, and a loop device."""
    root = tmp_path / "sys"
    device(root, "8:0", "sda")
    for number in (1, 2):
        part = device(root, f"8:{number}", "sda", f"sda{number}")
        (part / "partition").write_text(f"{number}\n")
    device(root, "8:16", "sdb")
    mirror = device(root, "253:0", "dm-0")
    (mirror / "slaves").mkdir()
    for below in ("sda/sda1", "sdb"):
        (mirror / "slaves" / Path(below).name).symlink_to(root / "devices" / below)
    return root


def disk(number: str, **changes: object) -> dict[str, object]:
    return {"device": number, "source": "/dev/absent", **changes}


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("8:1", "8:1", "are on the same file system (ext4 at /srv)"),
        ("8:1", "8:2", "are on the same disk (sda)"),
        ("8:2", "253:0", "are on the same disk (sda)"),
        ("8:16", "253:0", "are on the same disk (sdb)"),
        ("8:1", "8:16", None),
        ("8:1", "0:99", None),  # a tmpfs
    ],
)
def test_partitions_and_volumes_of_one_disk_share_it(
    root: Path, one: str, other: str, says: str | None
) -> None:
    found = find_shared(make_mount(**disk(one)), make_mount(**disk(other)), root)
    assert found == says


def test_a_loop_is_on_the_disk_of_its_file(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_text("")
    number = file.stat().st_dev
    device(root, f"{number >> 8}:{number & 0xFF}", "own")
    place = device(root, "7:0", "loop0")
    (place / "loop").mkdir()
    (place / "loop/backing_file").write_text(f"{file}\n")
    assert "own" in set(disks_of(make_mount(**disk("7:0")), root))


def nfs(source: str, addr: str, *more: str) -> dict[str, object]:
    options = ("rw", f"addr={addr}", *more)
    return {"filesystem": "nfs4", "source": source, "super_options": options}


def fuse(kind: str, source: str) -> dict[str, object]:
    return {"filesystem": kind, "source": source}


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (nfs("nas:/a", "10.0.0.1"), nfs("nas:/b", "10.0.0.1"), "server (10.0.0.1, nas)"),
        (nfs("nas:/a", "10.0.0.1"), nfs("other:/a", "10.0.0.1"), "server (10.0.0.1)"),
        (nfs("nas:/a", "10.0.0.1"), nfs("other:/a", "10.0.0.2"), None),
        (
            nfs("127.0.0.1:/", "127.0.0.1", "port=20049"),  # tunnels of EFS's mount helper
            nfs("127.0.0.1:/", "127.0.0.1", "port=20050"),
            None,
        ),
        (
            {"filesystem": "cifs", "source": "//nas/one"},
            {"filesystem": "cifs", "source": "//nas/two"},
            "server (nas)",
        ),
        (fuse("fuse.sshfs", "me@host:/a"), fuse("fuse.sshfs", "host:/b"), "server (host)"),
        (fuse("fuse.glusterfs", "host:/one"), fuse("fuse.sshfs", "host:"), "server (host)"),
        (fuse("fuse.gcsfuse", "photos"), fuse("fuse.gcsfuse", "photos"), "bucket (photos)"),
        (fuse("fuse.rclone", "s3:photos/a"), fuse("fuse.rclone", "s3:photos/b"), "s3:photos"),
        (fuse("fuse.davfs", "https://one/a"), fuse("fuse.davfs", "https://two/a"), None),
        (fuse("fuse.s3fs", "s3fs"), fuse("fuse.s3fs", "s3fs"), None),  # it does not say which
        (
            {"filesystem": "zfs", "source": "tank/one"},
            {"filesystem": "zfs", "source": "tank/two"},
            "are on the same pool (tank)",
        ),
    ],
)
def test_servers_buckets_and_pools_are_known_by_their_names(
    root: Path, one: dict[str, object], other: dict[str, object], says: str | None
) -> None:
    mounts = make_mount(**{**one, "device": "0:90"}), make_mount(**{**other, "device": "0:91"})
    for first, second in (mounts, mounts[::-1]):
        found = find_shared(first, second, root)
        assert found is None if says is None else says in str(found), found
