"""The shipped studies: their jobs, their published figures, ranks and ratios."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.fio.amounts import bytes_needed, seconds_needed
from replayer.fio.jobs import load_jobs, shipped_jobs
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.report.style import Style
from replayer.scenario.loading import load_scenario
from replayer.scenario.shipped import shipped_folder
from replayer.study.flow import (
    QUICK_S,
    QUICK_SHARE,
    TURN_S,
    StudyOptions,
    announce,
    further_words,
    step_length,
    step_words,
)
from replayer.study.model import StudyStep, TableColumn, load_studies, load_study
from replayer.study.results import Filled, Measured, fill_tables
from replayer.study.table import render_study
from replayer.verdict.judgement import judge
from tests.unit.runs import RunWriter, make_load, make_run

LETTERS = ["A", "B", "C", "D", "E"]
MINUTES = 10


def tables(letter: str) -> dict[str, Filled]:
    return {table.title: table for table in fill_tables(load_study(letter), {})}


def ranks(table: Filled) -> list[tuple[int | None, str]]:
    return [(row.rank, row.target) for row in table.rows]


def test_there_are_the_five_studies() -> None:
    assert [study.letter for study in load_studies()] == LETTERS


@pytest.mark.parametrize("letter", LETTERS)
def test_a_study_is_found_by_letter_and_by_name(letter: str) -> None:
    study = load_study(letter)
    assert load_study(letter.lower()) == study
    assert load_study(study.name) == study


@pytest.mark.parametrize("letter", LETTERS)
def test_the_fio_jobs_of_a_study_are_shipped(letter: str) -> None:
    jobs = {step.fio for step in load_study(letter).steps.values() if step.fio is not None}
    assert jobs <= {*shipped_jobs()}


@pytest.mark.parametrize("name", [*shipped_jobs()])
def test_a_shipped_job_passes_its_checks_and_ends_by_time(name: str) -> None:
    (file,) = load_jobs([name])
    assert [section.name for section in file.sections] == [name]
    assert seconds_needed(file) == 60
    assert bytes_needed(file) > 0


@pytest.mark.parametrize("letter", LETTERS)
def test_the_list_of_studies_names_the_steps_of_each(letter: str) -> None:
    text = (shipped_folder() / "studies/README.md").read_text()
    (row,) = re.findall(rf"^\| {letter} \|(.*)\|$", text, re.MULTILINE)
    jobs = {step.job for step in load_study(letter).steps.values()}
    assert set(re.findall(r"`(.+?)`", row)) == {load_study(letter).name, *jobs}


def test_the_ranks_of_study_a_are_the_published_ones() -> None:
    cache, _, upload = tables("A").values()
    assert ranks(cache) == [(1, "FSx for OpenZFS"), (2, "EBS gp3"), (3, "EFS")]
    assert ranks(upload) == [(1, "EFS"), (2, "FSx for OpenZFS"), (3, "EBS gp3")]
    assert list(cache.rows[0].values) == [84.2, 20600, 36.1, 8823, 29423]
    assert list(upload.rows[0].values)[:2] == [512, 488]


def test_the_ratios_of_study_c_are_the_published_ones() -> None:
    (table,) = tables("C").values()
    said = {row.target: row.says for row in table.rows if row.says is not None}
    assert said == {
        "ObjectiveFS cold": "1x",
        "ObjectiveFS warm disk cache": "13x",
        "ObjectiveFS warm memory cache": "81x",
    }
    also = {row.target: row.says_also for row in table.rows if row.says_also}
    assert also == {
        "ObjectiveFS cold": {"read MB/s": "3x", "untar MB/s": "69x"},
        "ObjectiveFS warm disk cache": {"read MB/s": "18x"},
        "ObjectiveFS warm memory cache": {"read MB/s": "129x"},
    }
    throughputs = {row.target: row.ratios.get("read MB/s") for row in table.rows}
    assert throughputs["ObjectiveFS warm memory cache"] == pytest.approx(129)
    text = render_study(load_study("C"), (table,), None, style=Style(width=200))
    assert re.search(r"warm memory cache +1 +< 1 +387 \(129x\)", text)
    ratios = {row.target: row.ratio for row in table.rows}
    assert ratios["EFS"] == 1
    assert ratios["ObjectiveFS warm disk cache"] == pytest.approx(13.5)
    assert ratios["ObjectiveFS warm memory cache"] == pytest.approx(81)


def test_the_ratios_of_study_c_are_told_from_what_was_not_rounded() -> None:
    """22 MB/s were published as 69 times EFS's, whose 726 MB in 2,283 s stand there as 0.3."""
    (table,) = tables("C").values()
    ratios = {row.target: row.ratios.get("untar MB/s") for row in table.rows}
    assert ratios["EFS"] == 1
    assert ratios["ObjectiveFS cold"] == pytest.approx(69, abs=0.5)


def test_the_rates_of_study_b_are_those_of_its_operations() -> None:
    for row in next(iter(tables("B").values())).rows:
        large, large_mib, small, small_mib = (value or 0.0 for value in row.values)
        assert large_mib == pytest.approx(large, rel=0.02)
        assert small_mib == pytest.approx(small * 4 / 1024, rel=0.04)


def test_a_target_of_ones_own_as_quick_as_a_published_one_has_its_figures(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    tag = "0/0/measured/write-1m-sync"
    writer.transaction("write-1m-sync", [10**6] * 360)
    writer.record(f"{tag}/write/ok/expected", [10**6] * 360, moved=360 * 2**20)
    record = load_run(writer.write(make_run(load=make_load(order="in turn"))))
    summary = summarise(record)
    measured = {"write-1m-sync": Measured(0, record, summary, judge(record, summary))}
    table, *_ = fill_tables(load_study("B"), measured)
    (own,) = (row for row in table.rows if not row.published)
    (theirs,) = (row for row in table.rows if row.target == "FSx ZFS async, 960 IOPS 320 MB/s")
    assert own.values[:2] == pytest.approx(theirs.values[:2])


def test_study_d_has_every_published_figure_of_niftys_added_disks() -> None:
    (table,) = tables("D").values()
    rows = {row.target: row.values for row in table.rows}
    assert [*rows["AWS gp2"]] == [3_110, 3_110, 1_555], "reads and writes together have one figure"
    kinds = ("flash", "high-speed A", "high-speed B", "standard")
    published = {
        "east-11": "76348 48279 27237 34505 55289 20424 59570 57537 23405 53887 23158 17783",
        "east-14": "27409 16566 9935 67595 46045 58132 36714 48559 12965 53887 23158 17783",
    }
    for zone, figures in published.items():
        found = [value for kind in kinds for value in rows[f"NIFTY {zone}, {kind}"]]
        assert found == [*map(float, figures.split())]
    assert any(
        "standard disk" in note and "perhaps a copy" in note for note in load_study("D").notes
    )


@pytest.mark.parametrize(
    ("letter", "said"),
    [
        ("C", "726 MB, the files of the tree, in 33 s are the published 22"),
        ("C", "762 MB is what untar wrote: in 33 s it would be 23"),
        ("D", "one figure for reads and writes together"),
        ("D", "ioscheduler=noop, which changes a device for all that use it: it is left out"),
        ("E", "55 files, which are 1 to 10 files once. The source repeated that ten times"),
    ],
)
def test_a_study_says_where_it_differs_from_its_source(letter: str, said: str) -> None:
    study = load_study(letter)
    text = " ".join(render_study(study, fill_tables(study, {}), None).split())
    assert said in text


def test_study_e_streams_one_gigabyte_and_may_take_as_long_as_the_published_slow_one() -> None:
    study = load_study("E")
    step = study.steps["stream-burst"]
    assert "transactions.stream.1.write.size=1GB" in step.full
    rates = {row.target: row.values[-1] for row in tables("E")["Mean time of a file"].rows}
    assert rates == {"EBS": 1_000 / 2, "EFS": 1_000 / 10}
    assert step.turn_s is not None
    assert step.turn_s > 326 * 10 + 4_019
    assert step.turn_s > 2_000 * 10, "all its streams end at the usual speed"


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_table_of_a_study_lacks_no_column_and_compares_by_its_key_at_once(
    letter: str, width: int
) -> None:
    study = load_study(letter)
    for table in fill_tables(study, {}):
        if not table.rows:
            continue
        text = render_study(study, (table,), None, style=Style(width=width))
        heads = [line for line in text.splitlines() if line.startswith("target ")]
        assert all(any(title in head for head in heads) for title in table.columns)
        assert table.ranked_by is not None
        assert table.ranked_by in heads[0]
        assert all("writes are in" in heads[0] for row in table.rows[:1] if row.stored)
        assert max(map(len, heads)) <= width


def test_the_ratio_of_study_e_is_the_published_one() -> None:
    first = next(iter(tables("E").values()))
    (efs,) = (row for row in first.rows if row.target == "EFS")
    assert efs.ratio is not None
    assert 1 / efs.ratio == pytest.approx(35.3, abs=0.1)
    assert efs.says == "1/35"


@pytest.mark.parametrize("letter", LETTERS)
def test_a_study_is_shown_without_a_target(letter: str) -> None:
    study = load_study(letter)
    text = render_study(study, fill_tables(study, {}), None)
    assert study.title in text
    assert study.source in text


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("targets", [1, 2, 5])
def test_a_quick_study_measures_for_less_than_it_may_take(letter: str, targets: int) -> None:
    study = load_study(letter)
    terms = StudyOptions(("t",) * targets, quick=True, rounds=None, steps=len(study.steps))
    seconds = [step_length(step, terms).most_s or 0.0 for step in study.steps.values()]
    assert min(seconds) > 0
    assert sum(seconds) + TURN_S * targets * len(seconds) <= QUICK_S * QUICK_SHARE


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("quick", [True, False])
def test_what_a_table_names_is_in_what_its_step_runs(letter: str, *, quick: bool) -> None:
    study = load_study(letter)
    terms = StudyOptions(("t",), quick=quick, rounds=None, steps=len(study.steps))
    for table in study.tables:
        places = [variant.steps for variant in table.variants] or [
            {column.step: column.step for column in table.columns}
        ]
        for column in table.columns:
            for step in filter(None, (place.get(column.step) for place in places)):
                assert named_by(column, study.steps[step], terms), (column.title, step)


def named_by(column: TableColumn, step: StudyStep, terms: StudyOptions) -> bool:
    """Whether a step runs what a column names; a column that names nothing takes what there is."""
    name = (column.of or "").partition("/")[0]
    if step.fio is not None:
        (file,) = load_jobs([step.fio])
        return name in {section.name for section in file.sections}
    words = further_words(step, terms)
    changes = [value for option, value in pairwise(words) if option == "--set"]
    mix = load_scenario(step.job, changes).mix
    return name in {each for each, weight in mix.items() if weight}


def test_a_quick_study_has_as_many_rounds_as_decide_where_each_may_last_a_second() -> None:
    study = load_study("A")
    terms = StudyOptions(("a=/a", "b=/b"), quick=True, rounds=None, steps=len(study.steps))
    step = next(each for each in study.steps.values() if each.fio is not None)
    for seconds, words in (
        (2, ["--rounds=2", "--runtime=1s"]),
        (7, ["--rounds=3", "--runtime=2s"]),
    ):
        found = step_words(step, replace(terms, seconds=seconds), Path("folder"))
        assert [w for w in found if w.startswith(("--rounds", "--runtime"))] == words[::-1]


def test_the_full_study_says_how_long_it_takes_and_how_much_longer_a_cliff_may_make_it() -> None:
    terms = StudyOptions(("t",), quick=False, rounds=None, steps=5)
    assert announce(load_study("D"), terms) == "3 min, plus the time to lay out files"
    # Two and six hours at most for the step that may take them, minutes for the others.
    for letter, longest in (("C", 120), ("E", 360)):
        least, most = map(int, re.findall(r"\d+", announce(load_study(letter), terms)))
        assert least <= MINUTES < longest < most <= longest + MINUTES


@pytest.mark.parametrize(
    ("letter", "name", "words"),
    [
        ("C", "kernel-untar", ["--rounds=3", "--run-time=21600s"]),  # one untar a turn, of 2 h
        ("E", "stream-burst", ["--rounds=1", "--run-time=21600s"]),  # the cliff comes once
        ("E", "write-1mb-files", ["--rounds=3"]),
    ],
)
def test_what_takes_hours_has_them_however_many_targets_there_are(
    letter: str, name: str, words: list[str]
) -> None:
    terms = StudyOptions(("a=/a", "b=/b"), quick=False, rounds=None, steps=5)
    step = load_study(letter).steps[name]
    found = step_words(step, terms, Path("folder"))
    assert sorted(w for w in found if w.startswith(("--rounds", "--run-time"))) == words
    if step.turn_s is not None:
        seconds = sum(int(w.removeprefix("--run-time=")[:-1]) for w in words[1:])
        assert step_length(step, terms).most_s == 2 * seconds
    quick = step_words(step, replace(terms, quick=True), Path("folder"))
    assert f"--rounds={1 if '--rounds=1' in words else 3}" in quick
    assert not [w for w in quick if w.endswith("21600s")]


def test_the_time_of_a_whole_is_told_from_the_rate_of_its_parts() -> None:
    column = TableColumn(title="s", step="x", figure="time_of_all", all=1000, unit="s")
    with pytest.raises(ValueError, match="time_of_all needs all"):
        column.model_validate({**column.model_dump(), "all": None})


def test_an_unknown_study_is_refused_with_the_nearest() -> None:
    with pytest.raises(ReplayerError) as refusal:
        load_study("cloud-iop")
    assert "did you mean 'cloud-iops'?" in refusal.value.hint
