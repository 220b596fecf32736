"""Traces with right checksums that say what cannot be."""

from pathlib import Path

import pytest

from replayer.trace.errors import TraceError
from replayer.trace.facts import load_facts
from replayer.trace.reading import load_statistics, load_trace
from tests.forgery import Row, SmallTrace, small_trace


@pytest.fixture
def trace() -> SmallTrace:
    return small_trace()


def test_the_tree_that_trace_json_counts_is_that_of_its_table(
    trace: SmallTrace, tmp_path: Path
) -> None:
    trace.tables["tree"][1]["size"] = 1 << 40
    folder = trace.write(tmp_path / "lies")
    said = "trace.json: has 5006 as tree.bytes, but tree.parquet has 1099511632776"
    with pytest.raises(TraceError, match=said):
        load_trace(folder)
    trace.count()
    honest = trace.write(tmp_path / "honest")
    assert load_facts(str(honest), Path()).size_bytes == (1 << 40) + 5000


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("files", 1, "has 1 as tree.files, but tree.parquet has 2"),
        ("directories", None, "has nothing as tree.directories, but tree.parquet has 2"),
        ("links", -1, "has nothing as tree.links, but tree.parquet has 1"),
    ],
)
def test_entries_of_the_tree_are_counted(
    trace: SmallTrace, tmp_path: Path, key: str, value: int | None, said: str
) -> None:
    trace.document["tree"][key] = value
    with pytest.raises(TraceError, match=said):
        load_trace(trace.write(tmp_path / "trace"))


def test_events_and_requests_are_counted(trace: SmallTrace, tmp_path: Path) -> None:
    trace.document["counts"]["events"] = 10**6
    with pytest.raises(TraceError, match=r"has 1000000 as counts\.events.* has 56"):
        load_trace(trace.write(tmp_path / "events"))
    trace.count()
    trace.document["requests"][0]["count"] = 10**9
    with pytest.raises(TraceError, match=r"its request counts differ from requests\.parquet"):
        load_trace(trace.write(tmp_path / "requests"))


@pytest.mark.parametrize(
    ("table", "row", "change"),
    [
        ("events", 7, {"path": 12}),
        ("events", 7, {"to_path": 2**31 - 1}),
        ("events", 7, {"thread": -1}),
        ("events", 36, {"after": 36}),
        ("events", 36, {"after": -1}),
        ("requests", 1, {"last_event": 56}),
        ("requests", 1, {"first_event": 55}),
        ("tree", 1, {"path": 12}),
        ("tree", 1, {"type": "x"}),
    ],
)
def test_a_row_that_names_what_is_not_there_is_refused_with_its_number(
    trace: SmallTrace, tmp_path: Path, table: str, row: int, change: Row
) -> None:
    trace.tables[table][row] |= change
    trace.count()
    folder = trace.write(tmp_path / "trace")
    with pytest.raises(TraceError, match=rf"{table}\.parquet: row {row} holds an invalid value"):
        load_statistics(folder)


@pytest.mark.parametrize(
    "change", [{"counts": {"threads": "two"}}, {"labels": {"private": -1}}, {"blind_spots": None}]
)
def test_a_trace_json_without_what_is_needed_is_refused(
    trace: SmallTrace, tmp_path: Path, change: Row
) -> None:
    for key, value in change.items():
        held = trace.document[key]
        trace.document[key] = {**held, **value} if value else value
    folder = trace.write(tmp_path / "trace")
    with pytest.raises(TraceError, match=r"trace\.json: has an invalid value"):
        load_facts(str(folder), Path())
