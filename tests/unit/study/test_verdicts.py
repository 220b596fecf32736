"""What steps prove stands beside their figures, and in the study's exit code."""

from pathlib import Path
from typing import Any

import pytest

from replayer.report.first_screen import LINES
from replayer.report.style import Style
from replayer.study.flow import exit_code_of
from replayer.study.journal import Attempt, Journal
from replayer.study.model import Study
from replayer.study.results import (
    ResultRow,
    fill_tables,
    find_evidence,
    find_verdicts,
    load_measured,
)
from replayer.study.table import Remarks, render_study, render_study_screen
from tests.unit.runs import RunWriter, make_health, make_run, make_target
from tests.unit.study.states import make_state

STUDY: dict[str, Any] = {
    "letter": "Z",
    "name": "own",
    "title": "A study of one's own",
    "source": "this test",
    "conditions": [],
    "steps": {"writes": {"scenario": "small-reads"}, "other": {"scenario": "small-reads"}},
    "tables": [
        {
            "title": "Writes",
            "columns": [
                {"title": "µs", "step": "writes", "of": "a", "figure": "mean", "unit": "µs"}
            ],
            "rank": {"column": "µs", "better": "lower"},
            "published": [{"target": "theirs", "values": [150]}],
        },
        {"title": "Other", "each": "other"},
    ],
}
SECONDS = 4  # of a round
SATURATED = make_health(run_queue_delay_ns=500)


def make_study(*, tables: int = 2) -> Study:
    return Study.model_validate({**STUDY, "tables": STUDY["tables"][:tables]})


def make_journal(path: Path, **codes: int | None) -> Journal:
    attempts: dict[str, tuple[Attempt, ...]] = {
        step: (Attempt(folder=f"{step}-1", done=code in {0, 1, 4}, code=code),)
        for step, code in codes.items()
    }
    return Journal(path, make_state("own", attempts=attempts))


def write_step(path: Path, rounds: dict[int, list[int]], **changes: object) -> None:
    """Write a run folder in which each target took so many microseconds in each round."""
    writer = RunWriter(path)
    for target, each in rounds.items():
        for number, took_us in enumerate(each):
            for second in range(SECONDS):
                begin = float((len(rounds) * number + target) * SECONDS + second)  # in turns
                samples = [took_us * (1000 + second) + extra for extra in range(30)]
                writer.transaction("a", samples, f"{target}/{number}", (begin, begin + 1))
                writer.call("a", f"{target}/{number}", (begin, begin + 1))
    targets = tuple(make_target(index, f"t{index}") for index in rounds)
    writer.write(make_run(targets=targets, **changes))


def shown(study: Study, journal: Journal) -> str:
    steps = load_measured(study, journal)
    remarks = Remarks(find_verdicts(steps))
    return render_study(study, fill_tables(study, steps), journal, remarks)


def own_rows(journal: Journal) -> dict[str, ResultRow]:
    study = make_study()
    table = fill_tables(study, load_measured(study, journal))[0]
    return {row.target: row for row in table.rows if not row.published}


def test_the_longest_that_never_ended_is_shown_as_a_bound(tmp_path: Path) -> None:
    column = {"title": "slowest s", "step": "writes", "of": "a", "figure": "max", "unit": "s"}
    table = {**STUDY["tables"][0], "columns": [*STUDY["tables"][0]["columns"], column]}
    table["published"] = [{"target": "theirs", "values": [150, 4019]}]
    study = Study.model_validate({**STUDY, "tables": [table, STUDY["tables"][1]]})
    for step in ("writes", "other"):
        writer = RunWriter(tmp_path / f"{step}-1")
        writer.transaction("a", [10**10] * 30, "0/0")
        writer.record("0/0/measured/a/transaction/cancelled/expected", [3_267 * 10**9])
        writer.record("1/0/measured/a/transaction/cancelled/expected", [2_000 * 10**9])
        writer.write(make_run(targets=(make_target(0, "t0"), make_target(1, "t1"))))
    journal = make_journal(tmp_path, writes=0, other=0)
    rows = {row.target: row for row in fill_tables(study, load_measured(study, journal))[0].rows}
    assert rows["t0"].at_least == rows["t1"].at_least == ("slowest s",)
    assert rows["theirs"].at_least == ()
    mean, slowest = rows["t1"].values
    assert mean is None, "none has ended there"
    assert slowest == pytest.approx(2_000, rel=0.001)
    text = shown(study, journal)
    bound = "\N{GREATER-THAN OR EQUAL TO} "
    assert f"{bound}3,26" in text
    assert text.count(bound) == 4, "of each target, in both tables"


def test_a_saturated_client_is_named_under_the_table_of_its_figures(tmp_path: Path) -> None:
    write_step(tmp_path / "writes-1", {0: [100]}, health=SATURATED)
    write_step(tmp_path / "other-1", {0: [100]})
    study, journal = make_study(), make_journal(tmp_path, writes=4, other=0)
    first, second = fill_tables(study, load_measured(study, journal))
    (said,) = first.against
    assert (said.step, said.outcome) == ("writes", "inconclusive")
    assert "the client was saturated" in said.reasons[0]
    assert second.against == ()
    lines = shown(study, journal).splitlines()
    place = next(n for n, line in enumerate(lines) if "INCONCLUSIVE  writes: the client" in line)
    assert lines.index("Writes") < place < lines.index("Other")


def test_a_missed_limit_is_named_with_its_figure(tmp_path: Path) -> None:
    limit = {"text": "errors > 0", "source": "own.yaml:3"}
    write_step(tmp_path / "other-1", {0: [100]}, thresholds=(limit,))
    text = shown(make_study(), make_journal(tmp_path, other=1))
    assert "FAIL  other: errors > 0: 0  (own.yaml:3)" in text


def test_a_step_in_no_table_is_named_too(tmp_path: Path) -> None:
    write_step(tmp_path / "other-1", {0: [100]}, health=SATURATED)
    text = shown(make_study(tables=1), make_journal(tmp_path, other=4))
    assert "INCONCLUSIVE  other: the client was saturated" in text


@pytest.mark.parametrize(
    ("rounds", "differs", "says"),
    [
        ({0: [100], 1: [200]}, None, "not enough measured to decide: t1"),
        ({0: [100, 110, 120], 1: [200, 210, 115]}, False, "no difference shown: t1"),
        ({0: [100, 110, 120], 1: [130, 125, 122]}, False, "no difference shown: t1"),
        ({0: [100, 110, 120], 1: [200, 210, 190]}, True, "differs: t1"),
    ],
)
def test_a_difference_between_targets_is_claimed_as_comparisons_claim_it(
    tmp_path: Path, rounds: dict[int, list[int]], says: str, *, differs: bool | None
) -> None:
    write_step(tmp_path / "writes-1", rounds)
    journal = make_journal(tmp_path, writes=0)
    rows = own_rows(journal)
    assert (rows["t0"].differs, rows["t1"].differs) == (None, differs)
    assert f"  among yours: t0 is best; {says}\n" in shown(make_study(), journal)


def test_only_targets_of_one_step_share_the_rounds_that_are_drawn(tmp_path: Path) -> None:
    for step in ("writes", "other"):
        write_step(tmp_path / f"{step}-1", {0: [100, 200, 300], 1: [100, 200, 300]})
    study = make_study()
    measured = load_measured(study, make_journal(tmp_path, writes=0, other=0))
    (column,) = study.tables[0].columns
    drawn = {
        (step, target.index): evidence.resampled.values
        for step, found in measured.items()
        for target in found.summary.targets
        if (evidence := find_evidence(column, found, target, ())).resampled is not None
    }
    assert drawn["writes", 0] == pytest.approx(drawn["writes", 1], rel=0.01)
    assert drawn["writes", 0] != pytest.approx(drawn["other", 0], rel=0.01)


def test_of_many_targets_of_ones_own_less_is_claimed_than_of_two(tmp_path: Path) -> None:
    """As in comparisons: chance has more of them to make one look different."""
    two = {0: [100, 110, 105], 1: [112, 130, 115]}
    write_step(tmp_path / "two/writes-1", two)
    assert own_rows(make_journal(tmp_path / "two", writes=0))["t1"].differs
    others = {index: [110, 101, 107] for index in range(2, 10)}
    write_step(tmp_path / "ten/writes-1", two | others)
    assert not own_rows(make_journal(tmp_path / "ten", writes=0))["t1"].differs


def test_one_target_of_ones_own_is_compared_with_none(tmp_path: Path) -> None:
    write_step(tmp_path / "writes-1", {0: [100]})
    journal = make_journal(tmp_path, writes=0)
    assert own_rows(journal)["t0"].differs is None
    assert "among yours" not in shown(make_study(), journal)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ({"writes": 0, "other": 0}, 0),
        ({"writes": 4, "other": 0}, 4),
        ({"writes": 4, "other": 1}, 1),
        ({"writes": 3, "other": 1}, 3),
        ({"writes": -9, "other": 0}, 4),
        ({"writes": 0, "other": None}, 4),
        ({"writes": 0}, 4),
    ],
)
def test_the_exit_code_of_a_study_is_that_of_its_weightiest_step(
    tmp_path: Path, codes: dict[str, int | None], expected: int
) -> None:
    assert exit_code_of(make_study(), make_journal(tmp_path, **codes)) == expected


def screen(journal: Journal, study: Study | None = None) -> list[str]:
    study = study or make_study()
    steps = load_measured(study, journal)
    remarks = Remarks(find_verdicts(steps))
    text = render_study_screen(study, fill_tables(study, steps), journal, remarks, Style(80))
    return text.splitlines()


@pytest.mark.parametrize(
    ("rounds", "sentence"),
    [
        (
            {0: [100, 110, 120], 1: [200, 210, 190]},
            "Use t0: by µs, t1 is 1.82 times worse (1.27 to 2.35; 95 %)",
        ),
        (
            {0: [100, 110, 120], 1: [130, 125, 122]},
            "No difference is shown by µs between t0 and t1",
        ),
        (
            {0: [100], 1: [200]},
            "Cannot be decided by µs: that takes 3 rounds, and fewer were measured",
        ),
        ({0: [200]}, "By µs, t0 (200) is 2 of 2, behind theirs (150)"),
    ],
)
def test_the_first_screen_says_which_target_to_use(
    tmp_path: Path, rounds: dict[int, list[int]], sentence: str
) -> None:
    write_step(tmp_path / "writes-1", rounds)
    write_step(tmp_path / "other-1", {0: [100]})
    lines = screen(make_journal(tmp_path, writes=0, other=0))
    assert lines[0].startswith("PASS  study Z (own): 2 of 2 steps can be trusted")
    assert sentence in lines
    assert lines[-1].endswith("--details")


def test_the_first_screen_of_a_study_says_why_it_proves_nothing(tmp_path: Path) -> None:
    rounds = {target: [100, 110, 120] for target in range(4)}
    write_step(tmp_path / "writes-1", rounds, health=SATURATED)
    lines = screen(make_journal(tmp_path, writes=4))
    assert lines[0] == "INCONCLUSIVE  study Z (own): 0 of 2 steps can be trusted  (exit code 4)"
    assert lines[1].startswith("  because     writes: inconclusive: the client was saturated")
    assert any("other: not run" in line for line in lines)
    assert (
        "  next        use a client with more CPUs, and nothing beside it; then: replayer" in lines
    )
    assert any(line.startswith("Cannot be decided here by µs: the client was") for line in lines)
    assert len(lines) <= LINES
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80


def test_a_study_that_was_interrupted_says_how_it_goes_on(tmp_path: Path) -> None:
    write_step(tmp_path / "writes-1", {0: [100]}, status="interrupted")
    attempt = Attempt(folder="writes-1", done=False, says="interrupted")
    journal = Journal(tmp_path, make_state("own", attempts={"writes": (attempt,)}))
    said = " ".join(" ".join(screen(journal)).split())
    assert (
        f"next some steps are not done; continue with: replayer study --resume {tmp_path}" in said
    )
