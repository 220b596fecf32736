"""Comparisons of targets whose truth is known, of one run and of several."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from replayer.analysis.resampling import Draw, resample
from replayer.analysis.slots import read_distributions
from replayer.cli import main
from replayer.errors import ReplayerError
from replayer.measure.neighbour import Neighbour
from replayer.measure.record import RunRecord
from replayer.measure.run import CacheFacts
from replayer.report.comparing import compare
from replayer.report.comparison_text import (
    comparison_rows,
    render_comparison_markdown,
    render_comparison_table,
)
from replayer.report.composition import compose
from replayer.report.document import Comparison
from replayer.report.html import render_html
from replayer.report.json_form import comparison_schema, render_comparison_json, render_json
from replayer.report.plan_changes import plan_changes, same_work
from tests.unit.report.contenders import load, other_plan, write_run
from tests.unit.runs import RunWriter, make_load, make_run, make_target

Levels = Sequence[float]


def claims(comparison: Comparison) -> dict[tuple[str, str], str]:
    return {(item.subject, item.figure): item.standings[1].claim for item in comparison.compared}


@pytest.fixture(scope="module")
def threefold(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = write_run(tmp_path_factory.mktemp("runs") / "one", [1e6, 3e6])
    return compare([load(folder)])


def test_a_threefold_difference_is_found_with_its_ratio(threefold: Comparison) -> None:
    for item in threefold.compared:
        if item.unit == "ns":
            assert [standing.label for standing in item.standings] == ["t0", "t1"]
            second = item.standings[1]
            assert second.ratio == pytest.approx(3, rel=0.15)
            assert second.ratio is not None
            assert second.ratio_low is not None
            assert second.ratio_high is not None
            assert second.ratio_low < second.ratio < second.ratio_high
            assert second.claim == "differs"


def test_equal_throughput_is_no_difference(threefold: Comparison) -> None:
    found = claims(threefold)
    assert found["page", "throughput"] == "no difference shown"
    assert found["all transactions", "throughput"] == "no difference shown"


def test_the_headline_says_it_in_a_sentence(threefold: Comparison) -> None:
    first = threefold.headline[0]
    assert re.match(r"use t0: transactions take [23]\.\d\d times as long on t1 \(", first)
    assert first.endswith("; 95 %)")


def test_of_many_contenders_without_a_difference_the_first_are_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", [1e6] * 8)
    (first, *_) = compare([load(folder)]).headline
    named = r"no difference is shown between (t\d, ){4}t\d and 3 more: one above [\d.]+ % would"
    assert re.match(named, first)


def test_where_nothing_succeeded_on_one_target_that_is_the_headline(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", [1_000_000] * 40)
    writer.record("0/0/measured/page/setxattr/ok/expected", [1_000_000] * 40)
    writer.record("1/0/measured/page/transaction/failed/unexpected", [1000] * 40)
    writer.record("1/0/measured/page/setxattr/ENOTSUP/unexpected", [1000] * 40)
    record = load(writer.write(make_run(targets=(make_target(), make_target(1, "nfs")))))
    found = compare([record])
    assert found.compared == ()
    (none,) = found.unranked[0].lacking
    assert (none.label, none.samples) == ("nfs", 0)
    head = "nothing has succeeded on nfs: no times can be compared"
    assert found.headline == (head,)
    assert render_comparison_markdown(found).startswith(f"# {head}\n")
    assert render_comparison_table(found).startswith(head)


@pytest.mark.parametrize(
    ("level", "claim"), [(27 * 10**9, "no ratio to 0"), (0, "no difference shown")]
)
def test_nothing_is_a_multiple_of_no_time(tmp_path: Path, level: int, claim: str) -> None:
    writer = RunWriter(tmp_path / "run")
    for second in range(40):
        for target, time in enumerate((0, level)):
            span, place = (second, second + 1), f"{target}/0"
            writer.transaction("look", [10**6 + time] * 5, place, span)
            writer.record(f"{place}/measured/look/until/ok/expected", [time] * 5, span)
    targets = (make_target(), make_target(1, "nfs"))
    record = load(writer.write(make_run(targets=targets)))
    found = compare([record])
    (item,) = (i for i in found.compared if (i.subject, i.figure) == ("until", "p50"))
    assert [standing.label for standing in item.standings] == ["local", "nfs"]
    other = item.standings[1]
    assert (other.claim, other.ratio_low, other.ratio_high) == (claim, None, None)
    assert other.ratio == (None if level else 1.0)
    if level:
        assert "no ratio to 0: the best value is 0" in " ".join(found.method)
        cells = next(row for row in rows_of(found) if row[:2] == ("until p50", "nfs"))
        assert cells == ("until p50", "nfs", "27.0 s", *["\N{EN DASH}"] * 3, claim)
        render_html([record])
        render_json(compose(record))


def rows_of(comparison: Comparison) -> list[tuple[str, ...]]:
    return [row for ranked in comparison.compared for row in comparison_rows(ranked)]


def test_a_target_with_a_bar_in_its_name_is_one_cell_of_the_titles(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    for target in range(2):
        writer.transaction("page", [1_000_000] * 40, f"{target}/0")
    targets = (make_target(name="a|b"), make_target(1, "nfs", filesystem="nfs4"))
    found = compare([load(writer.write(make_run(targets=targets)))])
    assert found.differences
    assert "|  | a\\|b | nfs |" in render_comparison_markdown(found)


def test_equal_targets_are_rarely_called_different(tmp_path: Path) -> None:
    wrong = total = 0
    for seed in range(4):
        folder = write_run(tmp_path / f"run{seed}", [1e6, 1e6])
        found = claims(compare([load(folder)]))
        total += len(found)
        wrong += sum(claim != "no difference shown" for claim in found.values())
    assert total > 40
    assert wrong <= total // 10


def test_with_one_round_a_small_difference_is_not_claimed_and_a_large_one_is(
    tmp_path: Path,
) -> None:
    small = compare([load(write_run(tmp_path / "small", [1e6, 1.2e6], rounds=1))])
    large = compare([load(write_run(tmp_path / "large", [1e6, 3e6], rounds=1))])
    assert claims(small)["page", "p50"] == "no difference shown"
    assert claims(large)["page", "p50"] == "differs, few rounds"
    assert "use --rounds 3" in " ".join(large.method)


def drawn_run(folder: Path, medians: Sequence[Levels], calls: int) -> RunRecord:
    """A run: of each target the median of each round, and so many calls in each of its seconds."""
    writer, begin = RunWriter(folder), 0
    for number, row in enumerate(zip(*medians, strict=True)):
        for target, median in enumerate(row):
            for second in range(begin, begin + 8):
                random = np.random.default_rng([number, target, second])
                times = [int(time) for time in median * random.lognormal(sigma=0.05, size=calls)]
                writer.transaction("page", times, f"{target}/{number}", (second, second + 1))
            begin += 10
    targets = tuple(make_target(index, f"t{index}") for index in range(len(medians)))
    return load(writer.write(make_run(targets=targets, load=make_load(rounds=len(medians[0])))))


@pytest.mark.parametrize(
    ("medians", "calls", "claim"),
    [
        (((1e6, 1.1e6, 1.05e6), (5e6, 5.5e6, 5.1e6)), 20, "differs"),
        # One round of the slower target is far slower still.
        (((1e3, 0.8e3, 1.4e3), (82e3, 85e3, 4e6)), 20, "differs"),
        # One round of one lies among those of the other.
        (((1e6, 1e6, 9e6), (8e6, 8e6, 8e6)), 20, "no difference shown"),
        # Rounds that lie apart, but barely: the interval holds 1.
        (((1e6, 1.4e6, 1.2e6), (2e6, 1.45e6, 1.7e6)), 20, "no difference shown"),
        (((1e6, 1.1e6), (5e6, 5.5e6)), 20, "differs, few rounds"),
        (((1e6, 6e6), (5e6, 5.5e6)), 20, "no difference shown"),
    ],
)
def test_a_figure_of_a_run_has_one_verdict_wherever_it_is_shown(
    tmp_path: Path, medians: Sequence[Levels], calls: int, claim: str
) -> None:
    record = drawn_run(tmp_path / "run", medians, calls)
    compared = claims(compare([record]))
    shown = {
        (item.subject, item.figure): item.standings[1].claim for item in compose(record).ranking
    }
    assert compared == shown
    assert shown["page", "p50"] == claim
    assert f"{claim}</span>" in render_html([record])


def test_two_runs_of_one_plan_are_compared_and_named_after_their_folders(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, [level]) for name, level in (("efs", 5e6), ("zfs", 1e6))]
    found = compare([load(folder) for folder in folders])
    assert [contender.label for contender in found.contenders] == ["efs/t0", "zfs/t0"]
    assert found.compared[0].standings[0].label == "zfs/t0"
    assert any("not made in turns" in caution for caution in found.cautions)


def test_the_same_runs_give_the_same_intervals(tmp_path: Path) -> None:
    record = load(write_run(tmp_path / "run", [1e6, 2e6]))
    assert compare([record]) == compare([record])


@pytest.fixture
def unlike(tmp_path: Path) -> list[Path]:
    """Two runs of different plans."""
    left = write_run(tmp_path / "left", [1e6])
    right = write_run(tmp_path / "right", [1e6], plan=other_plan())
    for folder, seed in ((left, 1), (right, 2)):
        pace = {"kind": "closed", "think": {"const": 7 * seed}}
        (folder / "plan.json").write_text(json.dumps({"seed": seed, "users": 4, "pace": pace}))
    return [left, right]


def test_different_plans_are_refused_and_their_differences_named(unlike: list[Path]) -> None:
    with pytest.raises(ReplayerError) as caught:
        compare([load(folder) for folder in unlike])
    assert "seed (1 and 2)" in str(caught.value)
    assert 'pace.think ({"const": 7} and {"const": 14})' in str(caught.value)
    assert "users" not in str(caught.value)
    assert "--different-plans" in caught.value.hint


def test_different_plans_are_compared_when_told_to_and_the_difference_is_shown(
    unlike: list[Path],
) -> None:
    found = compare([load(folder) for folder in unlike], "different plans")
    shown = {item.what: item.values for item in found.differences}
    assert shown["seed"] == ("1", "2")
    assert len(found.fingerprints) == 2


def plan_of(folder: Path, **changes: Any) -> None:  # noqa: ANN401
    plan = {"seed": 1, "users": 4, "stop": {"duration_ns": 10**9}, "warm_up_ns": 0, **changes}
    (folder / "plan.json").write_text(json.dumps(plan))


def test_runs_of_different_length_are_compared_and_the_length_is_said(tmp_path: Path) -> None:
    left = write_run(tmp_path / "left", [1e6])
    right = write_run(tmp_path / "right", [1e6], rounds=1, plan=other_plan())
    plan_of(left)
    plan_of(right, stop={"duration_ns": 10**10}, warm_up_ns=5)
    found = compare([load(left), load(right)])
    assert "work" not in {item.what for item in found.differences}
    assert any("not measured for as long as each other" in text for text in found.cautions)


@pytest.mark.parametrize("change", [{"users": 8}, {"seed": 2}, {"pace": {"kind": "open"}}])
def test_runs_of_different_work_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    left = write_run(tmp_path / "left", [1e6])
    right = write_run(tmp_path / "right", [1e6], plan=other_plan())
    plan_of(left)
    plan_of(right, **change)
    with pytest.raises(ReplayerError, match=f"did different work.*{next(iter(change))}"):
        compare([load(left), load(right)])


@pytest.mark.parametrize(("line", "alike"), [("runtime=5s\ntime_based", True), ("bs=8k", False)])
def test_jobs_of_fio_are_the_same_work_for_however_long(
    tmp_path: Path, line: str, *, alike: bool
) -> None:
    folders = [
        write_run(tmp_path / "left", [1e6]),
        write_run(tmp_path / "right", [1e6], plan=other_plan()),
    ]
    for folder, version, extra in zip(folders, ("3.28", "3.33"), ("runtime=60", line), strict=True):
        job = {"source": "a", "text": f"[a]\nrw=read\n{extra}\n"}
        plan = {"engine": "fio", "version": version, "jobs": [job]}
        (folder / "plan.json").write_text(json.dumps(plan))
    assert same_work(load(folders[0]), load(folders[1])) == alike


def test_runs_beside_other_loads_are_other_work(tmp_path: Path) -> None:
    records = []
    for rate in (None, 5.0, 20.0):
        neighbour = Neighbour(name="uploads", scenario="uploads", rate_per_s=rate, pairs=())
        records.append(load(RunWriter(tmp_path / str(rate)).write(make_run(neighbour=neighbour))))
    assert same_work(records[1], records[1])
    assert not same_work(records[1], records[2])
    told = "what ran beside: uploads at 5/s against uploads at 20/s"
    assert plan_changes(records[1], records[2]) == told


def test_in_what_jobs_of_fio_differ_is_named_by_job_and_option(tmp_path: Path) -> None:
    records = []
    for name, size in (("one", "4G"), ("two", "64M")):
        folder = RunWriter(tmp_path / name).write(make_run())
        text = f"[cache]\nbs=4k\nsize={size}\nruntime=60\n\n[upload]\nbs=1M\n"
        plan = {"engine": "fio", "version": "3.33", "jobs": [{"source": "x", "text": text}]}
        (folder / "plan.json").write_text(json.dumps(plan))
        records.append(load(folder))
    assert plan_changes(*records) == 'cache.size ("4G" and "64M")'


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [1e6, 3e6])
    assert main(["compare", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    assert "Ranking" in (tmp_path / "page.html").read_text()


def test_differences_in_mount_kernel_cache_and_users_are_named(tmp_path: Path) -> None:
    left = load(write_run(tmp_path / "left", [1e6]))
    machine = left.run.machine.model_copy(update={"kernel": "Linux 5.14.0"})
    nfs = make_target(0, "t0", filesystem="nfs4", super_options=("rw", "vers=4.1", "sync"))
    changes: dict[str, Any] = {
        "machine": machine,
        "targets": (nfs,),
        "load": make_load(users=16, rounds=3),
        "cache": CacheFacts(asked="cold", procedure="caches dropped"),
    }
    right = load(write_run(tmp_path / "right", [1e6], **changes))
    found = {item.what: item for item in compare([left, right]).differences}
    assert found["mount options"].values == ("none beside the common", "vers=4.1,sync")
    assert found["kernel"].values == ("Linux 6.18.0", "Linux 5.14.0")
    assert found["users"].values == ("4", "16")
    assert found["cache"].values == ("as-is", "cold")
    assert found["acknowledged at"].decides
    assert not found["file system"].decides


def test_one_target_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayerError, match="needs 2 to 24 targets, got 1"):
        compare([load(write_run(tmp_path / "run", [1e6]))])


def test_the_same_run_twice_is_refused(tmp_path: Path) -> None:
    record = load(write_run(tmp_path / "run", [1e6]))
    with pytest.raises(ReplayerError, match="named twice"):
        compare([record, record])


def test_a_comparison_keeps_to_its_schema(threefold: Comparison) -> None:
    schema = comparison_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(render_comparison_json(threefold)), schema)
    again = Comparison.model_validate_json(render_comparison_json(threefold))
    assert again == threefold


def test_every_standing_is_in_the_table_and_in_the_markdown(threefold: Comparison) -> None:
    for text in (
        render_comparison_table(threefold),
        render_comparison_markdown(threefold),
    ):
        for item in threefold.compared:
            assert f"{item.subject} {item.figure}" in text
        assert text.count("best") >= len(threefold.compared)


def test_runs_that_measured_nothing_are_compared_without_a_claim(tmp_path: Path) -> None:
    run = make_run(targets=(make_target(), make_target(1, "nfs")))
    found = compare([load(RunWriter(tmp_path).write(run))])
    assert found.compared == ()
    assert "nothing" in found.headline[0]
    assert "nothing was measured" in render_comparison_table(found)


def test_resampling_centres_on_what_was_measured(tmp_path: Path) -> None:
    found = read_distributions(load(write_run(tmp_path / "run", [1e6])))[0, "transaction", "page"]
    drawn = resample(found, (50.0, 95.0, None), Draw(1))
    assert np.median(drawn.values, axis=0) == pytest.approx(drawn.plain, rel=0.05)
    assert drawn.plain[0] == pytest.approx(1e6, rel=0.05)
    assert drawn.plain[2] == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
def test_the_command_prints_each_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    folder = write_run(tmp_path / "run", [1e6, 3e6])
    assert main(["compare", str(folder), "--format", form]) == 0
    said = capsys.readouterr().out
    assert "t1" in said
    assert ("| page p50 |" in said) == (form == "markdown")


def test_the_command_refuses_with_exit_code_2(
    unlike: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, unlike)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert main(["compare", "--different-plans", *map(str, unlike)]) == 0
