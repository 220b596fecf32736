"""A mount that lies about data: every lie is told apart and counted, and the truth is believed."""

import errno
import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.shell import Shell, make_shell
from tests.mounts.machine import CannotError
from tests.mounts.passing import lying, passing

pytestmark = pytest.mark.mounts

LIES = {
    "stale": "STALE",
    "torn": "TORN",
    "moved": "SWAPPED",
    "foreign": "SWAPPED",
    "hole": "LOST",
    "flipped": "TORN",
    "dropped": "STALE",
}
USERS, TURNS = 2, 5

WRITTEN_TWICE = """
  {kind}:
    - open: {{in: work, name: "{kind}-{{user}}-{{seq}}", flags: [wronly, create, excl], as: one}}
    - write: {{file: one, size: 12KiB}}
    - close: one
    - open: {{in: work, name: "{kind}-{{user}}-{{seq}}", flags: [wronly], as: two}}
    - write: {{file: two, size: 12KiB, block: 12KiB}}
    - close: two
    - open: {{in: work, name: "{kind}-{{user}}-{{seq}}", as: three}}
    - read: {{file: three, size: 12KiB}}
    - close: three
"""


NEVER_READ = WRITTEN_TWICE.partition(
    '    - open: {{in: work, name: "{kind}-{{user}}-{{seq}}", as: three}}'
)[0]
RENAMED = (
    NEVER_READ
    + '    - rename: {{path: two, to: {{in: work, name: "{kind}-{{user}}-{{seq}}-to", as: to}}}}\n'
)


def scenario(kinds: list[str], each: str = WRITTEN_TWICE) -> str:
    mix = ", ".join(f"{kind}: 1" for kind in kinds)
    transactions = "".join(each.format(kind=kind) for kind in kinds)
    return f"""name: lies
users: {{count: {USERS}}}
iterations: {TURNS * len(kinds)}
datasets:
  work: {{directory: true}}
  other: {{files: 1, sizes: 12KiB, names: "source-{{n}}"}}
mix: {{{mix}}}
transactions:{transactions}"""


@pytest.fixture
def liar(stack: ExitStack, tmp_path: Path) -> Path:
    try:
        return lying(stack, tmp_path / "place")
    except CannotError as error:
        pytest.skip(str(error))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "shell").mkdir()
    return make_shell(tmp_path / "shell")


def run(shell: Shell, mount: Path, text: str) -> tuple[int, Any]:
    (shell.home / "lies.yaml").write_text(text)
    words = ("run", "lies.yaml", "--verify", "--target", mount, "--json", "--quiet")
    done = shell.run(*words)
    assert done.out, done.err
    return done.code, json.loads(done.out)


def outcomes(document: dict[str, Any]) -> Counter[tuple[str, str, str]]:
    """Return how often reads of each transaction ended how."""
    return Counter(
        {
            (transaction["name"], op["op"], outcome["outcome"]): outcome["count"]
            for transaction in document["summary"]["targets"][0]["overall"]["transactions"]
            for op in transaction["ops"]
            if op["op"] == "read"
            for outcome in op["outcomes"]
        }
    )


def test_every_lie_is_told_apart_and_counted_exactly(shell: Shell, liar: Path) -> None:
    kinds = ["fine", *LIES]
    code, document = run(shell, liar, scenario(kinds))
    found = outcomes(document)
    begun = {
        transaction["name"]: transaction["count"]
        for transaction in document["summary"]["targets"][0]["overall"]["transactions"]
    }
    assert sum(begun.values()) == USERS * TURNS * len(kinds)
    wanted = {(kind, "read", LIES.get(kind, "ok")): count for kind, count in begun.items() if count}
    assert dict(found) == wanted
    assert code == 1
    blocks = document["verification"]["wrong_blocks"]
    assert blocks == {
        "stale": 3 * (begun["stale"] + begun["dropped"]),
        "torn": 3 * begun["torn"] + begun["flipped"],
        "swapped": 2 * begun["moved"] + 3 * begun["foreign"],
        "lost": 3 * begun["hole"],
    }
    judged = document["verdict"]["judgements"][-1]
    assert (judged["threshold"], judged["outcome"]) == ("data as written", "fail")


def test_the_truth_is_believed_and_its_price_is_told(shell: Shell, liar: Path) -> None:
    code, document = run(shell, liar, scenario(["fine", "plain"]))
    verification = document["verification"]
    assert code in {0, 4}  # 4: a busy machine was the bottleneck
    judged = document["verdict"]["judgements"][-1]
    assert judged["outcome"] == "pass"
    reads = USERS * TURNS * 2
    assert verification["reads"] == reads
    assert verification["verified_bytes"] == reads * 12 * 1024
    assert verification["unverified_bytes"] == 0
    assert verification["time_ns"] > 0
    assert set(verification["wrong_blocks"].values()) == {0}


def test_laid_out_files_that_lie_are_found(shell: Shell, liar: Path) -> None:
    text = """name: lies
users: {count: 1}
iterations: 4
datasets:
  hole: {files: 4, sizes: 8KiB, names: "hole-{n}"}
  moved: {files: 4, sizes: 8KiB, names: "moved-{n}"}
  plain: {files: 4, sizes: 8KiB, names: "plain-{n}"}
mix: {look: 1}
transactions:
  look:
    - open: {from: plain, pick: sequential, as: plain}
    - read: {file: plain, size: 8KiB}
    - choose:
      - weight: 1
        steps:
        - open: {from: hole, pick: sequential, as: bad}
        - read: {file: bad, size: 8KiB}
      - weight: 1
        steps:
        - open: {from: moved, pick: sequential, as: bad}
        - read: {file: bad, size: 8KiB}
"""
    code, document = run(shell, liar, text)
    found = outcomes(document)
    assert code == 1
    assert found["look", "read", "ok"] == 4
    assert found["look", "read", "LOST"] + found["look", "read", "SWAPPED"] == 4
    assert found["look", "read", "LOST"] > 0


def begun(document: dict[str, Any]) -> dict[str, int]:
    """Return how often each transaction was run."""
    transactions = document["summary"]["targets"][0]["overall"]["transactions"]
    return {transaction["name"]: transaction["count"] for transaction in transactions}


def test_what_was_lost_and_nobody_read_is_found_when_it_is_read_back(
    shell: Shell, liar: Path
) -> None:
    code, document = run(shell, liar, scenario(["fine", *LIES, "gone", "short"], NEVER_READ))
    count, last = begun(document), document["verification"]["last"]
    assert outcomes(document) == {}
    assert code == 1
    assert last["wrong_blocks"] == {
        "stale": 3 * (count["stale"] + count["dropped"]),
        "torn": 3 * count["torn"] + count["flipped"],
        "swapped": 2 * count["moved"] + 3 * count["foreign"],
        "lost": 3 * count["hole"] + count["gone"] + count["short"],
    }
    assert last["files"] == sum(count.values())
    assert (last["left_files"], last["failed_files"], last["cached_bytes"]) == (0, 0, 0)
    named = {Path(each["path"]).name.partition("-")[0] for each in last["wrong_files"]}
    assert named <= {*LIES, "gone", "short"}
    judged = document["verdict"]["judgements"][-1]
    assert (judged["threshold"], judged["outcome"]) == ("data as written", "fail")


def test_what_is_lost_under_the_name_it_was_given_last_is_found_too(
    shell: Shell, liar: Path
) -> None:
    code, document = run(shell, liar, scenario(["fine", "hole", "flipped"], RENAMED))
    count, last = begun(document), document["verification"]["last"]
    assert code == 1
    assert last["files"] == sum(count.values())
    wrong = {"stale": 0, "torn": count["flipped"], "swapped": 0, "lost": 3 * count["hole"]}
    assert last["wrong_blocks"] == wrong


def test_a_file_that_cannot_be_read_back_lets_nothing_be_proven(
    shell: Shell, stack: ExitStack, tmp_path: Path
) -> None:
    try:
        faulty = passing(stack, tmp_path / "place")
    except CannotError as error:
        pytest.skip(str(error))
    faulty.suffer(read={"errno": errno.EIO})
    code, document = run(shell, faulty.mount, scenario(["fine"], NEVER_READ))
    last = document["verification"]["last"]
    assert code == 4
    assert (last["files"], last["failed_files"]) == (0, USERS * TURNS)
    judged = document["verdict"]["judgements"][-1]
    assert judged["outcome"] == "inconclusive"
