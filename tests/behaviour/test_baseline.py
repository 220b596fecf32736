"""``replayer baseline`` with the real fio, on small files and for seconds only."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replayer.measure.record import load_run
from replayer.measure.summarise import Of, samples_of
from tests.behaviour.shell import Done, Shell, Until, make_shell

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

MIXED = """\
[mixed]
ioengine=psync
rw=randrw
bs=4k
size=2m
numjobs=2
runtime=1
time_based
[synced]
stonewall
write_bw_log=mine
rw=write
bs=16k
size=1m
fsync=4
"""


def has_measured(shell: Shell, job: str) -> bool:
    rows = shell.home.glob("replayer-runs/*/timeline.csv")
    return any(job in path.read_text() for path in rows)


def folder_of(shell: Shell) -> Path:
    (folder,) = (shell.home / "replayer-runs").iterdir()
    return folder


def totals(folder: Path, number: int = 0) -> dict[tuple[str, str], tuple[int, int]]:
    """What fio itself says: I/Os and bytes by job and direction."""
    found = {}
    (path,) = (folder / "fio").glob(f"*-{number}-0.json")
    for job in json.loads(path.read_text())["jobs"]:
        for way, op in (("read", "read"), ("write", "write"), ("sync", "fsync")):
            entry = job[way]
            if entry["total_ios"]:
                moved = entry.get("io_bytes", 0)
                found[job["jobname"], op] = (entry["total_ios"], moved)
    return found


def ops(document: Any, number: int = 0) -> dict[tuple[str, str], tuple[int, int]]:  # noqa: ANN401
    overall = document["summary"]["targets"][number]["overall"]
    return {
        (transaction["name"], op["op"]): (op["count"], op["bytes"])
        for transaction in overall["transactions"]
        for op in transaction["ops"]
    }


def baseline(shell: Shell, text: str, *words: str | Path) -> Done:
    (shell.home / "own.fio").write_text(text)
    return shell.run("baseline", "own.fio", *words)


@dataclass(frozen=True)
class Mixed:
    """A run of two jobs: what replayer says of it, and what fio does."""

    document: Any
    folder: Path
    left: list[Path]
    stated: list[Any]

    def transaction(self, name: str) -> Any:  # noqa: ANN401 - JSON
        found = self.document["summary"]["targets"][0]["overall"]["transactions"]
        return next(each for each in found if each["name"] == name)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Mixed:
    shell = make_shell(tmp_path_factory.mktemp("mixed"))
    mount = shell.target()
    files = ("--html", "page.html", "--junit", "verdict.xml")
    done = baseline(shell, MIXED, "--target", mount, "--json", *files)
    assert done.code in {0, 4}, done.err
    assert "synced" in (shell.home / "page.html").read_text()
    assert "<testsuite " in (shell.home / "verdict.xml").read_text()
    (raw,) = (folder_of(shell) / "fio").glob("*.json")
    jobs = json.loads(raw.read_text())["jobs"]
    return Mixed(done.document(), folder_of(shell), list(mount.iterdir()), jobs)


def test_counts_and_bytes_are_those_of_fio(mixed: Mixed) -> None:
    assert mixed.document["status"] == "finished"
    assert ops(mixed.document) == totals(mixed.folder)
    assert len(ops(mixed.document)) == 4
    for name in ("mixed", "synced"):
        transaction = mixed.transaction(name)
        ios = [op for op in transaction["ops"] if op["op"] != "fsync"]
        assert transaction["count"] == sum(op["count"] for op in ios)
        assert transaction["latency"]["count"] == transaction["count"]
    assert mixed.left == []


def test_logs_that_a_job_file_asks_for_are_kept(mixed: Mixed) -> None:
    (log,) = (mixed.folder / "fio").glob("*/mine_bw*.log")
    assert len(log.read_text().splitlines()) == 64


def test_rates_are_those_of_fio(mixed: Mixed) -> None:
    rate = mixed.stated[0]["read"]["iops"] + mixed.stated[0]["write"]["iops"]
    assert mixed.transaction("mixed")["rate_per_s"] == pytest.approx(rate, rel=0.01)
    assert mixed.transaction("synced")["rate_per_s"] == pytest.approx(
        mixed.stated[1]["write"]["iops"], rel=0.1
    )


def test_percentiles_are_those_of_fio(mixed: Mixed) -> None:
    record = load_run(mixed.folder)
    stated = mixed.stated[0]["read"]["lat_ns"]["percentile"]
    found = samples_of(record, Of(0, "mixed", "read"))
    for percent, value in ((50.0, "50.000000"), (95.0, "95.000000"), (99.0, "99.000000")):
        # fio's buckets are 1.6 % wide, those of the run folder 0.1 %.
        assert found.percentile(percent) == pytest.approx(stated[value], rel=0.02)


def test_several_targets_have_their_turn_in_each_round_and_are_ranked(shell: Shell) -> None:
    text = "[a]\nrw=write\nbs=64k\nsize=1m\n[b]\nstonewall\nrw=read\nbs=64k\nsize=1m\n"
    places = [f"--target={name}={shell.target(name)}" for name in ("one", "two")]
    done = baseline(shell, text, *places, "--json", "--rounds", "2")
    assert done.code in {0, 4}, done.err
    document = done.document()
    assert [len(target["rounds"]) for target in document["summary"]["targets"]] == [2, 2]
    assert {(ranked["subject"], ranked["figure"]) for ranked in document["ranking"]} >= {
        ("a", "p50"),
        ("a", "throughput"),
        ("b", "throughput"),
    }
    assert all(len(ranked["standings"]) == 2 for ranked in document["ranking"])
    # Each job does one kind of op: there is nothing beside the jobs to rank.
    assert {ranked["kind"] for ranked in document["ranking"]} == {"transaction"}
    assert ops(document)["a", "write"] == (32, 2 << 20)
    shown = shell.run("report", folder_of(shell), "--details")
    assert "Ranking" in shown.out


def test_thresholds_are_judged_on_what_fio_measured(shell: Shell) -> None:
    text = "[a]\nrw=write\nbs=64k\nsize=1m\n"
    limits = ("--threshold", "a/write.p50 > 10s", "--threshold", "errors == 0")
    done = baseline(shell, text, "--target", shell.target(), "--json", *limits)
    outcomes = {
        each["threshold"]: each["outcome"] for each in done.document()["verdict"]["judgements"]
    }
    assert outcomes["errors == 0"] == "pass"
    assert outcomes["a/write.p50 > 10s"] in {"fail", "inconclusive"}
    assert done.code in {1, 4}
    wrong = baseline(shell, text, "--target", shell.home, "--threshold", "b.p50 < 1s")
    assert wrong.code == 2
    assert "there are: a, " in wrong.err


def test_a_job_that_fails_is_an_error_with_its_reason(shell: Shell) -> None:
    text = (
        "[w]\nrw=write\nbs=4k\nsize=64k\nfilename=x\n"
        "[v]\nstonewall\nrw=read\nbs=4k\nsize=64k\nverify=crc32c\nfilename=x\n"
    )
    done = baseline(shell, text, "--target", shell.target(), "--json", "--threshold", "errors == 0")
    assert done.code == 1, done.err
    document = done.document()
    assert any("job v failed with EILSEQ" in each["message"] for each in document["warnings"])
    events = (folder_of(shell) / "events.jsonl").read_text()
    assert "bad magic header" in events


def test_steady_state_is_kept(shell: Shell) -> None:
    text = "[s]\nrw=randwrite\nbs=4k\nsize=1m\nruntime=2\ntime_based\nss=iops:90%\nss_dur=1\n"
    done = baseline(shell, text, "--target", shell.target(), "--json")
    assert done.code in {0, 4}, done.err
    lines = (folder_of(shell) / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    (steady,) = (event for event in events if event["kind"] == "steady state")
    assert steady["job"] == "s"
    assert isinstance(steady["attained"], bool)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_results_and_removes_files(shell: Shell, until: Until, number: int) -> None:
    mount = shell.target()
    (mount / "mine.txt").write_text("keep me")
    words = ("--size=1MiB", "--threshold=errors >= 1", "--json")
    process = shell.start("baseline", "upload", "--target", mount, *words)
    until(lambda: has_measured(shell, "upload"))
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    assert "interrupted" in err
    document = json.loads(out)
    assert (document["status"], document["verdict"]["exit_code"]) == ("interrupted", 4)
    assert ops(document)["upload", "write"][0] > 0
    assert ops(document) == totals(folder_of(shell))
    assert [path.name for path in mount.iterdir()] == ["mine.txt"]
    assert not still_running(mount)


def test_fio_ends_with_a_killed_replayer_and_clean_removes_its_files(
    shell: Shell, until: Until
) -> None:
    mount = shell.target()
    process = shell.start("baseline", "upload", "--target", mount, "--size=1MiB")
    until(lambda: has_measured(shell, "upload"))
    process.kill()
    process.communicate()
    until(lambda: not still_running(mount))
    shown = shell.run("report", folder_of(shell))
    assert "killed" in shown.out
    assert "upload" in shown.out
    assert shell.run("clean", mount).code == 0
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize("who", ["fio", "job"])
def test_an_fio_that_is_killed_has_not_finished(shell: Shell, until: Until, who: str) -> None:
    mount = shell.target()
    words = ("--target", mount, "--size=1MiB", "--runtime=5s", "--json")
    process = shell.start("baseline", "write-4k-buffered", *words)
    until(lambda: has_measured(shell, "write-4k-buffered"))
    pids = still_running(mount)
    (job,) = (pid for pid in pids if parent_of(pid) in pids)
    os.kill(parent_of(job) if who == "fio" else job, signal.SIGKILL)
    _, err = process.communicate(timeout=40)
    assert process.returncode == 3, err
    assert "fio or one of its jobs got SIGKILL" in err
    run = json.loads((folder_of(shell) / "run.json").read_text())
    assert run["status"] == "failed"
    assert list(mount.iterdir()) == []


def parent_of(pid: int) -> int:
    """Return who started a process, see proc_pid_stat(5)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def still_running(mount: Path) -> list[int]:
    """Processes that work in a folder of the mount."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = str(link.readlink())
        except OSError:
            continue
        if where.startswith(str(mount)):
            found.append(int(link.parent.name))
    return found


def test_without_fio_the_user_is_told_how_to_install_it(shell: Shell, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "replayer", "baseline", "upload", "--target", str(tmp_path)],
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": str(empty)},
    )
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "replayer: fio is not in PATH",
        "hint: install it: apt-get install fio, dnf install fio or apk add fio",
    ]


def test_an_fio_that_is_too_old_is_refused(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "bin/fio"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho fio-3.16\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "replayer", "baseline", "upload", "--target", str(tmp_path)],
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 3
    assert "fio must be at least 3.28, got 3.16" in done.stderr


def test_files_that_do_not_fit_are_refused_before_anything_runs(shell: Shell) -> None:
    mount = shell.target()
    done = baseline(shell, "[x]\nrw=write\nsize=4000t\n", "--target", mount)
    assert done.code == 3
    assert "bytes, only" in done.err
    assert list(mount.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_file_system_without_o_direct_is_named_with_the_option(shell: Shell) -> None:
    mount = shell.target()
    inside = f"mount -t ramfs none {mount} && {sys.executable} -m replayer baseline rand-read-4k"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{inside} --size 1MiB --target {mount}"],
        cwd=shell.home,
        capture_output=True,
        text=True,
        check=False,
    )
    if "permission denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("no mounts can be made here")
    assert done.returncode == 3, done.stderr
    assert "direct=1 of job rand-read-4k (rand-read-4k) fails: " in done.stderr
    assert "no O_DIRECT" in done.stderr


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A block device that nothing uses: a file behind a loop device."""
    image = tmp_path / "image"
    image.write_bytes(b"\0" * (1 << 20))
    made = subprocess.run(
        ["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip("no loop device can be made here")
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_a_device_is_read_and_written_to_only_by_who_gives_up_its_data(
    shell: Shell, device: str
) -> None:
    reading = baseline(shell, "[r]\nrw=read\nbs=4k\n", f"--device=d={device}", "--json", "-o", "r")
    assert reading.code in {0, 4}, reading.err
    assert ops(reading.document())["r", "read"] == (256, 1 << 20)
    text = "[w]\nrw=write\nbs=4k\nbuffer_pattern=0xff\n"
    refused = baseline(shell, text, f"--device=d={device}")
    assert refused.code == 2
    assert f"own.fio:1: job w writes to {device}" in refused.err
    assert set(Path(device).read_bytes()) == {0}
    allowed = ("--i-will-lose-the-data", device)
    done = baseline(shell, text, f"--device=d={device}", *allowed, "--json", "-o", "w")
    assert done.code in {0, 4}, done.err
    assert ops(done.document())["w", "write"] == (256, 1 << 20)


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_a_device_may_be_named_by_a_relative_link(shell: Shell, device: str) -> None:
    (shell.home / "link").symlink_to(device)
    text = f"[w]\nrw=write\nbs=4k\nfilename={device}\n"
    words = ("--device=d=link", "--i-will-lose-the-data", "link", "--json")
    done = baseline(shell, text, *words)
    assert done.code in {0, 4}, done.err
    assert ops(done.document())["w", "write"] == (256, 1 << 20)


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_a_device_in_use_is_never_measured(shell: Shell, device: str) -> None:
    held = os.open(device, os.O_RDONLY | os.O_EXCL)  # as a mount holds it
    try:
        done = baseline(shell, "[r]\nrw=read\nbs=4k\n", f"--device={device}")
    finally:
        os.close(held)
    assert done.code == 3
    assert f"{device}: is in use" in done.err


def test_what_fio_says_only_when_it_runs_is_kept_where_the_hint_says(shell: Shell) -> None:
    (shell.home / "own.fio").write_text("[x]\nrw=read\nsize=1m\nbs=2m\n")
    done = shell.run("baseline", "own.fio", "--target", shell.target(), "-o", shell.home / "run")
    events = shell.home / "run/events.jsonl"
    assert done.code == 3
    assert f"hint: the output of fio is in {events}" in done.err
    assert "size too small" in events.read_text()
