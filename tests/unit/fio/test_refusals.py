"""What ``replayer baseline`` and ``replayer study`` refuse before anything is made."""

import shutil
from pathlib import Path

import pytest

from replayer.cli import main

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mount").mkdir()
    (tmp_path / "own.fio").write_text("[x]\nrw=read\nsize=1m\n")
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Run the command line and return what it says to a mistake of the user's."""
    assert main([*map(str, words)]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nothing", "--target=mount"), "neither a job file nor a shipped job: nothing"),
        (("uplod", "--target=mount"), "hint: did you mean 'upload'?"),
        (("own.fio",), "--target is missing"),
        (("own.fio", "--target=/dev/shm/../sda"), "/dev"),
        (("own.fio", "--target=mount,."), "fio works through one mount point"),
        (("own.fio", "--target=a=mount", "--target=a=."), "two targets are named 'a'"),
        (("own.fio", "own.fio", "--target=mount"), "two jobs are named 'x'"),
        (("own.fio", "--device=own.fio"), "is not a block device"),
        (
            ("own.fio", "--device=/dev/nosuch"),
            "/dev/nosuch: does not exist\nhint: list the block devices",
        ),
        (
            ("own.fio", "--target=mount", "--i-will-lose-the-data=/dev/vdz"),
            "--i-will-lose-the-data /dev/vdz: is not given with --device",
        ),
        (("own.fio", "--target=mount", "--size=3"), "has no unit"),
        (("own.fio", "--target=mount", "--size=101%"), "at most 100%"),
        (("own.fio", "--target=mount", "--runtime=10ms"), "must be at least 1s"),
        (("own.fio", "--target=mount", "--rounds=0"), "must be a whole number from 1 to 1000"),
        (("own.fio", "--target=mount", "--threshold=y.p50 < 1s"), "there are: x"),
    ],
)
def test_a_baseline_that_cannot_be_meant_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    assert says in refused(capsys, "baseline", *words)
    assert not (home / "replayer-runs").exists()
    assert list((home / "mount").iterdir()) == []


def test_nothing_runs_and_nothing_is_made_when_a_file_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "own.fio").write_text("[x]\nrw=write\nsize=1m\nexec_prerun=touch ran\n")
    said = refused(capsys, "baseline", "own.fio", "--target=mount")
    assert said.startswith("replayer: own.fio:4: exec_prerun is not supported")
    assert sorted(path.name for path in home.iterdir()) == ["mount", "own.fio"]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (
            "rw=nonsense",
            "fio rejects rw=nonsense\nhint: possible: read, write, trim, randread",
        ),
        ("bs=0", "fio rejects bs=0: min value out of range: 0 (1 min)"),
        ("iodepth=0", "iodepth must be from 1 to 65536, got 0"),
        ("buffer_compress_percentage=150", "out of range: 150 (100 max)"),
        ("verify=foo", "fio rejects verify=foo\nhint: possible: 0, md5"),
        ("rwmixread=200", "fio rejects rwmixread=200: max value"),
        ("runtime=90sec", "runtime=90sec: fio would misread this time\nhint: write a whole number"),
        ("ramp_time=1.5s", "ramp_time=1.5s: fio would misread this time"),
        ("startdelay=1s-2min", "startdelay=1s-2min: fio would misread this time"),
    ],
)
@pytest.mark.parametrize("place", ["[global]\n{}\n[x]\nrw=read\n", "[x]\n{}\nsize=1m\n[y]\n"])
def test_a_value_that_fio_does_not_take_is_refused_with_its_line(
    home: Path, capsys: pytest.CaptureFixture[str], option: str, says: str, place: str
) -> None:
    (home / "own.fio").write_text(place.format(option))
    said = refused(capsys, "baseline", "own.fio", "--target=mount")
    assert said.startswith("replayer: own.fio:2: ")
    assert says in said
    assert sorted(path.name for path in home.iterdir()) == ["mount", "own.fio"]


def test_a_share_of_the_free_space_is_divided_among_the_processes(home: Path) -> None:
    from replayer.fio.amounts import bytes_needed  # noqa: PLC0415
    from replayer.fio.baseline import scale_jobs  # noqa: PLC0415
    from replayer.fio.jobs import load_jobs  # noqa: PLC0415
    from replayer.fio.places import UNWATCHED, FolderPlace  # noqa: PLC0415 - needs the engine
    from replayer.fio.run_record import BaselineOrder, Size  # noqa: PLC0415
    from replayer.run.targets import NamedTarget  # noqa: PLC0415

    place = FolderPlace(NamedTarget("mount", (home / "mount",)), UNWATCHED)
    order = BaselineOrder(jobs=("cache",), targets=(), size=Size(None, 0.01))
    (file,) = scale_jobs(load_jobs(["cache"]), order, [place])
    free = shutil.disk_usage(home).free
    assert bytes_needed(file) == pytest.approx(free * 0.01, rel=0.1)


def test_a_study_with_a_job_that_is_not_allowed_makes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "own.fio").write_text("[x]\nrw=write\nsize=1m\nexec_prerun=date\n")
    study = "letter: Z\nname: z\ntitle: t\nsource: s\nconditions: []\nsteps: {a: {fio: own.fio}}\n"
    (home / "own.yaml").write_text(f"{study}tables: []\n")
    said = refused(capsys, "study", "own.yaml", "--target=mount", "-o", "s")
    assert "own.fio:4: exec_prerun is not supported" in said
    assert not (home / "s").exists()


def test_a_file_that_is_no_study_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "bad.yaml").write_text("letter: Z\n")
    said = refused(capsys, "study", "bad.yaml")
    assert said.startswith("replayer: bad.yaml: name: Field required")


def test_a_folder_that_no_study_wrote_cannot_be_gone_on_with(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "mount: is not a study folder" in refused(capsys, "study", "--resume", home / "mount")


def test_studies_are_listed_with_their_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study"]) == 0
    out = capsys.readouterr().out
    assert [line[0] for line in out.splitlines() if not line.startswith(" ")] == list("ABCDE")
    assert "one target takes 3 min, plus the time to lay out files" in " ".join(out.split())
