"""Traces with right checksums that mean harm, as the command line meets them."""

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.shell import Shell
from tests.forgery import small_trace

TIB = 1 << 40


def forged(shell: Shell, table: str, row: int, change: dict[str, Any]) -> Path:
    trace = small_trace()
    trace.tables[table][row] |= change
    trace.count()
    return trace.write(shell.home / "trace")


@pytest.mark.parametrize(
    ("table", "row", "change", "said"),
    [
        ("events", 3, {"thread": 2**31 - 1}, "events.parquet: row 3: the number of a thread must"),
        ("edges", 0, {"event": 2**62}, "edges.parquet: row 0 holds an invalid value"),
        ("edges", 0, {"waits_for": -5}, "edges.parquet: row 0 holds an invalid value"),
        ("edges", 0, {"event": 35, "waits_for": 36}, "edges.parquet: row 0 holds an invalid value"),
        (
            "requests",
            0,
            {"last_event": 2**40},
            "requests.parquet: row 0 holds an invalid value",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_file_and_row(
    shell: Shell, table: str, row: int, change: dict[str, Any], said: str
) -> None:
    forged(shell, table, row, change)
    target = shell.target()
    done = shell.run("replay", "trace", "--target", target, "-o", "run")
    assert done.code == 2, done.err
    assert said in done.err
    assert not [*target.iterdir()]


def test_a_tree_that_its_totals_hide_is_refused(shell: Shell) -> None:
    trace = small_trace()
    trace.tables["tree"][1]["size"] = TIB
    trace.write(shell.home / "trace")
    target = shell.target()
    for words in (("show", "trace"), ("replay", "trace", "--target", target)):
        done = shell.run(*words)
        assert done.code == 2, done.err
        assert "trace.json: has 5006 as tree.bytes, but tree.parquet has" in done.err
    assert not [*target.iterdir()]


@pytest.mark.parametrize(
    ("table", "row", "change"),
    [
        ("tree", 1, {"size": 1000 * TIB}),
        ("events", 10, {"size": 1000 * TIB}),
        ("events", 10, {"size": 1000 * TIB, "result": -95}),
    ],
    ids=["laid out", "allocated", "allocated, which failed"],
)
def test_what_no_disk_has_is_refused_before_anything_is_laid_out(
    shell: Shell, table: str, row: int, change: dict[str, int]
) -> None:
    forged(shell, table, row, change)
    target = shell.target()
    done = shell.run("replay", "trace", "--target", target)
    assert done.code == 3, done.err
    assert "this run needs 1,099,5" in done.err
    assert not [*target.iterdir()]
