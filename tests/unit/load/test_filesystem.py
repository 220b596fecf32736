"""What users written in Python ask of their native threads."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from gevent import Timeout

from replayer.load.answers import Mailbox
from replayer.load.filesystem import BLOCK_BYTES, File, FileSystem


class Commands(Mailbox):
    """A mailbox that keeps what is asked, and has no answers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []

    def ask(self, user: int, command: bytes) -> None:  # type: ignore[override]
        self.asked.append({"user": user, **json.loads(command)})


@pytest.fixture
def commands() -> Commands:
    return Commands()


def test_a_transaction_inside_another_one_is_refused_and_fails_that_one(commands: Commands) -> None:
    files = FileSystem(commands, 7)
    refused = pytest.raises(RuntimeError, match="'inner' begins inside 'outer'")
    with refused, files.transaction("outer"), files.transaction("inner"):
        pytest.fail("it was measured as a part of the other one")
    assert commands.asked == [
        {"user": 7, "begin": "outer"},
        {"user": 7, "end": "outer", "failed": True},
    ]


@pytest.mark.parametrize("error", [ValueError, Timeout])
def test_transactions_follow_each_other_whatever_ended_the_first(
    commands: Commands, error: type[BaseException]
) -> None:
    files = FileSystem(commands, 7)
    with pytest.raises(error), files.transaction("first"):
        raise error
    with files.transaction("second"):
        pass
    assert commands.asked[-1] == {"user": 7, "end": "second", "failed": False}


class Reads(Mailbox):
    """A mailbox of a file of so many bytes: what is asked of each call is kept."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.asked: list[tuple[int, int | None]] = []

    def ask(self, _user: int, command: bytes) -> Any:  # noqa: ANN401 - an outcome
        step = json.loads(command)
        size = step["size"]["const"]
        self.asked.append((size, step.get("offset", {}).get("const")))
        came = min(size, self.left)
        self.left -= came
        return SimpleNamespace(outcome="ok", value=came)


@pytest.mark.parametrize(
    ("left", "size", "asked"),
    [
        (10**9, 2 * BLOCK_BYTES + 1, [BLOCK_BYTES, BLOCK_BYTES, 1]),
        (BLOCK_BYTES + 7, 10 * BLOCK_BYTES, [BLOCK_BYTES, BLOCK_BYTES]),
        (0, 2_000_000, [BLOCK_BYTES]),
        (10**9, 0, [0]),
    ],
)
def test_reads_are_split_into_blocks_and_end_with_the_file(
    left: int, size: int, asked: list[int]
) -> None:
    reads = Reads(left)
    assert File(FileSystem(reads, 0), "f", 0).read(size) == min(left, size)
    assert reads.asked == [(each, None) for each in asked]


@pytest.mark.parametrize("call", [File.pread, File.pwrite])
def test_calls_at_a_place_are_split_too(call: Callable[..., int]) -> None:
    reads = Reads(10**9)
    assert call(File(FileSystem(reads, 0), "f", 0), 25, 100, block=10) == 25
    assert reads.asked == [(10, 100), (10, 110), (5, 120)]
    short = Reads(12)
    assert call(File(FileSystem(short, 0), "f", 0), 25, 100, block=10) == 12
    assert short.asked == [(10, 100), (10, 110)]
