"""The page of a timeline, and what it asks for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replayer.trace.timeline import KINDS, find_performances, load_events
from replayer.web.timeline import MOST_BLOCKS, Shown, Window, describe_lanes, find_calls
from tests.unit.web.conftest import Served

TRACE = "wordpress/front-warm"
FRONT = Path(__file__).parents[3] / "traces" / TRACE
PLACE = f"/replayer/timeline?trace={TRACE}"


@pytest.fixture(scope="module")
def shown() -> Shown:
    return Shown("a trace", load_events(FRONT), [], [])


@pytest.fixture
def busy(served: Served) -> Iterator[Served]:
    """A page whose order is compiled."""
    served.control.order = object()  # type: ignore[assignment] # it is only looked whether one is there
    yield served
    served.control.order = None


def look(shown: Shown, from_ns: int, to_ns: int, columns: int = 500) -> dict[str, Any]:
    return describe_lanes(shown, Window(from_ns, to_ns, columns, 0, -1))


def test_the_whole_has_columns_and_a_small_window_its_calls(shown: Shown) -> None:
    whole = look(shown, 0, 0)
    assert (whole["from"], whole["to"]) == (0, shown.events.recorded.end_ns)
    (lane,) = whole["lanes"]
    assert len(lane["recorded"]["share"]) == len(lane["recorded"]["kind"]) == 500
    assert max(lane["recorded"]["share"]) <= 1001  # edges are whole nanoseconds
    rows = np.flatnonzero(shown.events.op >= 0)[1000:1010]
    begin, end = (int(shown.events.recorded.start_ns[row]) for row in (rows[0], rows[-1]))
    (lane,) = look(shown, begin, end)["lanes"]
    blocks = lane["recorded"]["blocks"]
    assert 5 <= len(blocks) <= MOST_BLOCKS
    assert all(start <= end and start + length >= begin for _, start, length, _, _ in blocks)
    for row, _, _, kind, failed in blocks:
        (call,) = find_calls(shown, {"row": str(row)}, -1)["calls"]
        assert (call["row"], KINDS[call["kind"]]) == (row, KINDS[kind])
        assert failed == (shown.events.result[row] < 0)
        assert call["lane"] == 0


def test_shares_add_up_to_the_time_in_calls(shown: Shown) -> None:
    (lane,) = look(shown, 0, 0, columns=2000)["lanes"]
    recorded = shown.events.recorded
    (calls,) = recorded.lanes.values()
    part = sum(lane["recorded"]["share"]) / 1000 / 2000
    assert part == pytest.approx(calls.spent[-1].sum() / recorded.end_ns, rel=0.02)


def test_calls_too_short_for_a_column_are_in_it_all_the_same(shown: Shown) -> None:
    (lane,) = look(shown, 0, 0)["lanes"]
    timed = sum(len(each.rows) for each in shown.events.recorded.lanes.values())
    assert sum(lane["recorded"]["begun"]) == timed


def test_a_replay_that_ended_before_its_first_call_has_no_lane(tmp_path: Path) -> None:
    (tmp_path / "u0-p0-l0.events").touch()
    events = load_events(FRONT)
    cut = Shown("a replay", events, find_performances(tmp_path), ["one"])
    (lane,) = describe_lanes(cut, Window(0, 0, 100, 0, 0))["lanes"]
    assert lane["replayed"] == {"blocks": []}
    (call,) = find_calls(cut, {"row": "0"}, 0)["calls"]
    assert call["replayed"] is None


@pytest.mark.parametrize(
    ("sent", "found"),
    [({"row": "999999999"}, 0), ({"row": "9" * 30, "op": "none"}, 0), ({"error": "EWRONG"}, 0)],
)
def test_what_is_not_there_is_not_found(shown: Shown, sent: dict[str, str], found: int) -> None:
    answer = find_calls(shown, sent, -1)
    assert (answer["found"], answer["calls"]) == (found, [])


def test_the_page_and_its_questions_are_served(served: Served) -> None:
    page = served.ask(PLACE).get_data(as_text=True)
    assert f'data-trace="{TRACE}"' in page
    assert "<option>ENOENT</option>" in page
    lanes = served.ask(f"{PLACE.replace('timeline', 'timeline/lanes', 1)}&columns=100").get_json()
    assert len(lanes["lanes"]) == len(lanes["threads"]) == 1
    place = PLACE.replace("timeline", "timeline/calls", 1)
    calls = served.ask(f"{place}&words=wp-content&op=access&error=ENOENT").get_json()
    assert calls["found"] >= len(calls["calls"]) > 0
    assert {(call["op"], call["result"]) for call in calls["calls"]} == {("access", "ENOENT")}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("trace=/etc", "/etc: no such trace"),
        ("trace=../traces/wordpress/front-warm", "no such trace"),
        ("", "no such trace"),
        ("run=../../etc", "no such run"),
        ("run=none", "no such run"),
    ],
)
def test_nothing_but_what_is_listed_is_shown(served: Served, query: str, told: str) -> None:
    answer = served.ask(f"/replayer/timeline?{query}")
    assert (answer.status_code, told in answer.get_data(as_text=True)) == (400, True)
    for part in ("lanes", "calls"):
        assert told in served.ask(f"/replayer/timeline/{part}?{query}").get_json()["message"]


def test_numbers_that_nobody_can_mean_are_as_if_not_sent(served: Served) -> None:
    place = PLACE.replace("timeline", "timeline/lanes", 1)
    wild = "&".join(
        f"{name}={'9' * 40}" for name in ("from", "to", "columns", "lane", "performance")
    )
    answer = served.ask(f"{place}&{wild}").get_json()
    assert answer["from"] == 0
    assert served.ask(f"{place}&from=nan&to=-5&columns=-1&lane=-7").get_json()["from"] == 0


def test_while_a_run_goes_on_no_trace_is_read(busy: Served) -> None:
    answer = busy.ask(PLACE)
    assert (answer.status_code, "a run is active" in answer.get_data(as_text=True)) == (400, True)
