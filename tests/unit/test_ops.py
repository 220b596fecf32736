"""Groups of ops are derived from one table; what each group holds is written down here once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import replayer
from replayer import ops
from replayer.analysis import works
from replayer.capture import positions
from replayer.measure.summary import WAITS
from replayer.report import cost
from replayer.run import replays

PACKAGE = Path(replayer.__file__).parent
TABLE = PACKAGE / "ops.py"
FEW = 2
"""So many names of ops may stand side by side: a pair is no list of ops."""

GROUPS: dict[str, tuple[frozenset[str], str]] = {
    "STORING": (
        ops.STORING,
        (
            "append clone copy_file_range fallocate ftruncate pwrite pwrite_random pwritev"
            " splice truncate write writev"
        ),
    ),
    "FLUSHING": (
        ops.FLUSHING,
        "fdatasync fsync syncfs",
    ),
    "MAKING": (
        ops.MAKING,
        "link mkdir mknod open symlink",
    ),
    "UNTIMED": (
        ops.UNTIMED,
        "close_exit exit inherit meanwhile",
    ),
    "READING": (
        ops.READING,
        "copy_file_range mmap_read pread pread_random preadv read readv sendfile splice",
    ),
    "WRITING": (
        ops.WRITING,
        "append copy_file_range pwrite pwrite_random pwritev splice write writev",
    ),
    "PATH_OPS": (
        ops.PATH_OPS,
        (
            "access chdir chmod chown lchown link lstat lutimens mkdir mknod open readlink"
            " rename rmdir stat statfs symlink truncate unlink utimens"
        ),
    ),
    "ALTERING, of plans": (
        ops.ALTERING & ops.PLAN_OPS,
        (
            "append chmod chown copy_file_range fallocate fchmod fchown ftruncate futimens"
            " link mkdir pwrite pwrite_random removexattr rename rmdir setxattr symlink"
            " truncate unlink utimens write"
        ),
    ),
    "cached": (
        works.CACHED_OPS,
        (
            "access getdents getxattr lgetxattr listxattr llistxattr lstat mmap_read open"
            " pread pread_random preadv read readlink readv sendfile stat"
        ),
    ),
    "reads that are billed": (
        cost.READS,
        "mmap_read pread pread_random preadv read readv sendfile",
    ),
    "writes that are billed": (
        cost.WRITES,
        "append pwrite pwrite_random pwritev write writev",
    ),
    "billed as both": (
        cost.BOTH,
        "copy_file_range splice",
    ),
    "lengths": (
        replays.LENGTHS,
        "getdents lseek pread pread_random preadv read readv",
    ),
    "waits": (
        WAITS,
        "await until",
    ),
    "moved by their result": (
        positions.MOVING,
        "read readv write writev",
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_holds_what_is_written_here(name: str) -> None:
    group, words = GROUPS[name]
    assert group == set(words.split())


def test_every_op_is_compared_by_an_op_that_plans_have_or_by_itself() -> None:
    for op in ops.BY_NAME.values():
        assert op.same_as == op.name or ops.BY_NAME[op.same_as].flags & {"plan"}


def _lists(path: Path) -> Iterator[str]:
    """Yield each literal list, tuple or set with more than a few names of ops."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            names = {
                item.value
                for item in items
                if isinstance(item, ast.Constant) and item.value in ops.BY_NAME
            }
            if len(names) > FEW:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {sorted(names)}"


def test_no_other_list_of_ops_stands_in_python() -> None:
    found = [line for path in sorted(PACKAGE.rglob("*.py")) for line in _lists(path)]
    assert [line for line in found if not line.startswith(ALLOWED)] == []


ALLOWED = (
    "synth/calls.py",  # who writes these words, by what operands calls have
    "scenario/calls.py",  # words of scenarios, by what operands they have
    "scenario/steps.py",  # words of scenarios, some of which are no ops
    "capture/strace.py",  # system calls as strace names them
    "capture/positions.py",
    "doctor/probe.py",  # what the probe does, in words
    "fio/",  # words of fio's job files
)
