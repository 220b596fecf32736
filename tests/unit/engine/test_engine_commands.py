"""Interactive users do what commands say."""

import json
import time
from pathlib import Path

import pytest

from replayer._native import Engine, Outcome, Sandbox
from tests.unit.engine.drafts import Drafts, Make, Until


class Talk:
    """One interactive user and the answers to its commands."""

    def __init__(self, engine: Engine, until: Until) -> None:
        self.engine, self.until = engine, until
        engine.start_interactive(9, 0)

    def ask(self, **command: object) -> Outcome:
        ticket = self.engine.submit(9, json.dumps(command).encode())
        answers: list[Outcome] = []

        def answered() -> bool:
            answers.extend(self.engine.drain_outcomes())
            return bool(answers)

        self.until(answered)
        (answer,) = answers
        assert answer.ticket == ticket
        return answer

    def call(self, op: str, **operands: object) -> Outcome:
        return self.ask(do="call", op=op, expect=["ok"], **operands)


@pytest.fixture
def talk(drafts: Drafts, make: Make, sandbox: Sandbox, until: Until) -> Talk:
    return Talk(make(drafts.plan([]), sandbox), until)


def test_a_transaction_of_commands_is_recorded(talk: Talk, sandbox: Sandbox) -> None:
    assert talk.ask(begin="checkout").outcome == "ok"
    assert talk.call("mkdir", path="cart", mode=0o755).outcome == "ok"
    opened = talk.call("open", path="cart/one", slot=3, flags=0o102, mode=0o640)
    assert (opened.outcome, opened.value) == ("ok", 0)
    size = {"const": 5000}
    assert talk.call("write", file=3, total=size, block=size).value == 5000
    assert talk.call("fstat", file=3).value == 5000
    assert talk.call("close", file=3).service_ns > 0
    assert talk.call("close", file=3).outcome == "EBADF"
    assert talk.ask(end="checkout", failed=False).outcome == "ok"
    assert talk.call("stat", path="missing").outcome == "ENOENT"
    assert talk.call("rename", path="cart/one", to="cart/two", flags=0).outcome == "ok"
    assert Path(sandbox.path, "cart/two").stat().st_size == 5000
    talk.engine.close()
    rows = {(row.transaction, row.op, row.outcome): row for row in talk.engine.totals()}
    assert rows["checkout", "write", "ok"].bytes == 5000
    assert rows["checkout", "transaction", "ok"].histogram.count == 1
    assert rows["-", "stat", "ENOENT"].histogram.count == 1


def test_calls_on_an_open_file_are_told_with_the_path_that_it_was_opened_by(
    drafts: Drafts, make: Make, sandbox: Sandbox, until: Until, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    record.mkdir()
    talk = Talk(make(drafts.plan([]), sandbox, record=str(record)), until)
    size = {"const": 10}
    talk.call("open", path="one", slot=0, flags=0o100, mode=0o640)
    talk.call("open", path="two", slot=1, flags=0o102, mode=0o640)
    talk.call("rename", path="one", to="three", flags=0)
    assert talk.call("write", file=0, total=size, block=size).outcome == "EBADF"
    assert talk.call("pwrite", file=1, size=size, offset=size).outcome == "ok"
    assert talk.call("lseek", file=1, offset=-1, whence=0).outcome == "EINVAL"
    assert talk.call("open", path="four", slot=1, flags=0, mode=0).outcome == "ENOENT"
    talk.call("open", path="three", slot=1, flags=0, mode=0)
    assert talk.call("fsync", file=1).outcome == "ok"
    talk.engine.close()
    events = [json.loads(line) for line in (record / "events.jsonl").read_text().splitlines()]
    told = {(event["kind"], event["op"], event["path"]) for event in events if "op" in event}
    assert {path for _, _, path in told} == {"one", "two", "three", "four"}
    assert {("error", "write", "one"), ("error", "lseek", "two"), ("error", "open", "four")} < told
    assert {("slow", "pwrite", "two"), ("slow", "close", "two"), ("slow", "fsync", "three")} < told


@pytest.mark.parametrize(
    ("offset", "whence", "outcome", "value"),
    [(-3, 2, "ok", 7), (-2, 1, "ok", 2), (1, 1, "ok", 5), (-11, 2, "EINVAL", 0)],
)
def test_a_seek_goes_back_too(
    talk: Talk, offset: int, whence: int, outcome: str, value: int
) -> None:
    size = {"const": 10}
    talk.call("open", path="f", slot=0, flags=0o102, mode=0o640)
    talk.call("write", file=0, total=size, block=size)
    assert talk.call("lseek", file=0, offset=4, whence=0).value == 4
    found = talk.call("lseek", file=0, offset=offset, whence=whence)
    assert (found.outcome, found.value) == (outcome, value)


def test_ends_must_fit_begins(talk: Talk) -> None:
    assert talk.ask(end="a", failed=False).outcome == "EINVAL"
    assert talk.ask(begin="a").outcome == "ok"
    assert talk.ask(begin="b").outcome == "EINVAL"
    assert talk.ask(end="b", failed=False).outcome == "EINVAL"
    assert talk.ask(end="a", failed=True).outcome == "ok"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (b"{", "no JSON"),
        (b'{"begin": 1}', "^begin must be a string"),
        (b'{"do": "call", "op": "jump"}', "^op must be a known op"),
        (
            b'{"op": "stat", "path": "../x", "expect": ["ok"]}',
            r'^the path "\.\./x" has a \. or \.\. component$',
        ),
        (b'{"op": "stat", "path": 3, "expect": ["ok"]}', "^path must be a string"),
        (b'{"op": "stat", "path": "x"}', "missing field `expect`"),
        (
            b'{"op": "write", "file": 0, "total": 9999999, "block": 9999999, "expect": ["ok"]}',
            r"^a single write must be at most 1048576 bytes, got 9999999$",
        ),
        (
            b'{"op": "ftruncate", "file": 0, "size": {"const": -1}, "expect": ["ok"]}',
            r"^size must be an integer from 0 to \d+, got -1$",
        ),
        (
            b'{"op": "lseek", "file": 0, "offset": 1e30, "whence": 0, "expect": ["ok"]}',
            r"^offset must be an integer from -\d+ to \d+, got 1e\+30$",
        ),
    ],
)
def test_what_is_no_command_is_refused(talk: Talk, command: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        talk.engine.submit(9, command)


def test_only_interactive_users_obey(talk: Talk) -> None:
    with pytest.raises(RuntimeError, match="user 1 is not interactive"):
        talk.engine.submit(1, b'{"begin": "a"}')


def test_users_that_obey_outlast_the_segments_of_the_others(talk: Talk, until: Until) -> None:
    engine = talk.engine  # its interactive user is there before the first segment
    engine.start_user(1)
    for turn in range(2):
        engine.begin_segment(0, turn, 0)
        until(lambda: engine.busy_users() == 0)
        began = time.monotonic()
        assert engine.end_segment(60_000_000_000) == []
        assert time.monotonic() - began < 10
        assert engine.running_users() == 2
        assert talk.call("mkdir", path=f"d{turn}", mode=0o755).outcome == "ok"
