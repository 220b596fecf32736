"""What ops do to files, and what is recorded of them."""

import os
from pathlib import Path
from typing import Any

import pytest

from replayer._native import Sandbox
from replayer.ops import PLAN_OPS, names_where
from tests.unit.engine.drafts import Drafts, Run

MASK = (1 << 64) - 1

ENDING = names_where(lambda op: "ends" in op.flags)


def mix64(z: int) -> int:
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def written(size: int) -> bytes:
    """The data of the first write of user 0, with seed 1 and a pool of 1 MiB."""
    golden = 0x9E3779B97F4A7C15
    mixed = mix64(mix64(golden))
    first = mixed * (((1 << 20) - size) // 8 + 1) >> 64
    words = range(first, first + size // 8)
    return b"".join(
        mix64((1 ^ 0x5EED5EED5EED5EED) + golden * (word + 1) & MASK).to_bytes(8, "little")
        for word in words
    )


def test_written_files_hold_the_bytes_of_the_plan_format(
    drafts: Drafts, run: Run, sandbox: Sandbox
) -> None:
    steps = [
        drafts.name(0, "new-", {"user": True}, "-", {"seq": True}, "-", {"next": True}),
        drafts.open_new(0),
        drafts.call("write", file=0, total={"const": 4096}, block={"const": 4096}),
        drafts.call("close", file=0),
    ]
    Path(sandbox.path, "files").mkdir()
    rows = run(drafts.plan(steps))
    assert rows["write", "ok", True].bytes == 4096
    assert rows["transaction", "ok", True].bytes == 4096
    assert Path(sandbox.path, "files/new-0-0-1").read_bytes() == written(4096)


def test_counts_and_bytes_of_reads_are_exact(drafts: Drafts, run: Run, sandbox: Sandbox) -> None:
    read = drafts.call("read", file=1, size={"const": 1024}, until_end=True, check_size=True)
    steps = [
        {
            "do": "each",
            "dataset": 0,
            "slot": 1,
            "reverse": True,
            "f": [drafts.call("open", path=1, flags=0, mode=None), read],
            "d": [],
            "l": [],
        }
    ]
    plan = drafts.plan(steps)
    sandbox.lay_out(plan, 2).result()
    rows = run(plan)
    assert rows["read", "ok", True].histogram.count == 6
    assert rows["read", "END", True].histogram.count == 2
    assert rows["read", "ok", True].bytes == 5100
    assert rows["close", "ok", True].histogram.count == 2
    assert rows["transaction", "ok", True].histogram.count == 1


def test_a_file_of_another_size_is_short(drafts: Drafts, run: Run, sandbox: Sandbox) -> None:
    read = drafts.call("read", file=0, size={"const": 4096}, until_end=True, check_size=True)
    steps = [
        {"do": "bind", "slot": 0, "pick": 0},
        drafts.call("open", path=0, flags=0, mode=None),
        read,
    ]
    plan = drafts.plan(steps)
    sandbox.lay_out(plan, 1).result()
    for name in "ab":
        Path(sandbox.path, "files", name).write_bytes(b"?")
    rows = run(plan)
    assert rows["read", "SHORT", False].histogram.count == 1
    assert rows["transaction", "failed", False].histogram.count == 1


def test_an_unexpected_outcome_skips_the_rest_and_closes(
    drafts: Drafts, run: Run, sandbox: Sandbox
) -> None:
    steps = [
        drafts.name(0, "new"),
        drafts.open_new(0),
        drafts.name(1, "missing"),
        drafts.call("stat", path=1),
        drafts.call("unlink", path=0),
    ]
    Path(sandbox.path, "files").mkdir()
    rows = run(drafts.plan(steps))
    assert rows["stat", "ENOENT", False].histogram.count == 1
    assert rows["close", "ok", True].histogram.count == 1
    assert rows["transaction", "failed", False].histogram.count == 1
    assert ("unlink", "ok", True) not in rows


def test_an_expected_outcome_is_no_error(drafts: Drafts, run: Run) -> None:
    steps = [
        drafts.name(0, "missing"),
        drafts.call("stat", path=0, expect=("ENOENT",)),
        drafts.call("rmdir", path=0, expect=("any",)),
        drafts.call("fsync", file=0, expect=("EBADF",)),
        drafts.call("stat", path=5, expect=("EINVAL",)),
    ]
    rows = run(drafts.plan(steps))
    assert rows["stat", "ENOENT", True].histogram.count == 1
    assert rows["rmdir", "ENOENT", True].histogram.count == 1
    assert rows["fsync", "EBADF", True].histogram.count == 1
    assert rows["stat", "EINVAL", True].histogram.count == 1
    assert rows["transaction", "ok", True].histogram.count == 1


def all_ops(drafts: Drafts) -> list[dict[str, Any]]:
    """Every op once or more, in an order in which each succeeds."""
    c, call = drafts.const, drafts.call
    return [
        drafts.name(0, "new"),
        drafts.name(1, "other"),
        drafts.name(2, "dir"),
        drafts.open_new(0),
        call("write", file=0, total=c(10000), block=c(4096)),
        call("append", file=0, total=c(10), block=c(10)),
        call("pwrite", file=0, size=c(100), offset=c(50)),
        call("pwrite_random", file=0, size=c(8), align=8),
        call("lseek", file=0, offset=c(0), whence=0),
        call("read", file=0, size=c(4096), until_end=True, check_size=False),
        call("pread", file=0, size=c(100), offset=c(0)),
        call("pread_random", file=0, size=c(100), align=1),
        call("fsync", file=0),
        call("fdatasync", file=0),
        call("fstat", file=0),
        call("fiemap", file=0),
        call("ftruncate", file=0, size=c(9000)),
        call("fallocate", file=0, offset=c(0), size=c(20000), mode=0),
        call("fchmod", file=0, mode=0o600),
        call("fchown", file=0, uid=-1, gid=-1),
        call("futimens", file=0, mtime_ns=c(1_000_000_005)),
        call("flock", file=0, kind="exclusive", wait=True),
        call("flock_unlock", file=0),
        call("fcntl_lock", file=0, kind="shared", wait=True, offset=c(0), size=c(0)),
        call("fcntl_unlock", file=0, offset=c(0), size=c(0)),
        call("mmap_read", file=0),
        call("open", path=1, flags=0o102, mode=0o644),
        call("lseek", file=0, offset=c(0), whence=0),
        call("copy_file_range", file=0, to=1, size=c(16384)),
        call("sendfile", file=0, size=c(1024)),
        call("close", file=1),
        call("stat", path=0),
        call("lstat", path=0),
        call("access", path=0, mode=4),
        call("mkdir", path=2, mode=0o755),
        call("open", path=2, flags=0o200000, mode=None),
        call("getdents", file=2),
        call("rmdir", path=2),
        call("rename", path=1, to=2, flags=1),
        call("link", path=2, to=1),
        call("unlink", path=2),
        call("symlink", path=2, target="other"),
        call("readlink", path=2),
        call("truncate", path=1, size=c(5)),
        call("chmod", path=1, mode=0o640),
        call("chown", path=1, uid=-1, gid=-1),
        call("utimens", path=1, mtime_ns=None),
        call("setxattr", path=1, name="user.test", size=c(20)),
        call("getxattr", path=1, name="user.test"),
        call("listxattr", path=1),
        call("removexattr", path=1, name="user.test"),
    ]


def test_a_file_copied_onto_its_own_end_does_not_grow_for_ever(
    drafts: Drafts, run: Run, sandbox: Sandbox
) -> None:
    Path(sandbox.path, "files").mkdir()
    c, call = drafts.const, drafts.call
    steps = [
        drafts.name(0, "new"),
        drafts.name(1, "new"),
        drafts.open_new(0),
        call("write", file=0, total=c(10000), block=c(10000)),
        call("open", path=1, flags=os.O_RDWR, mode=None),
        call("lseek", file=1, offset=c(0), whence=2),
        call("lseek", file=0, offset=c(0), whence=0),
        call("copy_file_range", file=0, to=1, size=c(4000)),
    ]
    rows = run(drafts.plan(steps))
    assert rows["copy_file_range", "ok", True].histogram.count == 3
    assert Path(sandbox.path, "files/new").stat().st_size == 22000


@pytest.mark.parametrize("mode", ["as-possible", "guarded"])
def test_every_op_succeeds_on_real_files(
    drafts: Drafts, run: Run, sandbox: Sandbox, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYER_CONFINEMENT", mode)
    Path(sandbox.path, "files").mkdir()
    rows = run(drafts.plan(all_ops(drafts)))
    assert {key[1:] for key in rows} == {("ok", True), ("END", True)}
    assert {key[0] for key in rows} >= PLAN_OPS
    assert {key[0] for key in rows if key[1] == "END"} <= ENDING
    assert rows["sendfile", "END", True].bytes == 0
    assert rows["copy_file_range", "ok", True].bytes == 20000
    other = Path(sandbox.path, "files/other")
    assert (other.stat().st_size, other.stat().st_mode & 0o7777) == (5, 0o640)
    assert Path(sandbox.path, "files/dir").readlink() == Path("other")
    assert Path(sandbox.path, "files/new").stat().st_mtime_ns == 1_000_000_005
