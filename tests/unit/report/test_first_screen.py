"""The first screen: it decides, fits a terminal, and says why where it does not decide."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from replayer.measure.neighbour import Neighbour
from replayer.measure.run import StatedThreshold
from replayer.report.comparing import compare
from replayer.report.composition import compose
from replayer.report.first_screen import LINES, render_comparison_screen, render_first_screen
from replayer.report.style import Style
from tests.unit.report.contenders import load, write_run
from tests.unit.report.test_mixes import Mix, write_mix
from tests.unit.runs import RunWriter, make_health, make_run, make_target
from tests.unit.verdict.test_steadiness import BURST, CLIFF, run_of

SCREEN = Style(width=80)
PAGES: Mix = [("static", 1e6, 55), ("page", 9e6, 30), ("search", 30e6, 10), ("admin", 60e6, 5)]
BUSY = make_health(
    client_cpu_share=0.05,
    others_cpu_share=0.9,
    run_queue_delay_ns=5 * 10**9,
    in_call_ns=10 * 10**9,
)


def slowed(mix: Mix, times: float) -> Mix:
    return [(name, level * times, calls) for name, level, calls in mix]


def screen_of(folder: Path) -> list[str]:
    text = render_first_screen(compose(load(folder)), SCREEN)
    lines = text.splitlines()
    assert len(lines) <= LINES, text
    assert max(len(line) for line in lines if str(folder) not in line) <= 80, text
    return lines


def answer_of(mixes: Sequence[Mix], folder: Path) -> tuple[str, ...]:
    return compose(load(write_mix(folder, mixes))).answer


def test_a_screen_names_the_target_to_use_and_how_sure_that_is(tmp_path: Path) -> None:
    lines = screen_of(write_mix(tmp_path / "run", [slowed(PAGES, 2), PAGES]))
    (told,) = (line for line in lines if line.startswith("Use "))
    assert told.startswith("Use t1: transactions take ")
    assert " times as long on t0 (" in told
    assert told.endswith("; 95 %)")
    assert any(line.split()[-1] == "best" for line in lines if line.startswith("  t1"))


def test_without_a_difference_it_says_which_would_have_been_noticed(tmp_path: Path) -> None:
    (told,) = answer_of([PAGES, PAGES], tmp_path / "run")
    assert told.startswith("no difference is shown between t0 and t1: one above ")
    assert float(told.split("above ")[1].split(" %")[0]) < 30


def test_a_transaction_that_differs_alone_is_told_beside_all_of_them(tmp_path: Path) -> None:
    rare = [("common", 1e6, 60), ("rare", 1e6, 2)]
    same, other = answer_of([rare, [rare[0], ("rare", 5e6, 2)]], tmp_path / "run")
    assert same.startswith("no difference is shown between ")
    assert re.match(r"but rare takes [45]\.\d\d times as long on t1 \(", other)


def test_slow_transactions_may_decide_alone_or_otherwise(tmp_path: Path) -> None:
    """One target is quick for most of them, the other for those that take long."""
    few = [("quick", 1e6, 60), ("slow", 100e6, 12)]
    other = [("quick", 3e6, 60), ("slow", 30e6, 12)]
    median, slow = answer_of([few, other], tmp_path / "run")
    assert median.startswith("use t0: ")
    assert slow.startswith("but t1 for the slow ones (p95): they take ")


def test_transactions_stand_in_the_order_of_their_weight(tmp_path: Path) -> None:
    lines = screen_of(write_mix(tmp_path / "run", [PAGES, PAGES]))
    titles = [line.partition(":")[0] for line in lines if line.endswith(" %")]
    assert titles == ["static", "page", "search"]


@pytest.mark.parametrize("targets", [1, 2, 3, 4])
def test_up_to_four_targets_fit_whatever_there_is_to_say(tmp_path: Path, targets: int) -> None:
    mixes = [slowed(PAGES, 1 + place) for place in range(targets)]
    folder = write_mix(tmp_path / ("a_long_name" * 6) / "run", mixes)
    document = compose(load(folder))
    busy = document.model_copy(
        update={"warnings": [w for w in document.warnings for _ in range(3)]}
    )
    assert len(render_first_screen(busy, SCREEN).splitlines()) <= LINES
    lines = screen_of(folder)
    assert lines[-1].strip().endswith("--details")
    assert sum(line.startswith("  t") for line in lines) >= (4 * targets if targets > 1 else 0)


def test_a_client_that_others_kept_busy_decides_nothing(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    for target in (0, 1):
        writer.transaction("page", [10**6] * 40, f"{target}/0")
    run = make_run(targets=(make_target(), make_target(1, "nfs")), health=BUSY)
    document = compose(load(writer.write(run)))
    assert document.answer == ("cannot be decided here: other programs used 90 % of the CPUs",)
    text = render_first_screen(document, SCREEN)
    assert text.startswith("INCONCLUSIVE")
    assert "(exit code 4)" in text.splitlines()[0]
    assert "  because     the client was saturated by other programs" in text


def test_a_neighbour_is_no_other_program(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.transaction("page", [10**6] * 40, "0/0")
    neighbour = Neighbour(name="uploads", scenario="uploads", rate_per_s=None, pairs=())
    document = compose(load(writer.write(make_run(health=BUSY, neighbour=neighbour))))
    says = "cannot be decided here: the neighbour and other programs used 90 % of the CPUs"
    assert document.answer == (says,)


@pytest.mark.parametrize(("times", "is_told"), [(1.5, False), (6.0, True)])
def test_what_a_busy_client_cannot_explain_is_told_even_so(
    tmp_path: Path, times: float, *, is_told: bool
) -> None:
    folder = write_mix(tmp_path / "run", [PAGES, slowed(PAGES, times)])
    run = load(folder).run.model_copy(update={"health": BUSY})
    (folder / "run.json").write_text(run.model_dump_json())
    document = compose(load(folder))
    first, *more = document.answer
    assert first == "cannot be decided here: other programs used 90 % of the CPUs"
    assert len(more) == is_told
    said = "but the client cannot explain that transactions take "
    assert all(each.startswith(said) for each in more)
    assert document.verdict.outcome == "inconclusive"


def test_only_the_targets_that_keep_all_limits_are_named(tmp_path: Path) -> None:
    folder = write_mix(tmp_path / "run", [PAGES, slowed(PAGES, 3)])
    run = load(folder).run
    limits = [{"text": "page.p95 < 15ms", "source": "here"}]
    writer = {**run.model_dump(), "thresholds": limits}
    (folder / "run.json").write_text(type(run).model_validate(writer).model_dump_json())
    document = compose(load(folder))
    assert document.verdict.outcome == "fail"
    assert document.answer[0] == "only t0 keeps all limits"
    assert any(line.startswith("  failed      page.p95 < 15ms on t1") for line in screen_of(folder))


def test_one_target_has_its_times_in_a_sentence(tmp_path: Path) -> None:
    (told,) = answer_of([PAGES], tmp_path / "run")
    assert told.startswith("half of the transactions take ")
    assert " ms or less, 95 of 100 " in told


def test_a_comparison_fits_a_screen_and_begins_with_the_answer(tmp_path: Path) -> None:
    levels = {"x": 1e6, "y": 3e6}
    records = [load(write_run(tmp_path / name, [level])) for name, level in levels.items()]
    lines = render_comparison_screen(compare(records), SCREEN).splitlines()
    assert re.match(r"Use x/t0: transactions take [23]\.\d\d times as long on y/t0 \(", lines[0])
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= 80


def test_users_who_think_have_no_rate_that_ranks(tmp_path: Path) -> None:
    folder = write_mix(tmp_path / "run", [PAGES, PAGES])
    rates = [each for each in compose(load(folder)).ranking if each.figure == "throughput"]
    assert rates
    plan = '{"pace": {"kind": "closed", "think": {"uniform": [0, 2000000000]}}}'
    (folder / "plan.json").write_text(plan)
    document = compose(load(folder))
    assert document.think_time
    assert not any(each.figure == "throughput" for each in document.ranking)
    assert "per s" not in render_first_screen(document, SCREEN)


def test_where_nothing_was_measured_no_room_is_left_for_figures(tmp_path: Path) -> None:
    lines = screen_of(write_run(tmp_path / "run", [1e6], rounds=0))
    assert ("", "") not in pairwise(lines), lines


@pytest.mark.parametrize(
    ("levels", "thresholds", "is_told"),
    [
        (CLIFF, (), True),
        (CLIFF, ("cliff == 0",), False),
        (CLIFF, ("page.cliff <= 1",), False),
        (CLIFF, ("gone.cliff == 0",), True),
        (CLIFF, ("nfs:cliff == 0",), True),
        (BURST, (), False),
        (CLIFF[::-1], (), False),
    ],
)
def test_a_run_that_ends_in_a_cliff_warns_in_a_line_unless_that_is_judged(
    tmp_path: Path, levels: Sequence[float], thresholds: Sequence[str], *, is_told: bool
) -> None:
    writer = run_of(tmp_path, page=levels)
    stated = tuple(StatedThreshold(text=text, source="--threshold") for text in thresholds)
    lines = screen_of(writer.write(make_run(thresholds=stated)))
    factor = "\N{MULTIPLICATION SIGN}4.01"
    told = f"  warning     local ends in a cliff (page {factor}); 'cliff == 0' would fail it"
    assert [line for line in lines if "ends in a cliff" in line] == [told] * is_told
