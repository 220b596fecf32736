"""What users written in Python ask of their native threads."""

import json

import pytest
from gevent import Timeout

from replayer.load.answers import Mailbox
from replayer.load.filesystem import FileSystem


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
