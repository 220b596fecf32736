from pathlib import Path

import pytest

from replayer.trace.errors import TraceError
from replayer.trace.reading import load_history, load_statistics, load_trace

FRONT = Path(__file__).parents[3] / "traces" / "wordpress" / "front-warm"


def test_a_census_gives_what_one_page_view_asks_for() -> None:
    census = load_statistics(FRONT)
    (page,) = census["labels"]
    assert (page["label"], page["requests"]) == ("/", 10)
    assert page["mean"]["events"] == 1133
    assert page["mean"]["failing_lookups"] == 128
    assert page["mean"]["ops"]["access"] == 249
    assert census["errors"] == load_trace(FRONT)["counts"]["errors"]


def test_a_history_is_told_newest_first_and_only_so_far() -> None:
    last = load_trace(FRONT)["counts"]["events"] - 1
    rows = [event["row"] for event in load_history(FRONT, last, 5)]
    assert len(rows) == 5
    assert [last, *rows] == sorted({last, *rows}, reverse=True)


def test_a_history_has_a_row_to_begin_with() -> None:
    with pytest.raises(TraceError, match="has no event 999999"):
        load_history(FRONT, 999_999)


def test_a_census_of_no_request_is_refused() -> None:
    with pytest.raises(TraceError, match="has no request nowhere") as told:
        load_statistics(FRONT, "nowhere")
    assert told.value.hint == "it has /"
