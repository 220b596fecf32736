"""The HTML page: its structure, not its looks."""

import html
import itertools
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from replayer._native import Histogram
from replayer.cli import main
from replayer.measure.record import load_run
from replayer.measure.run import PlanFacts, StatedThreshold
from replayer.measure.summary import by_size, find_sweeps
from replayer.measure.units import format_ratio, format_time_ns
from replayer.report.charts import WIDTH, Axis, Chart, LinearScale, LogScale, draw_percentiles, mark
from replayer.report.html import render_chart, render_html
from replayer.scenario.loading import load_scenario
from tests.unit.analysis.found import noisy
from tests.unit.analysis.test_findings import write_stream
from tests.unit.report.contenders import write_run
from tests.unit.runs import RunWriter, encode, make_run, make_target

VOID = {"meta", "br", "line", "rect", "circle", "path", "polyline"}


class Page(HTMLParser):
    """Reads a page: elements, texts, and whether what opens closes in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.headings: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"style", "script"}:
            self.texts.append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.attributes if key == name]


def page_of(*folders: Path) -> Page:
    page = Page(render_html([load_run(folder) for folder in folders]))
    assert page.open == []
    return page


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "one", [1e6, 3e6])


@pytest.mark.parametrize(("calls", "slots"), [(12, 0), (13, 8), (30, 8), (99, 8), (100, 8)])
def test_a_p99_is_drawn_over_as_many_slots_as_hold_the_samples_for_one(
    tmp_path: Path, calls: int, slots: int
) -> None:
    writer = RunWriter(tmp_path / "run")
    for second in range(8):
        writer.transaction("page", noisy(second, 1e6, calls), "0/0", (second, second + 1))
    page = page_of(writer.write(make_run()))
    tips = [tip for tip in page.values("data-tip") if "median " in tip]
    assert len(tips) == 8
    assert all("slowest " in tip for tip in tips)
    assert len([tip for tip in tips if "p99 " in tip]) == slots
    assert any("dashed" in classes for classes in page.values("class")) is bool(slots)


def test_a_p99_of_several_slots_is_that_of_all_their_calls(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    for second in range(4):
        times = [10**6] * 49 + [10**6 if second % 2 else 10**7]
        writer.transaction("page", times, "0/0", (second, second + 1))
    page = page_of(writer.write(make_run()))
    tips = [tip for tip in page.values("data-tip") if "median " in tip]
    found = [dict(re.findall("(median|p99|slowest) (.*)", tip)) for tip in tips]
    assert len(found) == 4
    assert all(times["p99"] == times["median"] for times in found)
    assert [times["slowest"] == times["p99"] for times in found] == [False, True] * 2


def test_more_targets_than_can_be_ranked_have_a_page_all_the_same(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "many", [1e6] * 25, rounds=1))
    assert "Ranking" not in page.headings
    assert "25 targets are not ranked: a page holds 24 side by side at most" in page.texts


def test_the_sections_come_in_the_order_in_which_a_reader_asks(ranked: Path) -> None:
    assert page_of(ranked).headings == [
        "Ranking",
        "What stands out",
        "Charts",
        "Figures",
        "Conditions",
        "Method of the ranking",
    ]


def test_the_page_needs_no_network_and_forbids_itself_one(ranked: Path) -> None:
    text = render_html([load_run(ranked)])
    page = Page(text)
    assert {"link", "img", "iframe", "object"} & set(page.counts) == set()
    assert page.values("src") == page.values("href") == []
    assert not re.search(r"url\(|@import|https?://", text)
    assert any(value.startswith("default-src 'none'") for value in page.values("content"))


def test_a_page_is_light_and_dark_and_small(ranked: Path) -> None:
    text = render_html([load_run(ranked)])
    assert "prefers-color-scheme: dark" in text
    assert 'id="theme"' in text
    assert "@media print" in text
    assert len(text) < 3_000_000


def test_each_target_has_a_line_in_each_percentile_chart(ranked: Path) -> None:
    page = page_of(ranked)
    tips = page.values("data-tip")
    for target in ("t0", "t1"):
        assert any(tip.startswith(f"{target}\np9") for tip in tips)
    assert page.counts["figure"] == 2 + 2 * 2  # two transactions; time and heat of two targets
    assert page.counts["figcaption"] == page.counts["figure"]


def test_every_op_of_every_target_is_in_the_figures(ranked: Path) -> None:
    texts = page_of(ranked).texts
    assert texts.count("page") >= 3
    assert sum(text == "read" for text in texts) == 4  # of two transactions on two targets


def test_bars_are_as_long_as_their_values(ranked: Path) -> None:
    text = render_html([load_run(ranked)])
    bars = re.findall(r'<svg viewBox="0 0 100 10".*?<rect [^>]*width="([\d.]+)"', text)
    best, worst = sorted(map(float, bars[:2]))
    assert worst == 100
    assert best == pytest.approx(100 / 3, rel=0.15)


def test_a_cliff_is_in_the_head_of_the_page_and_in_the_chart(tmp_path: Path) -> None:
    page = page_of(write_stream(tmp_path / "run").write(make_run()))
    said = " ".join(page.texts)
    assert "Look closer before you decide: no thresholds were set, but there was a cliff" in said
    assert said.count("local became slower after 3,2") == 1
    assert any("cliff" in value and "step" in value for value in page.values("class"))
    assert re.search(r"\N{MULTIPLICATION SIGN}4\d\d slower", said)


def test_a_size_sweep_is_one_chart_and_not_one_for_each_size(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    for place, size in enumerate(("64B", "4KiB", "1MiB", "4MiB")):
        writer.transaction(f"write_{size}", noisy(place, 1e5 * 4**place, 50))
    page = page_of(writer.write(make_run()))
    assert "write: latency by size (median; whisker to p95; ring: slowest)" in page.texts
    assert {"64B", "4KiB", "1MiB", "4MiB"} <= set(page.texts)
    assert "write: latency by percentile, for each size" in page.texts
    assert page.counts["figure"] == 4
    said = " ".join(page.texts)
    assert "write_64B p50: " in said
    assert "; write_4MiB p50: " in said


def test_sweeps_are_known_by_their_names() -> None:
    names = ["page", "write_64B", "write_1KiB", "write_1MiB", "write_4MiB", "read-1k", "read-2k"]
    (sweep,) = find_sweeps(names)
    assert sweep.stem == "write"
    assert list(sweep.sizes.values()) == [64, 1 << 10, 1 << 20, 4 << 20]
    (shipped,) = find_sweeps([*load_scenario("write-size-sweep").mix])
    assert list(shipped.sizes.values()) == [64 * 4**step for step in range(10)]
    assert find_sweeps(["page1", "page2", "page3", "page4"]) == ()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>\x1b[31m\"'&"
    writer = RunWriter(tmp_path / "run")
    writer.transaction(name, noisy(1, 1e6, 50))
    folder = writer.write(make_run(targets=(make_target(name=name),)))
    text = render_html([load_run(folder)])
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert html.escape("<script>alert(1)</script>") in text
    page = Page(text)
    assert page.open == []
    assert page.counts["script"] == 1


def test_the_head_says_the_verdict_for_somebody_who_decides(tmp_path: Path) -> None:
    stated = (StatedThreshold(text="page.p50 < 1us", source="here"),)
    folder = write_run(tmp_path / "run", [1e6, 3e6], thresholds=stated)
    said = " ".join(page_of(folder).texts)
    assert "Not good enough: 2 of 2 thresholds failed, first page.p50 < 1us on t0" in said
    gone = write_run(tmp_path / "gone", [1e6], losses=("the run's folder is gone from t0",))
    said = " ".join(page_of(gone).texts)
    assert "Do not decide by this run: the run's folder is gone from t0" in said
    kept = write_run(tmp_path / "kept", [1e6])
    assert "No problem was found; no thresholds were set" in " ".join(page_of(kept).texts)


def test_where_written_data_is_has_a_section_of_its_own(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("save", noisy(1, 1e6, 50))
    writer.record("0/0/measured/save/write/ok/expected", noisy(1, 1e5, 50))
    page = page_of(writer.write(make_run()))
    assert "Durability of writes" in page.headings
    assert "client cache" in " ".join(page.texts)


def test_too_few_data_are_said_instead_of_a_guess(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", noisy(1, 1e6, 50))
    said = " ".join(page_of(writer.write(make_run())).texts)
    assert "Nothing was found; some searches had too few data." in said
    assert "not enough data to look for cliffs and other steps (17 intervals" in said


def test_runs_of_different_plans_are_ranked_when_told_to(tmp_path: Path) -> None:
    plan = PlanFacts(name="other", fingerprint="f" * 64, seed=2, scenario="other.yaml")
    left, right = write_run(tmp_path / "a", [1e6]), write_run(tmp_path / "b", [1e6], plan=plan)
    records = [load_run(folder) for folder in (left, right)]
    assert "Ranking" in Page(render_html(records, "different plans")).headings


def test_runs_of_different_plans_stand_beside_each_other_unranked(tmp_path: Path) -> None:
    plan = PlanFacts(name="other", fingerprint="f" * 64, seed=2, scenario="other.yaml")
    left, right = write_run(tmp_path / "a", [1e6]), write_run(tmp_path / "b", [1e6], plan=plan)
    headings = page_of(left, right).headings
    assert "Ranking" not in headings
    assert headings.count("Figures") == 2


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    page = page_of(RunWriter(tmp_path / "run").write(make_run(status="running", health=None)))
    assert "Nothing was measured." in page.texts


def test_the_command_writes_a_new_file_and_overwrites_none(
    ranked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.html"
    assert main(["report", str(ranked), "--html", str(file)]) == 0
    assert file.read_text().startswith("<!doctype html>")
    assert main(["report", str(ranked), "--html", str(file)]) == 2
    assert "File exists" in capsys.readouterr().err


def test_a_percentile_line_passes_through_the_percentiles() -> None:
    times = noisy(5, 1e6, 10_000)
    chart = draw_percentiles("page", {"disk": Histogram(encode(times))})
    assert chart is not None
    drawn = render_chart(chart)
    found = dict(re.findall(r"(p9\d(?:\.\d+)?): ([\d.]+) ms", drawn))
    ranked_times = sorted(times)
    for percent, value in found.items():
        place = min(int(float(percent[1:]) / 100 * len(times)), len(times) - 1)
        assert float(value) == pytest.approx(ranked_times[place] / 1e6, rel=0.02)
    assert len(found) > 5
    assert f"slowest: {format_time_ns(Histogram(encode(times)).max)}" in drawn


def histogram(counts: dict[int, int]) -> Histogram:
    found = Histogram()
    for value, count in counts.items():
        found.record(value, count)
    return found


@pytest.mark.parametrize("samples", [3_000_000, 20_000_000])
def test_no_percentile_of_many_samples_is_called_the_hundredth(samples: int) -> None:
    found = histogram({1000: samples, 1001: 10, 1002: 1})
    chart = draw_percentiles("page", {"disk": found})
    assert chart is not None
    drawn = render_chart(chart)
    assert "p99.9999<" in drawn
    assert "p100" not in drawn


def test_names_of_percentiles_lie_beside_each_other_and_inside_the_picture() -> None:
    found = histogram({1000: 2_000_000_000, 1001: 10, 1002: 1})
    chart = draw_percentiles("page", {"disk": found})
    assert chart is not None
    drawn = render_chart(chart)
    ticks = re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>(p[\d.]+)</text>', drawn)
    places = [(float(x), 6.0 * len(name) / 2) for x, name in ticks]  # at least so wide
    assert len(places) > 5
    for (x, half), (next_x, next_half) in itertools.pairwise(places):
        assert x + half < next_x - next_half
    assert all(x + half <= WIDTH for x, half in places)


def test_the_slowest_sample_is_on_the_percentile_line_however_few_there_are() -> None:
    chart = draw_percentiles("stream", {"efs": Histogram(encode([10**10] * 326 + [4 * 10**12]))})
    assert chart is not None
    drawn = render_chart(chart)
    assert "slowest: 4,000 s" in drawn


def test_transactions_of_a_sweep_come_by_size() -> None:
    names = ["look", "write_16k", "write_16m", "write_1k", "write_256b", "write_4m", "zap"]
    assert by_size(names) == [
        "look", "write_256b", "write_1k", "write_16k", "write_4m", "write_16m", "zap",
    ]  # fmt: skip
    assert by_size(["b_4k", "b_1k", "a"]) == ["b_4k", "b_1k", "a"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.00"), (1.224, "1.22"), (9.99, "9.99"), (9.996, "10.0"), (104.69, "105"),
     (3353.49, "3,350"), (0.488, "0.49"), (0.0768, "0.077"), (0.0012, "0.0012")],
)  # fmt: skip
def test_a_ratio_has_no_more_digits_than_it_is_worth(value: float, text: str) -> None:
    assert format_ratio(value) == text


def test_scales_place_ends_at_ends_and_name_round_values() -> None:
    log = LogScale(1e3, 1e6, 200, 0)
    assert (log.place(1e3), log.place(1e6), log.place(1)) == (200, 0, 200)
    assert log.ticks() == [1e3, 1e4, 1e5, 1e6]
    assert LogScale(1e3, 1e4, 0, 1).ticks() == [1e3, 2e3, 5e3, 1e4]
    assert LogScale(7e3, 2e10, 0, 1).ticks() == [10.0**power for power in range(4, 11)]
    assert LogScale(1, 1e12, 0, 1).ticks() == [10.0**power for power in range(0, 13, 2)]
    assert LinearScale(0, 60, 0, 1).ticks() == [0, 10, 20, 30, 40, 50, 60]
    assert 4 <= len(LinearScale(3.3, 17.9, 0, 1).ticks()) <= 8
    assert LinearScale(5, 5, 0, 1).ticks() == [5]


def test_marks_and_titles_of_charts_are_escaped() -> None:
    axis = Axis(LinearScale(0, 1, 0, 1), "1 < 2 & 3", str)
    marks = [mark("line", '"x"', x1=1.23456789), mark("desc", text="</svg>\x1b", data_tip="<b>")]
    drawn = render_chart(Chart("<i>", axis, axis, marks))
    assert '<line x1="1.23457" class="&#34;x&#34;"/>' in drawn
    assert '<desc data-tip="&lt;b&gt;">&lt;/svg&gt;\N{REPLACEMENT CHARACTER}</desc>' in drawn
    assert "<i>" not in drawn
    assert "1 &lt; 2 &amp; 3" in drawn


@pytest.mark.parametrize("transactions", [1, 2])
def test_a_single_transaction_has_no_percentiles_to_draw_and_no_heading_for_them(
    tmp_path: Path, transactions: int
) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", [1_000_000] * transactions, "0/0", (0, 1))
    page = page_of(writer.write(make_run()))
    assert ("Latency by percentile" in page.texts) is (transactions > 1)
    assert "Latency over time" in page.texts
