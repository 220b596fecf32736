"""What reports say of figures that cannot be ranked, and of calls that move nothing."""

import html
import json
from pathlib import Path

from replayer.measure.record import RunRecord, load_run
from replayer.report.comparing import compare
from replayer.report.comparison_text import render_comparison_markdown, render_comparison_table
from replayer.report.composition import compose
from replayer.report.html import render_html
from replayer.report.json_form import render_json
from replayer.report.markdown import render_markdown
from replayer.report.table import render_table
from tests.unit.runs import RunWriter, make_run, make_target


def few_on_nfs(folder: Path) -> RunRecord:
    """Two targets, of which one has 20 slow pages, and both 40 quick ones."""
    writer = RunWriter(folder)
    for second in range(8):
        for target in range(2):
            span, place = (10 * target + second, 10 * target + second + 1), f"{target}/0"
            writer.transaction("quick", [10**3 * (target + 1)] * 5, place, span)
            writer.transaction("slow", [10**6] * (5 if target == 0 else 2), place, span)
    targets = (make_target(), make_target(1, "nfs"))
    return load_run(writer.write(make_run(targets=targets)))


NOT_RANKED = (
    "not ranked, as 30 samples or more (for p95 100, for p99 500) must have succeeded: "
    "p95 and p99 of all transactions, quick and slow on local and nfs; p50 and throughput of slow "
    "on nfs"
)


def test_a_figure_with_too_few_samples_is_not_ranked_and_is_said_once_in_every_form(
    tmp_path: Path,
) -> None:
    record = few_on_nfs(tmp_path)
    document, comparison = compose(record), compare([record])
    ranked = [("quick", "p50"), ("quick", "throughput")]
    for figures in (document.ranking, comparison.compared):
        own = [each for each in figures if each.kind != "all transactions"]
        assert [(each.subject, each.figure) for each in own] == ranked
    for found in (json.loads(render_json(document)), comparison.model_dump()):
        (slow,) = (
            each
            for each in found["unranked"]
            if (each["subject"], each["figure"]) == ("slow", "p50")
        )
        assert [*slow["lacking"]] == [{"label": "nfs", "samples": 16}]
    texts = {
        render_table(document): 1,
        render_markdown(document): 1,
        render_html([record]): 1,
        render_comparison_table(comparison): 1,
        render_comparison_markdown(comparison): 1,
    }
    for text, times in texts.items():
        plain = " ".join(html.unescape(text).split())
        assert plain.count("not ranked, as 30 samples or more") == times
        assert "slow p50" not in plain
    assert NOT_RANKED in " ".join(render_table(document).split())


def test_of_several_targets_the_one_with_too_few_samples_alone_is_left_out(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for target, count in enumerate((40, 40, 3)):
        writer.transaction("page", [10**6] * count, f"{target}/0")
    targets = tuple(make_target(index, f"t{index}") for index in range(3))
    document = compose(load_run(writer.write(make_run(targets=targets))))
    median = document.ranking[0]
    assert {place.label for place in median.standings} == {"t0", "t1"}
    (few,) = document.unranked[0].lacking
    assert (few.label, few.samples) == ("t2", 3)


def test_calls_that_only_find_the_end_of_a_file_are_told_beside_the_figures(
    tmp_path: Path,
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("copy", [10**6] * 40)
    writer.record("0/0/measured/copy/copy_file_range/ok/expected", [1000] * 80)
    folder = writer.write(make_run())
    step = {"do": "call", "op": "copy_file_range", "expect": ["ok"]}
    plan = {"transactions": [{"name": "copy", "steps": [{"do": "repeat", "steps": [step]}]}]}
    (folder / "plan.json").write_text(json.dumps(plan))
    record = load_run(folder)
    document = compose(record)
    assert document.finds_ends == ("copy/copy_file_range",)
    says = "copy/copy_file_range: the last call on each file moves nothing, it finds the end"
    for text in (
        render_table(document),
        render_markdown(document).replace("\\", ""),
        html.unescape(render_html([record])),
    ):
        assert says in text
    (folder / "plan.json").unlink()
    assert compose(load_run(folder)).finds_ends == ()
