import csv
import html
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replayer.errors import in_one_line
from replayer.measure.record import load_run
from replayer.measure.run import StatedThreshold, finish
from replayer.report.claims import lie_apart
from replayer.report.comparing import compare
from replayer.report.comparison_text import render_comparison_markdown, render_comparison_table
from replayer.report.composition import compose
from replayer.report.document import Document
from replayer.report.forms import render_csv
from replayer.report.html import render_html
from replayer.report.json_form import render_json, run_schema
from replayer.report.junit import render_junit
from replayer.report.markdown import render_markdown
from replayer.report.style import Column, Style, lay_out_grid, text_width
from replayer.report.table import render_table
from tests.unit.analysis.test_findings import write_stream
from tests.unit.runs import RunWriter, make_health, make_load, make_run, make_target

GOLDEN = Path(__file__).parents[2] / "golden"
NFS: dict[str, Any] = {
    "filesystem": "nfs4",
    "source": "10.0.0.1:/export",
    "path": "/mnt/nfs",
    "mount_point": "/mnt/nfs",
    "super_options": ("rw", "vers=4.2", "hard", "proto=tcp", "timeo=600"),
}
EVENTS = (
    {"t_s": 1.5, "kind": "error", "user": 3, "target": 1, "transaction": "front_page",
     "op": "open", "path": "docroot/wp-\x1bindex.php", "outcome": "ESTALE"},
    {"t_s": 2.25, "kind": "slow", "user": 1, "target": 1, "transaction": "front_page",
     "op": "read", "path": "docroot/a.jpg", "outcome": "ok", "service_ns": 93_000_000},
    {"t_s": 7.0, "kind": "stall", "user": 1, "target": 0, "transaction": "front_page",
     "op": "read", "path": "docroot/b.jpg", "age_ns": 5_000_000_000},
    {"t_s": 9.0, "kind": "warning", "message": "the record is incomplete", "errno": 28},
)  # fmt: skip


def two_targets(folder: Path, **changes: object) -> Document:
    """Three interleaved rounds on a fast and a slow target that made errors."""
    writer = RunWriter(folder / "run")
    for number in range(3):
        for target, scale in enumerate((1, 3)):
            place, begin = f"{target}/{number}", number * 20 + target * 10
            tag = f"{place}/measured/front_page"
            every = [scale * (1_000_000 + 4000 * step + 997 * number) for step in range(200)]
            for half, times in enumerate((every[::2], every[1::2])):
                span = (begin + 5 * half, begin + 5 * half + 5)
                writer.transaction("front_page", times, place, span)
                writer.record(f"{tag}/open/ok/expected", [time // 10 for time in times], span)
                fifths = [time // 5 for time in times]
                writer.record(f"{tag}/read/ok/expected", fifths, span, 409_600)
        writer.record(f"{tag}/open/ESTALE/unexpected", [5_000_000] * 3, span)
        writer.record(f"{tag}/transaction/failed/unexpected", [5_100_000] * 3, span)
    stated = ("front_page.p95 < 3ms", "local:errors == 0", "front_page.p99.9 < 1s")
    run = make_run(
        targets=(make_target(), make_target(1, "nfs", **NFS)),
        load=make_load(rounds=3),
        thresholds=tuple(
            StatedThreshold(text=text, source=f"scenarios/pages.yaml:{line}")
            for line, text in enumerate(stated, start=31)
        ),
        **changes,
    )
    document = compose(load_run(writer.write(run, EVENTS)))
    return document.model_copy(update={"folder": "replayer-runs/20261121T024839-ab12"})


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return two_targets(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("report-wide.txt", render_table),
        ("report-80.txt", lambda found: render_table(found, Style(width=80))),
        ("report-colour.txt", lambda found: render_table(found, Style.coloured(100))),
        ("report.md", render_markdown),
        ("report.csv", render_csv),
        ("report.xml", render_junit),
        ("report.json", render_json),
    ],
)
def test_each_form_is_as_it_was_approved(
    document: Document, name: str, render: Callable[[Document], str]
) -> None:
    text = render(document)
    if os.environ.get("REPLAYER_BLESS") == "1":
        (GOLDEN / name).write_text(text)
    assert (GOLDEN / name).read_text() == text


def test_json_is_valid_against_its_schema_and_reads_back(document: Document) -> None:
    text = render_json(document)
    schema = run_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    assert Document.model_validate_json(text) == document


def test_the_schema_allows_no_unknown_key_anywhere() -> None:
    def objects(node: object) -> list[dict[str, Any]]:
        if isinstance(node, list):
            return [found for item in node for found in objects(item)]
        if not isinstance(node, dict):
            return []
        own = [node] if node.get("type") == "object" else []
        return own + [found for item in node.values() for found in objects(item)]

    found = objects(run_schema())
    assert len(found) > 15
    assert all(item["additionalProperties"] is False for item in found)


def test_an_unknown_key_breaks_the_schema(document: Document) -> None:
    changed = json.loads(render_json(document))
    changed["summary"]["targets"][0]["p42"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, run_schema())


def test_no_line_of_tables_is_wider_than_the_terminal(document: Document) -> None:
    for width in (80, 100, 120, 200):
        lines = render_table(document, Style(width=width)).splitlines()
        unbroken = [line for line in lines if "rw,relatime" not in line]  # options have no blanks
        assert max(text_width(line) for line in unbroken) <= width


def test_what_did_not_fit_is_named(document: Document) -> None:
    assert "no room for bytes/s, mean" in render_table(document, Style(width=80))
    assert "no room for" not in render_table(document, Style(width=160))


def test_the_verdict_comes_first(document: Document) -> None:
    assert render_table(document).startswith("FAIL  pages")
    assert render_markdown(document).startswith("# FAIL  pages")


def test_colour_only_adds_codes(document: Document) -> None:
    plain = render_table(document, Style(width=100))
    coloured = render_table(document, Style.coloured(100))
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_a_stream_without_unicode_gets_ascii(document: Document) -> None:
    text = render_table(document, Style(encoding="ascii"))
    assert text.isascii()
    assert "x3.00" in text


def test_a_pipe_gets_no_colour() -> None:
    assert Style.of(io.StringIO()).codes == {}


@pytest.mark.parametrize(("asked", "width"), [("200", 200), ("", 120), ("0", 120), ("wide", 120)])
def test_a_pipe_is_as_wide_as_columns_asks_for(
    monkeypatch: pytest.MonkeyPatch, asked: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", asked)
    assert Style.of(io.StringIO()).width == width


def test_control_characters_never_reach_the_terminal(document: Document) -> None:
    text = render_table(document)
    assert "\x1b" not in text
    assert "wp-\\x1bindex.php" in text


def test_csv_has_a_line_per_target_round_transaction_and_op(document: Document) -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(document))))
    whole = [row for row in rows if row["op"] == "transaction"]
    assert [(row["target"], row["round"]) for row in whole] == [
        (target, number) for target in ("local", "nfs") for number in ("all", "0", "1", "2")
    ]
    assert whole[0]["p95_ns"] == str(
        document.summary.targets[0].overall.transactions[0].latency.p95_ns
    )


def test_junit_counts_what_it_holds(document: Document) -> None:
    suite = parsed(render_junit(document))[0]
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure")) == 1
    assert int(suite.attrib["errors"]) == len(suite.findall("testcase/error")) == 2


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own output


@given(st.text(max_size=40))
@settings(max_examples=40, deadline=None)  # each writes a folder
def test_junit_is_xml_whatever_a_target_is_called(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    writer = RunWriter(tmp_path_factory.mktemp("run"))
    run = make_run(
        targets=(make_target(name=name),),
        thresholds=(StatedThreshold(text="errors == 0", source=name),),
    )
    parsed(render_junit(compose(load_run(writer.write(run)))))


def test_rounds_that_lie_apart_differ_and_overlapping_ones_do_not(
    document: Document,
) -> None:
    claims = {(item.subject, item.figure): item.standings[1].claim for item in document.ranking}
    assert claims["front_page", "p95"] == "differs"
    assert claims["front_page", "throughput"] == "no difference shown"
    ratios = {item.figure: item.standings[1].ratio for item in document.ranking}
    assert ratios["p95"] == pytest.approx(3, rel=0.01)


@given(
    st.lists(st.integers(10**3, 10**6), min_size=3, max_size=5),
    st.lists(st.integers(10**3, 10**6), min_size=3, max_size=5),
)
@settings(max_examples=40, deadline=None)  # each writes a folder
def test_a_difference_is_claimed_only_when_the_rounds_lie_apart(
    tmp_path_factory: pytest.TempPathFactory, left: list[int], right: list[int]
) -> None:
    writer = RunWriter(tmp_path_factory.mktemp("run"))
    for target, rounds in enumerate((left, right)):
        for number, time in enumerate(rounds):
            begin = 4 * number + 2 * target
            for second in (begin, begin + 1):
                span = (second, second + 1)
                writer.transaction("page", [time] * 10, f"{target}/{number}", span)
    run = make_run(targets=(make_target(), make_target(1, "nfs")))
    ranking = compose(load_run(writer.write(run))).ranking
    p50 = next(item for item in ranking if item.figure == "p50")
    if p50.standings[1].claim != "no difference shown":
        assert lie_apart(left, right)
    assert p50.standings[0].ratio == 1 <= (p50.standings[1].ratio or 0)


def test_two_rounds_show_their_spread_and_claim_less_than_three(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for number in range(2):
        for target, time in ((0, 10**3), (1, 10**9)):
            begin = 4 * number + 2 * target
            for second in (begin, begin + 1):
                span = (second, second + 1)
                writer.transaction("page", [time] * 10, f"{target}/{number}", span)
    run = make_run(targets=(make_target(), make_target(1, "nfs")), load=make_load(rounds=2))
    document = compose(load_run(writer.write(run)))
    place = document.ranking[0].standings[1]
    assert place.low is not None
    assert place.claim == "differs, few rounds"
    assert "differs, few rounds: both have 30 samples" in render_table(document)


@pytest.mark.parametrize(
    ("seconds", "calls", "claim", "why"),
    [
        (1, 2000, "too few seconds", "samples in 4 seconds or more on both"),
        (3, 2000, "too few seconds", "samples in 4 seconds or more on both"),
        (4, 2000, "differs, few rounds", "use --rounds 3 or more"),
    ],
)
def test_what_was_measured_too_shortly_has_no_claim_and_no_interval_and_says_why(
    tmp_path: Path, seconds: int, calls: int, claim: str, why: str
) -> None:
    writer = RunWriter(tmp_path)
    for target, time in enumerate((10**3, 10**6)):
        for second in range(seconds):
            begin = 10 * target + second
            writer.transaction("page", [time] * calls, f"{target}/0", (begin, begin + 1))
    run = make_run(targets=(make_target(), make_target(1, "nfs")))
    record = load_run(writer.write(run))
    document, comparison = compose(record), compare([record])
    shown = [ranked.standings[1].claim for ranked in document.ranking if ranked.unit == "ns"]
    assert set(shown) == {claim}
    texts = (
        render_table(document),
        render_markdown(document),
        render_html([record]),
        render_comparison_table(comparison),
        render_comparison_markdown(comparison),
    )
    for text in texts:
        assert claim in text
        assert why in " ".join(html.unescape(text).replace("\n", " ").split())
    told = claim.startswith("too few")
    for ranked in (each for each in comparison.compared if each.unit == "ns"):
        second_best = ranked.standings[1]
        assert second_best.claim == claim
        assert (second_best.ratio_low is None) == told
    assert (claim in comparison.headline[0]) == told


@pytest.mark.parametrize("status", ["running", "interrupted", "failed", "finished"])
def test_a_run_that_measured_nothing_still_has_every_form(tmp_path: Path, status: str) -> None:
    changes: dict[str, Any] = {"status": status, "health": None, "ended": None}
    found = compose(load_run(RunWriter(tmp_path).write(make_run(**changes))))
    assert "INCONCLUSIVE" in render_table(found)
    for render in (render_markdown, render_csv, render_junit):
        assert render(found)
    jsonschema.validate(json.loads(render_json(found)), run_schema())


def test_warnings_and_their_hints_are_shown(tmp_path: Path) -> None:
    run = make_run(status="running")
    busy = make_health(client_cpu_share=0.97)
    ended = finish(run, "finished", health=busy)
    found = compose(load_run(RunWriter(tmp_path).write(ended)))
    text = render_table(found)
    assert "this client used 97% of its 2 CPUs" in text
    assert "use fewer (-u)" in text


@given(st.lists(st.lists(st.text(max_size=30), min_size=3, max_size=3), max_size=5))
def test_grids_stay_aligned_whatever_the_cells_hold(rows: list[list[str]]) -> None:
    columns = [Column("name", 9), Column("first", 2), Column("second", 1)]
    grid = lay_out_grid(columns, rows, Style(width=80))
    assert len(grid.lines) == len(rows) + 1
    assert all(text_width(line) <= 80 for line in grid.lines)
    assert all(line.isprintable() for line in grid.lines)


def test_what_stands_out_is_in_every_form_that_people_read(tmp_path: Path) -> None:
    folder = write_stream(tmp_path).write(make_run())
    found = compose(load_run(folder))
    for text in (render_table(found), render_markdown(found)):
        assert "What stands out" in text
        assert "cliff" in text
        assert "from sample 327 on" in " ".join(text.split())
    jsonschema.validate(json.loads(render_json(found)), run_schema())
    assert json.loads(render_json(found))["analysis"]["steps"][0]["sample"] == 327


def test_calls_outside_of_transactions_are_in_every_form_that_people_read(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [1000] * 30)
    writer.record("0/0/measured/save/open/ok/expected", [300] * 30)
    writer.record("0/0/measured/-/write/ok/expected", [300] * 4, moved=4096)
    writer.record("0/0/measured/-/stat/ENOENT/unexpected", [300] * 39)
    record = load_run(writer.write(make_run()))
    found = compose(record)
    lines = [line.split() for line in render_table(found).splitlines()]
    assert ["no", "transaction", "43", "39", "43/s", "4.10", "kB"] in lines
    assert [*lines[lines.index(["Errors"]) + 2][:5]] == [
        "no", "transaction/stat", "local", "ENOENT", "39",
    ]  # fmt: skip
    markdown = render_markdown(found)
    assert "| no transaction | 43 | 39 | 43/s |" in markdown
    assert "| · stat | 39 | 39 | 39/s |" in markdown
    assert "no transaction/stat" in render_html([record])
    rows = csv.DictReader(io.StringIO(render_csv(found)))
    own = [row for row in rows if (row["transaction"], row["round"]) == ("no transaction", "all")]
    assert [(row["op"], row["count"], row["errors"]) for row in own] == [
        ("stat", "39", "39"),
        ("write", "4", "0"),
    ]
    document = json.loads(render_json(found))
    jsonschema.validate(document, run_schema())
    (target,) = document["summary"]["targets"]
    assert {op["op"]: op["count"] for op in target["overall"]["outside"]} == {
        "write": 4,
        "stat": 39,
    }


def test_wide_characters_count_twice() -> None:
    assert text_width("データ") == 6
    assert in_one_line("a\nb\x1b[31m\u202e") == "a\\nb\\x1b[31m\\u202e"


def test_a_long_name_is_parted_from_what_is_said_of_it(tmp_path: Path) -> None:
    name = "x" * 60
    writer = RunWriter(tmp_path)
    writer.transaction("a", [1000] * 30)
    folder = writer.write(make_run(targets=(make_target(name=name),)))
    text = render_table(compose(load_run(folder)))
    assert f"target {name}  /" in text


def test_a_time_of_waiting_that_is_not_known_is_no_share(tmp_path: Path) -> None:
    health = make_health(run_queue_delay_ns=None, in_call_ns=2_000_000)
    text = render_table(two_targets(tmp_path, health=health))
    assert "2.00 ms in calls, too short to tell the time waiting for a CPU" in text
    assert "of call time waiting" not in text
