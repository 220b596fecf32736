"""Runs are listed, found by many names, kept under one, and watched for changes."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from replayer.cli import main
from replayer.measure.history import find_run, keep_run, kept_runs
from replayer.measure.run import Headline
from tests.unit.runs import RunWriter, make_run

IDS = ("20261120T080000-aaaa", "20261121T080000-abcd", "20261121T090000-ab12")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("replayer-runs")


def write_runs(folder: Path, names: Sequence[str], medians_us: Sequence[int] = ()) -> None:
    medians = [*medians_us, *(100 for _ in names[len(medians_us) :])]
    for name, median in zip(names, medians, strict=True):
        writer = RunWriter(folder / name)
        for second in range(4):
            samples = [median * 1000 + extra for extra in range(30)]
            writer.transaction("save", samples, "0/0", (second, second + 1))
        headline = Headline(
            target="disk", what="save", p50_ns=median * 1000.0, p95_ns=median * 1000.0
        )
        writer.write(make_run(id=name, status="finished", verdict="pass", headlines=(headline,)))


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("latest", 2),
        ("latest~1", 1),
        ("latest~2", 0),
        ("20261120", 0),
        ("20261121T08", 1),
        (IDS[2], 2),
        (f"replayer-runs/{IDS[1]}", 1),
        ("before", 0),
    ],
)
def test_a_run_has_many_names(here: Path, word: str, place: int) -> None:
    write_runs(here, IDS)
    keep_run("before", (here / IDS[0]).absolute())
    assert find_run(word).resolve() == (here / IDS[place]).resolve()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("latest~3", "latest~3: replayer-runs holds 3 runs"),
        ("20261121", f"2 runs in replayer-runs begin like this\nhint: write more of it: {IDS[2]}"),
        ("nothing", "nothing: no run has that name"),
    ],
)
def test_what_names_no_run_is_refused(
    here: Path, word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(here, IDS)
    assert main(["report", word]) == 2
    assert said in capsys.readouterr().err


def test_runs_are_listed_newest_first_with_verdict_and_median(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(here, IDS, [100, 200, 300])
    (here / "not-a-run").mkdir()
    assert main(["runs", "keep", "good", "latest~1"]) == 0
    assert main(["runs"]) == 0
    said, title, *lines = capsys.readouterr().out.splitlines()
    assert said == f"good is {IDS[1]}"
    assert title.split()[0] == "run"
    assert [line.split()[0] for line in lines] == [*reversed(IDS)]
    assert "disk 300 µs" in lines[0]
    assert "pass" in lines[0]
    assert [line.endswith("good") for line in lines] == [False, True, False]


def test_a_name_can_be_given_to_another_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(here, IDS)
    assert main(["runs", "keep", "good", IDS[0]]) == 0
    assert main(["runs", "keep", "good", "latest"]) == 0
    assert f"good is {IDS[2]} (before: {IDS[0]})" in capsys.readouterr().out
    assert {name: path.resolve() for name, path in kept_runs().items()} == {
        "good": (here / IDS[2]).resolve()
    }


def test_a_name_is_forgotten_and_its_run_stays(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(here, IDS)
    for name in ("good", "better"):
        assert main(["runs", "keep", name, IDS[0]]) == 0
    assert main(["runs", "forget", "good"]) == 0
    assert f"good was {IDS[0]}, which stays" in capsys.readouterr().out
    assert [*kept_runs()] == ["better"]
    assert (here / IDS[0] / "run.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["forget", "good"], "good: no run is kept under that name"),
        (["forget"], "replayer runs forget: not understood"),
        (["keep", "latest", IDS[0]], "'latest' cannot name a run"),
        (["keep", "../x", IDS[0]], "'../x' cannot name a run"),
        (["keep", "good"], "replayer runs keep good: not understood"),
        (["drop", "good", IDS[0]], "replayer runs drop good"),
        (["keep", "good", "nothing"], "nothing: no run has that name"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    here: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(here, IDS)
    assert main(["runs", *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == sorted(IDS)


def test_damaged_names_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(here, IDS)
    (here / "kept.json").write_text('{"good": 1}')
    assert main(["runs"]) == 2
    assert "kept.json: the names of kept runs cannot be read" in capsys.readouterr().err


def test_a_change_in_a_series_of_runs_is_told_with_its_size(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"202611{day:02}T080000-aaaa" for day in range(1, 21)]
    medians = [100 + day % 3 for day in range(12)] + [150 + day % 3 for day in range(8)]
    write_runs(here, names, medians)
    assert main(["runs"]) == 0
    out = capsys.readouterr().out
    assert f"on disk: since {names[12]} the median of save is 1.5" in " ".join(out.split())
    assert main(["runs", "--json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert change["since"] == names[12]
    assert change["ratio"] == pytest.approx(1.5, rel=0.02)


def test_a_single_run_is_compared_with_the_one_before_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(here, IDS[:2])
    assert main(["compare", "latest"]) == 0
    out = capsys.readouterr().out
    assert IDS[0] in out
    assert IDS[1] in out
    assert main(["compare", "latest~1"]) == 2
    assert "a comparison needs 2 to 24 targets, got 1" in capsys.readouterr().err
