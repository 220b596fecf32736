"""Strategies for timed steps: a table of every op with values for each of its operands.

Operands are sampled from short lists: fast to draw, small to shrink, and ops meet on the same
names, offsets and sizes.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.property.datasets import MODES, NAMES

Step = dict[str, Any]
Strategy = st.SearchStrategy[Any]

FILES = [0, 1, 2]  # slots that hold files more often than not
LISTS = [3, 4]  # slots whose descriptors are listed and never moved
TABLES = [[0, 3, 4096, 5000], [1], [2, 2, 2, 100]]
LARGEST_WRITE = 70_000  # more than an extended attribute may hold
LOOSE = ["any"]

O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_DIRECTORY = 0o1, 0o2, 0o100, 0o200, 0o1000, 0o200000
ACCESSES = [0, 0, O_WRONLY, O_RDWR, O_RDWR]
CREATIONS = [0, 0, O_CREAT, O_CREAT, O_CREAT | O_EXCL, O_TRUNC, O_CREAT | O_TRUNC]
# O_APPEND, O_NONBLOCK, O_LARGEFILE, O_DIRECTORY, O_NOFOLLOW, O_NOATIME, O_PATH, O_TMPFILE
EXTRAS = [0] * 12 + [
    *(0o2000, 0o4000, 0o100000, O_DIRECTORY, 0o400000, 0o1000000, 0o10000000, 0o20200000)
]
FLAGS = sorted({a | c | e for a in ACCESSES for c in CREATIONS for e in EXTRAS})
PLAIN_FLAGS = [a | c for a in ACCESSES for c in CREATIONS]


@dataclass(frozen=True)
class Scene:
    """What differs between a user who is alone and one among others: where symlinks may lead."""

    climbs: tuple[str, ...]


def call(op: str, expect: list[str] | None = None, /, **operands: Any) -> Step:  # noqa: ANN401 - operands are JSON
    """A timed step."""
    return {"do": "call", "op": op, **operands, "expect": expect or LOOSE}


def numbers(high: int, low: int = 0) -> Strategy:
    """A Draw of values from low to high."""
    middle = (low + high) // 2
    draws: list[Any] = [{"const": n} for n in {low, low + 1, middle, high - 1, high}]
    draws += [{"const": n} for n in (512, 4095, 4096, 4097) if low <= n <= high]
    draws += [{"uniform": [low, high]}, {"uniform": [middle, high]}, {"uniform": [high, high]}]
    if low == 0 and high >= max(map(max, TABLES)):
        draws += [{"table": table} for table in range(len(TABLES))]
    if low == 0 and high >= LARGEST_WRITE:
        draws += [{"size_of": slot} for slot in [*FILES, *LISTS]]
    return st.sampled_from(draws)


EXPECTS = st.sampled_from(
    [LOOSE] * 60
    + [["ok"], ["ok"], ["ok", "SHORT"], ["ok", "ENOENT"], ["ENOENT"], ["EEXIST", "ok"]]
    + [["ok", "ENOTSUP", "EBADF", "EINVAL"], ["EWOULDBLOCK", "ok", "EISDIR", "ENOTDIR"]]
)
AT = st.sampled_from([*FILES, *FILES, *LISTS])
FILE = st.sampled_from(FILES)
FD = st.sampled_from([*FILES, *LISTS])
SIZE, OFFSET, LENGTH = numbers(LARGEST_WRITE), numbers(100_000), numbers(100_000)
MODE = st.sampled_from([None, None, *MODES])
OWNER = st.sampled_from([-1, -1, 0])
TIME = st.sampled_from([None, {"const": 0}, {"const": 981_173_106_123_456_789}])
ACCESS_LIST = "system.posix_acl_access"
XATTR = st.sampled_from(["user.a", "user.a", "user.b", "user." + "n" * 250, ACCESS_LIST])
ALIGN = st.sampled_from([1, 512, 4096])
LOCKS = [("shared", False), ("exclusive", False)]
LOCK = st.sampled_from([{"kind": kind, "wait": wait} for kind, wait in LOCKS])
# Large amounts are moved in large blocks only: an example should be thousands of ops at most.
SMALL = st.tuples(numbers(200), numbers(200, 1))
LARGE = st.tuples(numbers(LARGEST_WRITE), numbers(LARGEST_WRITE, 4000))
FIRST = st.one_of(st.just({}), numbers(LARGEST_WRITE).map(lambda first: {"first": first}))
AMOUNT = st.tuples(st.one_of(SMALL, LARGE), FIRST).map(
    lambda both: {"total": both[0][0], **both[1], "block": both[0][1]}
)


def _op(name: str, /, *also: Strategy, **operands: Strategy) -> Strategy:
    """A step of this op; further strategies yield several operands at once."""
    fixed = {"do": st.just("call"), "op": st.just(name), "expect": EXPECTS, **operands}
    step = st.fixed_dictionaries(fixed)
    for pair in also:
        step = st.tuples(step, pair).map(lambda both: both[0] | both[1])
    return step


def targets(scene: Scene) -> Strategy:
    """Targets of symlinks: null, text or parts; inside, dangling, or refused."""
    refused = ["", "/etc/passwd", "../../../../..", "x" * 4001, "a/../../../../../.."]
    composed = [{"parts": [name, {"hex": 2}]} for name in NAMES[:2]] + [{"parts": []}]
    inside = ["a", "b", "c", "./c", "a/b", "a//b/", "nowhere", {"parts": ["a"]}]
    return st.sampled_from([None, None, *inside, *inside, *scene.climbs, *refused, *composed])


def path_ops(scene: Scene) -> list[Strategy]:
    """Every op on paths."""
    return [
        _op("stat", path=AT),
        _op("lstat", path=AT),
        _op("access", path=AT, mode=st.integers(0, 7)),
        _op("mkdir", path=AT, mode=MODE),
        _op("rmdir", path=AT),
        _op("unlink", path=AT),
        _op("rename", path=AT, to=AT, flags=st.integers(0, 2)),
        _op("link", path=AT, to=AT),
        _op("symlink", path=AT, target=targets(scene)),
        _op("readlink", path=AT),
        _op("truncate", path=AT, size=LENGTH),
        _op("chmod", path=AT, mode=MODE),
        _op("chown", path=AT, uid=OWNER, gid=OWNER),
        _op("utimens", path=AT, mtime_ns=TIME),
        _op("getxattr", path=AT, name=XATTR),
        _op("setxattr", path=AT, name=XATTR, size=numbers(100)),
        _op("setxattr", path=AT, name=XATTR, size=SIZE),
        _op("removexattr", path=AT, name=XATTR),
        _op("listxattr", path=AT),
    ]


def data_ops() -> list[Strategy]:
    """Every op that moves data."""
    flag, never, always = st.booleans(), st.just(False), st.just(True)  # noqa: FBT003 - operands
    nothing = st.just({"const": 0})
    return [
        _op("read", file=FILE, size=SIZE, until_end=never, check_size=flag),
        _op("read", file=FILE, size=numbers(9999, 4000), until_end=always, check_size=flag),
        _op("pread", file=FILE, size=SIZE, offset=OFFSET),
        _op("pread_random", file=FILE, size=SIZE, align=ALIGN),
        _op("write", AMOUNT, file=FILE),
        _op("append", AMOUNT, file=FILE),
        _op("pwrite", file=FILE, size=SIZE, offset=OFFSET),
        _op("pwrite_random", file=FILE, size=SIZE, align=ALIGN),
        _op("lseek", file=FILE, offset=OFFSET, whence=st.integers(0, 2)),
        _op("sendfile", file=FILE, size=numbers(9999, 4000)),
        _op("copy_file_range", st.sampled_from([{"file": f, "to": f} for f in FILES]), size=SIZE),
        _op("copy_file_range", file=FILE, to=FILE, size=nothing),
        _op("copy_file_range", file=FILE, to=FILE, size=numbers(9999, 4000)),
        _op("mmap_read", file=FILE),
    ]


def file_ops() -> list[Strategy]:
    """Every other op on descriptors."""
    allocation = st.sampled_from([0, 0, 1, 3, 16, 8, 64])
    return [
        _op("close", file=FD),
        _op("fstat", file=FD),
        st.sampled_from([call(name, file=0) for name in ("fsync", "fdatasync", "fiemap")]),
        _op("ftruncate", file=FD, size=LENGTH),
        _op("fallocate", file=FD, offset=OFFSET, size=LENGTH, mode=allocation),
        _op("fchmod", file=FD, mode=MODE),
        _op("fchown", file=FD, uid=OWNER, gid=OWNER),
        _op("futimens", file=FD, mtime_ns=TIME),
        _op("flock", LOCK, file=FILE),
        _op("flock_unlock", file=FILE),
        _op("fcntl_lock", LOCK, file=FILE, offset=OFFSET, size=LENGTH),
        _op("fcntl_unlock", file=FILE, offset=OFFSET, size=LENGTH),
        _op("getdents", file=st.sampled_from(LISTS)),
    ]


USEFUL = st.sampled_from(
    [call("open", path=slot, flags=O_RDWR | O_CREAT, mode=0o644) for slot in FILES] * 2
    + [call("open", path=slot, flags=O_RDWR, mode=None) for slot in FILES]
    + [call("open", path=slot, flags=O_DIRECTORY, mode=None) for slot in LISTS]
)


def opens() -> Strategy:
    """Opening to use it, and opening anything anyhow."""
    return st.one_of(
        USEFUL,
        _op("open", path=AT, flags=st.sampled_from(PLAIN_FLAGS), mode=MODE),
        _op("open", path=AT, flags=st.sampled_from(FLAGS), mode=MODE),
    )
