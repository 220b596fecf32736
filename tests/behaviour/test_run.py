"""``replayer run`` as a person meets it: the real program, real Locust, real files."""

import csv
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from replayer.report.json_form import run_schema
from tests.behaviour.shell import LOOK_ONLY, TINY, Done, Shell, make_shell


def left_on(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


def fill(path: Path) -> None:
    """Write until there is no space left."""

    def write_on() -> None:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)

    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write_on()


def run_folder(home: Path) -> Path:
    (folder,) = (home / "replayer-runs").iterdir()
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def mount(home: Path) -> Path:
    mount = home / "mount"
    (mount / "replayer-mine").mkdir(parents=True)
    (mount / "replayer-mine" / "file").write_text("keep me")
    (mount / "mine.txt").write_text("keep me too")
    return mount


@pytest.fixture(scope="module")
def done(home: Path, mount: Path) -> Done:
    return make_shell(home).run(
        *("run", "tiny.yaml", "--target", f"here={mount}", "-u", "3", "-t", "2s"),
        *("--seed", "7", "--threshold", "look.p50 < 10s", "--json", "-o", "out"),
        *("--csv", "own/", "--html", "page.html", "--junit", "verdict.xml"),
    )


class TestOneRun:
    """A run with everything that can be asked for at once."""

    def test_json_is_one_document_with_what_was_asked_for(self, done: Done) -> None:
        assert done.went_well, done.err
        document = done.document()
        assert document["load"]["users"] == 3
        assert document["plan"]["seed"] == 7
        assert document["targets"][0]["name"] == "here"
        assert document["verdict"]["judgements"][0]["measured"] < 10e9
        assert document["status"] == "finished"

    def test_json_keeps_to_its_schema(self, done: Done) -> None:
        jsonschema.validate(done.document(), run_schema())

    def test_the_run_folder_holds_the_plan_the_figures_and_the_run(
        self, done: Done, home: Path
    ) -> None:
        assert done.went_well
        files = {"run.json", "plan.json", "histograms.hlog", "timeline.csv", "events.jsonl"}
        assert files == set(left_on(home / "out"))

    def test_foreign_files_on_the_target_are_not_touched(self, done: Done, mount: Path) -> None:
        assert done.went_well
        assert left_on(mount) == ["mine.txt", "replayer-mine"]
        assert (mount / "replayer-mine" / "file").read_text() == "keep me"

    def test_lines_are_written_in_a_pipe_and_locust_is_silent(self, done: Done) -> None:
        assert re.search(r"measured, 3 users, (.* transactions/s, )?0 errors, 2 s left", done.err)
        assert "locust" not in done.err.lower()

    def test_the_page_and_the_verdict_for_pipelines_are_ours(self, done: Done, home: Path) -> None:
        page = (home / "page.html").read_text()
        assert done.document()["id"] in page
        assert "What stands out" in page
        assert len(page) < 3_000_000
        suite = ET.parse(home / "verdict.xml").getroot()[0]  # noqa: S314 - our own output
        assert suite.attrib["id"] == done.document()["id"]

    def test_locusts_own_csv_holds_every_transaction(self, done: Done, home: Path) -> None:
        (target,) = done.document()["summary"]["targets"]
        ours = {each["name"]: each["count"] for each in target["overall"]["transactions"]}
        with (home / "own" / "locust_stats.csv").open() as file:
            rows = {row["Name"]: row for row in csv.DictReader(file)}
        theirs = {name: int(row["Request Count"]) for name, row in rows.items()}
        assert theirs == {**ours, "Aggregated": sum(ours.values())}
        assert rows["look"]["Type"] == "FILE"


@pytest.mark.parametrize("option", ["--html", "--junit"])
def test_a_report_that_would_overwrite_a_file_is_refused_before_anything_runs(
    shell: Shell, option: str
) -> None:
    (shell.home / "thesis").write_text("years of work")
    done = shell.run("run", "tiny.yaml", option, "thesis")
    assert done.code == 2
    assert "thesis: File exists" in done.err
    assert (shell.home / "thesis").read_text() == "years of work"
    assert not (shell.home / "replayer-runs").exists()


def test_without_a_target_it_runs_below_the_current_folder_and_leaves_its_run_folder_only(
    shell: Shell,
) -> None:
    done = shell.run("run", "tiny.yaml", "--quiet")
    assert done.went_well, done.err
    assert done.err == ""
    assert "look" in done.out
    assert "save" in done.out
    assert left_on(shell.home) == ["look.yaml", "replayer-runs", "tiny.yaml"]


def test_a_folder_for_no_target_that_cannot_be_made_has_a_hint(shell: Shell) -> None:
    (shell.home / "replayer-data").write_text("of somebody else")
    done = shell.run("run", "tiny.yaml")
    assert done.code == 3
    assert "a run without --target is laid out there: file exists" in done.err
    assert "hint: give a folder to run in: --target PATH" in done.err


def test_a_threshold_that_fails_makes_the_exit_code_1(shell: Shell) -> None:
    done = shell.run("run", "look.yaml", "--threshold", "errors > 0")
    assert done.code == 1, done.err
    assert "errors > 0" in done.out


def test_errors_that_nobody_expects_fail_a_run_without_thresholds(shell: Shell) -> None:
    text = LOOK_ONLY.replace("mix: {look: 1}", "mix: {look: 1, miss: 9}")
    miss = "  miss:\n    - stat: {in: files, name: none}\n"
    (shell.home / "miss.yaml").write_text(text + miss)
    done = shell.run("run", "miss.yaml")
    assert done.code == 1, done.err
    assert done.out.startswith("FAIL  look-only: 0 of 1 threshold checks hold")
    assert "(default)" in done.out
    allowed = shell.run("run", "miss.yaml", "--threshold", "errors < 100%")
    assert allowed.code in {0, 4}, allowed.err
    assert "(default)" not in allowed.out


def test_several_targets_take_turns_in_three_rounds_and_are_ranked(shell: Shell) -> None:
    places = [f"--target={name}={shell.target(name)}" for name in ("one", "two")]
    done = shell.run("run", "tiny.yaml", *places, "-t", "1s", "--json")
    assert done.went_well, done.err
    document = done.document()
    assert document["load"]["rounds"] == 3
    assert {row["label"] for row in document["ranking"][0]["standings"]} == {"one", "two"}
    events = (run_folder(shell.home) / "events.jsonl").read_text().splitlines()
    turns = [
        (event["round"], event["target"])
        for event in map(json.loads, events)
        if event["kind"] == "phase" and event["phase"] == "measured"
    ]
    assert turns == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_transactions_end_a_run_when_every_user_has_made_its_own(shell: Shell) -> None:
    done = shell.run(
        *("run", "look.yaml", "-u", "3", "--set", "iterations=20", "--set", "duration=50s"),
        "--json",
    )
    assert done.went_well, done.err
    (target,) = done.document()["summary"]["targets"]
    (look,) = target["overall"]["transactions"]
    assert look["count"] == 60


def test_a_kept_folder_is_as_laid_out_can_be_reused_and_is_refused_once_it_differs(
    shell: Shell,
) -> None:
    mount = shell.target()
    kept = shell.run("run", "tiny.yaml", "--target", mount, "--keep")
    assert kept.went_well, kept.err
    (folder,) = mount.iterdir()
    assert f"--reuse mount={folder}" in kept.err
    again = shell.run("run", "tiny.yaml", "--reuse", folder)
    assert again.went_well, again.err
    victim = next(path for path in (folder / "files").rglob("*") if path.is_file())
    victim.write_text("changed")
    refused = shell.run("run", "tiny.yaml", "--reuse", folder)
    assert refused.code == 2
    assert victim.name in refused.err
    assert folder.exists()


@pytest.mark.parametrize("state", ["warm", "cold"])
def test_each_cache_state_is_reached_and_its_procedure_recorded(shell: Shell, state: str) -> None:
    done = shell.run("run", "look.yaml", "--cache", state, "--json")
    assert done.went_well, done.err
    cache = done.document()["cache"]
    assert cache["asked"] == state
    assert cache["procedure"]


def test_files_in_memory_are_said_to_be_never_cold(shell: Shell) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        targets = ("--target", f"memory={memory}", "--target", f"disk={shell.target()}")
        done = shell.run("run", "look.yaml", "-t", "1s", "--cache", "cold", "--json", *targets)
    told = [each["message"] for each in done.document()["warnings"]]
    assert "memory is in memory (tmpfs): its files are never cold" in told


def test_errors_of_transactions_are_counted_by_op_and_errno_in_locust_too(shell: Shell) -> None:
    done = shell.run(
        *("run", "look.yaml", "--json", "--csv", "locust"),
        *("--set", "transactions.look=[{stat: {in: files, name: nothing_there}}]"),
    )
    document = done.document()
    (look,) = document["summary"]["targets"][0]["overall"]["transactions"]
    assert look["errors"] == look["count"] > 0
    with (shell.home / "locust_failures.csv").open() as file:
        (failure,) = csv.DictReader(file)
    assert done.code == 1, "nobody expects them"
    assert failure["Error"] == "stat: ENOENT"
    assert int(failure["Occurrences"]) == look["errors"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--target", "nowhere"), 2, "does not exist"),
        (("-u", "0"), 2, "-u must be from 1 to 1,000,000, got 0"),
        (("-u", "99999999"), 2, "-u must be from 1 to 1,000,000, got 99,999,999"),
        (("-t", "fast"), 2, "replayer: argument -t/--run-time: must be whole seconds, such as"),
        (("-t", "1.3s"), 2, "5m or 1h20m, got '1.3s'"),
        (("-s", "10ms"), 2, "-s/--stop-timeout: '10ms' has the unknown unit 'ms'"),
        (("--rounds", "0"), 2, "from 1 to 1000"),
        (("--threshold", "loock.p95 < 1s"), 2, "loock"),
        (("--set", "usres.count=1"), 2, "usres"),
        (("--reuse", "/srv"), 2, "marker"),
        (("--nonsense",), 2, "--nonsense"),
        (("--rounds", "2", "--cache", "cold", "--remount-command", "true"), 2, "one round"),
        (("--remount-command", "true"), 2, "--remount-command needs --cache cold"),
    ],
)
def test_bad_input_is_refused_with_one_line_and_nothing_is_left(
    shell: Shell, words: tuple[str, ...], code: int, says: str
) -> None:
    done = shell.run("run", "look.yaml", *words)
    assert (done.code, done.out) == (code, ""), done.err
    first, *rest = done.err.strip().splitlines()
    assert says in first
    assert len(rest) <= 1, done.err
    assert not (shell.home / "replayer-data").exists()


def test_a_missing_scenario_names_the_nearest_one(shell: Shell) -> None:
    done = shell.run("run", "wordpres-pages")
    assert done.code == 2
    assert "wordpress-pages" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
class TestFullAndReadOnly:
    @pytest.fixture
    def small(self, shell: Shell) -> Iterator[Path]:
        path = shell.target("small")
        mount = ("mount", "-t", "tmpfs", "-o", "size=256k", "none", str(path))
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("a tmpfs cannot be mounted here")
        yield path
        subprocess.run(["umount", "-l", str(path)], check=True)

    def test_a_target_without_room_is_refused_before_anything_is_laid_out(
        self, shell: Shell, small: Path
    ) -> None:
        done = shell.run("run", "look.yaml", "--target", small, "--set", "files.sizes=64KiB")
        assert done.code == 3
        assert "bytes, but only" in done.err
        assert left_on(small) == []

    def test_a_full_target_is_refused(self, shell: Shell, small: Path) -> None:
        fill(small / "filler")
        done = shell.run("run", "look.yaml", "--target", small)
        assert done.code == 3
        assert left_on(small) == ["filler"]

    def test_space_that_ends_in_the_middle_is_counted_by_errno_and_cleaned(
        self, shell: Shell, small: Path
    ) -> None:
        done = shell.run("run", "tiny.yaml", "--target", small, "-t", "2s", "--json")
        (target,) = done.document()["summary"]["targets"]
        outcomes = {
            outcome["outcome"]
            for op in target["overall"]["ops"]
            for outcome in op["outcomes"]
            if not outcome["expected"]
        }
        assert "ENOSPC" in outcomes
        assert left_on(small) == []

    def test_a_run_whose_own_folder_fills_up_is_reported_all_the_same(
        self, shell: Shell, small: Path
    ) -> None:
        (small / "filler").write_bytes(b"x" * 224 * 1024)
        done = shell.run("run", "tiny.yaml", "-t", "2s", "-o", small / "out", "--junit", "v.xml")
        assert done.code == 3
        assert "run folder cannot be written: No space left" in done.err
        assert re.search(r"\nlook: \d", done.out)
        assert "the run failed" in (shell.home / "v.xml").read_text()
        again = shell.run("report", small / "out").out
        assert "the run failed before its end" in again
        assert "killed" not in again

    def test_a_read_only_target_is_refused(self, shell: Shell, small: Path) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        done = shell.run("run", "look.yaml", "--target", small)
        assert done.code == 3
        assert "read-only" in done.err


def to_a_full_disk(shell: Shell, words: tuple[str | Path, ...], stream: str) -> Done:
    with Path("/dev/full").open("w") as full:
        out = full if stream == "stdout" else subprocess.PIPE
        err = full if stream == "stderr" else subprocess.PIPE
        command = [sys.executable, "-m", "replayer", *map(str, words)]
        done = subprocess.run(
            command, cwd=shell.home, stdout=out, stderr=err, text=True, check=False
        )
    return Done(done.returncode, done.stdout or "", done.stderr or "")


def test_a_standard_output_that_takes_nothing_costs_no_result(shell: Shell) -> None:
    words = ("run", "tiny.yaml", "--target", shell.target(), "--quiet", "--junit", "verdict.xml")
    done = to_a_full_disk(shell, words, "stdout")
    first, _hint = done.err.splitlines()
    assert (done.code, first) == (
        3,
        "replayer: standard output cannot be written: No space left on device",
    )
    (file,) = shell.home.glob("replayer-runs/*/run.json")
    assert json.loads(file.read_text())["status"] == "finished"
    assert (shell.home / "verdict.xml").exists()
    assert left_on(shell.home / "mount") == []
    assert to_a_full_disk(shell, ("check", "tiny.yaml"), "stdout").code == 3


def test_a_standard_error_that_takes_nothing_breaks_no_run(shell: Shell) -> None:
    done = to_a_full_disk(shell, ("run", "tiny.yaml", "--target", shell.target()), "stderr")
    assert done.went_well
    assert "--details" in done.out


def test_a_reader_that_has_seen_enough_leaves_nothing_behind(tmp_path: Path) -> None:
    shell = make_shell(tmp_path)
    mount = shell.target()
    process = shell.start("run", "tiny.yaml", "--target", mount, "-t", "1s", "--quiet")
    assert process.stdout is not None
    process.stdout.close()
    _, messages = process.communicate(timeout=60)
    assert process.returncode in {0, 4}, messages
    assert "bug" not in messages
    assert left_on(mount) == []


def test_progress_in_a_pipe_is_one_line_of_80_columns_at_a_time(shell: Shell) -> None:
    pages = {f"a_page_with_a_long_name_{number}": number + 1 for number in range(20)}
    steps = "\n".join(f"  {page}:\n    - stat: {{from: files, pick: uniform}}" for page in pages)
    mix = ", ".join(f"{page}: {weight}" for page, weight in pages.items())
    head = TINY.partition("mix:")[0]
    (shell.home / "pages.yaml").write_text(f"{head}mix: {{{mix}}}\ntransactions:\n{steps}\n")
    target = shell.target(
        "a-mount-whose-name-is-so-long-that-no-line-has-room-for-all-of-it-and-more"
    )
    done = shell.run("run", "pages.yaml", "--target", target, "-t", "6s")
    assert done.went_well, done.err
    lines = done.err.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert any(", measured, " in line or "s left" in line for line in lines)
