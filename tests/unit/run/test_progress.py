"""Live progress: what it says of transactions that fail."""

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from replayer._native import Histogram, Interval, Row
from replayer.report.style import text_width
from replayer.run.ledger import Ledger
from replayer.run.progress import Hang, LineProgress, QuietProgress, Tick, _make_table


def tick() -> Tick:
    """Return a state in which one transaction always fails, and another does once, slowly."""
    ledger = Ledger()
    rows = [
        _row("broken", "failed", [7_000_000] * 10),
        _row("look", "ok", [1000] * 10),
        _row("look", "failed", [9_000_000_000]),
    ]
    ledger.add(Interval(0, 1_000_000_000, 1, rows))
    return Tick("measured", 1, None, ledger, ("near",))


def _row(name: str, outcome: str, times_ns: list[int], target: int = 0) -> Row:
    times = Histogram()
    for time_ns in times_ns:
        times.record(time_ns)
    return Row(target, 0, "measured", name, "transaction", outcome, outcome == "ok", 0, times)


def line_of(state: Tick) -> str:
    said = io.StringIO()
    LineProgress(said).tick(state)
    return said.getvalue()


def test_a_line_shows_times_of_what_succeeded() -> None:
    line = line_of(tick())
    assert "look p50 1.00 µs p95 \N{EN DASH}" in line
    assert "11 errors" in line
    ledger = Ledger()
    ledger.add(Interval(0, 1_000_000_000, 1, [_row("broken", "failed", [7_000_000] * 10)]))
    line = line_of(Tick("measured", 1, None, ledger, ("near",)))
    assert "broken p50 \N{EN DASH} p95 \N{EN DASH}" in line


def test_a_line_shows_the_most_frequent_transactions_that_fit() -> None:
    ledger = Ledger()
    rows = [_row(f"page-{number}", "ok", [1000] * number) for number in range(1, 30)]
    ledger.add(Interval(0, 1_000_000_000, 1, rows))
    line = line_of(Tick("measured", 1, 9, ledger, ("near",)))
    assert line.endswith(", 9 s left\n")
    line = line_of(Tick("measured", 1, None, ledger, ("near",)))
    assert line.endswith(" 0 errors | page-29 p50 1.00 µs p95 1.00 µs\n")


def test_a_line_shows_transactions_of_the_target_whose_turn_it_is() -> None:
    ledger = Ledger()
    rows = [_row("look", "ok", [1000]), _row("look", "ok", [5000], target=1)]
    ledger.add(Interval(0, 1_000_000_000, 1, rows))
    for target, p50 in ((0, "1.00 µs"), (1, "5.00 µs")):
        line = line_of(Tick("measured", 1, None, ledger, ("near", "far"), target=target))
        assert line.endswith(f" | look p50 {p50} p95 \N{EN DASH}\n")


names = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=200)


@given(
    st.builds(
        Tick,
        phase=names,
        users=st.integers(0, 10**6),
        left_s=st.none() | st.floats(0, 10**7),
        ledger=st.just(Ledger()),
        targets=st.just(("near", "far")),
        done_share=st.none() | st.floats(0, 1),
        laid_out_bytes=st.none() | st.integers(0, 10**15),
    ),
    st.lists(names, max_size=40),
)
def test_a_line_in_a_pipe_is_at_most_80_columns_wide(state: Tick, transactions: list[str]) -> None:
    ledger = Ledger()
    rows = [_row(name, "ok", [1000]) for name in transactions]
    ledger.add(Interval(0, 1_000_000_000, 1, rows))
    (line,) = line_of(replace(state, ledger=ledger)).splitlines()
    assert text_width(line) <= 80


@given(names, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**15))
def test_a_line_of_work_is_at_most_80_columns_wide(
    title: str, done: int, total: int, size_bytes: int
) -> None:
    said = io.StringIO()
    with LineProgress(said).work(title) as report:
        report(done + 1, total, size_bytes)
    (line,) = said.getvalue().splitlines()
    assert text_width(line) <= 80


def test_the_table_shows_times_of_what_succeeded() -> None:
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(_make_table(tick()))
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["broken", "10", "10", *["\N{EN DASH}"] * 3] in rows
    assert ["look", "11", "1", "1.00", "µs", *["\N{EN DASH}"] * 2] in rows


def test_the_table_shows_a_percentile_from_as_many_samples_on_as_reports() -> None:
    ledger = Ledger()
    rows = [_row(f"{count}", "ok", [1000] * count) for count in (19, 20, 99, 100)]
    ledger.add(Interval(0, 1_000_000_000, 1, rows))
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(_make_table(Tick("measured", 1, None, ledger, ("near",))))
    lines = [line.split() for line in console.export_text().splitlines()]
    dashes = {line[0]: line.count("\N{EN DASH}") for line in lines if line and line[0].isdigit()}
    assert dashes == {"19": 2, "20": 1, "99": 1, "100": 0}


def test_names_are_shown_as_they_are() -> None:
    ledger = Ledger()
    rows = [_row(name, "ok", [1000]) for name in ("GET [/api]", "[red] page")]
    ledger.add(Interval(0, 1_000_000_000, 1, rows))
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(_make_table(Tick("measured", 1, None, ledger, ("[/near]", "[far]"))))
    shown = console.export_text()
    assert "[/near]: GET [/api]" in shown
    assert "[/near]: [red] page" in shown


def test_a_rate_is_told_once_it_rests_on_more_than_a_first_slice() -> None:
    ledger = Ledger()
    rows = [_row("look", "ok", [1000])]
    ledger.add(Interval(0, 50_000_000, 1, rows))
    assert ledger.rate is None
    said = io.StringIO()
    LineProgress(said).tick(Tick("measured", 1, None, ledger, ("near",)))
    assert "measured, 1 user, 0 errors" in said.getvalue()
    ledger.add(Interval(50_000_000, 1_050_000_000, 1, rows))
    assert ledger.rate == pytest.approx(2 / 1.05)


def test_a_turn_begins_without_the_rate_of_the_one_before() -> None:
    state = tick()
    assert state.ledger.rate == pytest.approx(21)
    state.ledger.begin_turn()
    assert state.ledger.rate is None
    assert state.ledger.count == 21
    rows = [_row("look", "ok", [1000])]
    state.ledger.add(Interval(1_000_000_000, 5_000_000_000, 1, rows))
    said = io.StringIO()
    LineProgress(said).tick(state)
    assert "measured, 1 user, 0.25 transactions/s" in said.getvalue()


def test_all_that_ended_is_counted() -> None:
    assert tick().ledger.count == 21


def test_quiet_progress_says_once_what_hangs() -> None:
    said = io.StringIO()
    progress = QuietProgress(said)
    progress.tick(tick())
    assert said.getvalue() == ""
    for age_s in (5.0, 6.0):
        progress.tick(replace(tick(), hanging=(Hang("user 3, stat of a/b", age_s),)))
    assert said.getvalue() == "hangs: user 3, stat of a/b, for 5 s\n"


@pytest.mark.parametrize(
    ("more_s", "says"),
    [(40.0, "about 40 s more"), (119.0, "about 119 s more"), (240.0, "about 4 min more")],
)
def test_a_line_says_about_how_long_it_takes_until_a_run_has_decided(
    more_s: float, says: str
) -> None:
    assert says in line_of(replace(tick(), left_s=3.0, more_s=more_s))
    assert "more" not in line_of(tick())
