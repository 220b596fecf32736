import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replayer.measure.hlog import Key, Segment, Span, read_log
from replayer.measure.timeline import COLUMNS, read_timeline
from tests.unit.runs import HEADER, RunWriter, make_run

GOLDEN = Path(__file__).parents[2] / "golden"
MEASURED = Segment(0, 0, "measured")


def test_a_log_of_another_writer_reads_as_that_writer_reads_it() -> None:
    log = read_log(GOLDEN / "other-writer.hlog")
    theirs = json.loads((GOLDEN / "other-writer.json").read_text())
    ours = log.histograms[Key(MEASURED, "page", "transaction", "ok", expected=True)]
    assert (ours.count, ours.max) == (theirs["count"], theirs["max"])
    assert ours.mean == pytest.approx(theirs["mean"], rel=1e-12)
    for percent, value in theirs["percentiles"].items():
        assert ours.percentile(float(percent)) == value
    assert log.spans == {MEASURED: Span(0, 3)}
    assert log.damaged == 0


def test_intervals_of_a_key_are_added_and_spans_joined(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.record("0/0/measured/page/open/ok/expected", [1, 2], (0, 1))
    writer.record("0/0/measured/page/open/ENOENT/unexpected", [3], (1, 2))
    writer.record("0/0/measured/page/open/ok/expected", [4], (2, 2.5))
    log = read_log(writer.write(make_run()) / "histograms.hlog")
    counts = {(key.outcome, key.expected): found.count for key, found in log.histograms.items()}
    assert counts == {("ok", True): 3, ("ENOENT", False): 1}
    assert log.spans == {MEASURED: Span(0, 2.5)}


@pytest.mark.parametrize("name", ["front_page", "/wp-admin/edit", "GET a, b", "50 % ü\nx"])
def test_a_transaction_may_have_any_name(tmp_path: Path, name: str) -> None:
    writer = RunWriter(tmp_path)
    writer.record(f"1/2/warm-up/{name}/open/ok/expected", [1])
    folder = writer.write(make_run())
    key = Key(Segment(1, 2, "warm-up"), name, "open", "ok", expected=True)
    assert list(read_log(folder / "histograms.hlog").histograms) == [key]
    assert [row and row.key for row in read_timeline(folder / "timeline.csv")] == [key]


def test_a_log_cut_at_every_byte_keeps_its_whole_lines(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(8):
        samples = [second * 1000 + step * 37 for step in range(20)]
        writer.record("0/0/measured/page/read/ok/expected", samples, (second, second + 1))
    folder = writer.write(make_run())
    whole = (folder / "histograms.hlog").read_bytes()
    log = folder / "histograms.hlog"
    for cut in range(len(whole) + 1):
        log.write_bytes(whole[:cut])
        found = read_log(log)
        count = sum(histogram.count for histogram in found.histograms.values())
        assert count == sum(b"Tag=" in line for line in whole[:cut].split(b"\n")[:-1]) * 20
        assert found.damaged == (not whole[:cut].endswith(b"\n") and b"\nTag=" in whole[: cut + 3])


@given(st.data())
def test_a_damaged_line_costs_itself_only(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    writer = RunWriter(tmp_path_factory.mktemp("run"))
    for second in range(5):
        writer.record("0/0/measured/page/read/ok/expected", [5] * 10, (second, second + 1))
    hit = data.draw(st.integers(1, 5))
    line = writer.lines[hit]
    place = data.draw(st.integers(line.rindex(",") + 1, len(line) - 2))
    char = data.draw(st.sampled_from("!AZ~").filter(lambda found: found != line[place]))
    writer.lines[hit] = line[:place] + char + line[place + 1 :]
    log = read_log(writer.write(make_run()) / "histograms.hlog")
    count = sum(found.count for found in log.histograms.values())
    assert (count, log.damaged) in {(40, 1), (50, 0)}  # base64 has bits that mean nothing


def test_a_missing_log_holds_nothing(tmp_path: Path) -> None:
    log = read_log(tmp_path / "histograms.hlog")
    assert (log.histograms, log.spans, log.damaged) == ({}, {}, 0)


def test_a_timeline_cut_at_every_byte_keeps_its_whole_rows(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for second in range(4):
        writer.record("0/0/measured/page/read/ok/expected", [5], (second, second + 1), moved=100)
    file = writer.write(make_run()) / "timeline.csv"
    whole = file.read_bytes()
    for cut in range(len(HEADER), len(whole) + 1):
        file.write_bytes(whole[:cut])
        rows = list(read_timeline(file))
        ended = whole[:cut].count(b"\n") - 1
        assert sum(row.bytes for row in rows if row is not None) == ended * 100
        assert rows.count(None) == (not whole[:cut].endswith(b"\n"))


def test_a_timeline_has_the_columns_that_engines_write() -> None:
    assert ",".join(COLUMNS) + "\n" == HEADER
