"""What users written in Python ask of their native threads."""

import errno
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from gevent import GreenletExit, Timeout

from replayer.locust.filesystem import BLOCK_BYTES, SLOTS, File, FileSystem
from replayer.run.doorbell import Mailbox


class Commands(Mailbox):
    """A mailbox that keeps what is asked, and has no answers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []

    def ask(self, user: int, command: bytes) -> None:  # type: ignore[override]
        self.asked.append({"user": user, **json.loads(command)})

    tell = ask


@pytest.fixture
def commands() -> Commands:
    return Commands()


def test_a_transaction_inside_another_one_is_refused_and_fails_that_one(commands: Commands) -> None:
    files = FileSystem(commands, 7)
    refused = pytest.raises(RuntimeError, match="'inner' starts inside 'outer'")
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
    assert commands.asked[1:] == [
        {"user": 7, "end": "first", "failed": True},
        {"user": 7, "begin": "second"},
        {"user": 7, "end": "second", "failed": False},
    ]


def test_what_is_left_open_by_a_timeout_is_closed_and_its_place_is_free(commands: Commands) -> None:
    files = FileSystem(commands, 7)
    closes = [{"user": 7, "do": "call", "op": "close", "file": 0, "expect": ["ok"]}]
    for _ in range(SLOTS + 1):
        with pytest.raises(Timeout), File(files, "f", 0):
            raise Timeout
        assert commands.asked[-1:] == closes
    with pytest.raises(GreenletExit), File(files, "f", 0):
        raise GreenletExit
    assert len(commands.asked) == SLOTS + 1, "the engine closes what a user has who is ended"


class EndsUser(Mailbox):
    """A mailbox at which the user's greenlet is ended."""

    def __init__(self) -> None:
        self.count = 0

    def ask(self, _user: int, _command: bytes) -> Any:  # noqa: ANN401 - an outcome
        self.count += 1
        raise GreenletExit


class Refuses(Mailbox):
    """A mailbox whose thread answers each command with an outcome."""

    def __init__(self, *outcomes: str) -> None:
        self.left = list(outcomes)

    def ask(self, _user: int, command: bytes) -> Any:  # noqa: ANN401 - an outcome
        outcome, allowed = self.left.pop(0), json.loads(command).get("expect", ["ok"])
        return SimpleNamespace(outcome=outcome, value=0, expected=outcome in allowed)


def test_a_close_that_fails_leaves_its_place_free() -> None:
    rounds = SLOTS + 1
    files = FileSystem(Refuses(*("ok", "ENOSPC") * rounds), 0)
    for _ in range(rounds):
        file = files.open("f", "w")
        with pytest.raises(OSError, match="No space"):
            file.close()
        with pytest.raises(OSError, match="the file is closed"):
            file.close()


def test_a_task_that_keeps_the_end_of_its_user_to_itself_does_nothing_more() -> None:
    commands = EndsUser()
    files = FileSystem(commands, 0)
    for _ in range(3):
        with pytest.raises(GreenletExit):
            files.stat("f")
    assert commands.count == 1


@pytest.mark.parametrize("block", [0, -1])
def test_blocks_without_bytes_are_refused(commands: Commands, block: int) -> None:
    file = File(FileSystem(commands, 0), "f", 0)
    for call in (file.read, file.write):
        with pytest.raises(ValueError, match="block must be at least 1 byte"):
            call(10, block=block)
    assert commands.asked == []


def test_less_than_no_bytes_are_refused(commands: Commands) -> None:
    file = File(FileSystem(commands, 0), "f", 0)
    for call in (file.read, file.write):
        with pytest.raises(ValueError, match="size must be at least 0 bytes, got -1"):
            call(-1)
    assert commands.asked == []


def test_whether_a_path_is_there_is_not_told_by_a_look_that_fails() -> None:
    files = FileSystem(Refuses("ok", "ENOENT", "ENOTDIR", "ELOOP"), 0)
    assert [files.exists("f") for _ in range(3)] == [True, False, False]
    with pytest.raises(OSError, match="symbolic links"):
        files.exists("f")


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
        return SimpleNamespace(outcome="ok", value=came, expected=True)


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


@pytest.mark.parametrize(
    ("outcome", "number"),
    [("cancelled", errno.ECANCELED), ("ENOSPC", errno.ENOSPC), ("SHORT", errno.EIO)],
)
def test_a_call_that_did_not_go_well_raises_its_errno(outcome: str, number: int) -> None:
    class Answers(Commands):
        def ask(self, user: int, command: bytes) -> Any:  # noqa: ANN401
            super().ask(user, command)
            return SimpleNamespace(outcome=outcome, value=0, expected=False)

    with pytest.raises(OSError, match="mkdir") as raised:
        FileSystem(Answers(), 7).mkdir("d")
    assert raised.value.errno == number
