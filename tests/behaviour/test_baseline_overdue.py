"""What becomes of an fio that does not end by itself: it hangs, or its results cannot be kept."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from replayer.fio import client
from replayer.fio.checking import check_job_file
from replayer.fio.jobfile import parse_job_file
from replayer.fio.places import FolderPlace
from replayer.fio.program import find_fio
from replayer.fio.recorder import FioRecorder
from replayer.measure.runfolder import RunFolder
from replayer.run.controller import PhaseController, Terms
from replayer.run.interruption import Interruption
from replayer.run.progress import ProgressDisplay
from replayer.run.schedule import ScheduledSegment
from replayer.run.target_dir import DirContext
from replayer.run.targets import NamedTarget
from tests.behaviour.shell import Shell, Until
from tests.behaviour.test_baseline import folder_of, has_measured, parent_of, still_running

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

IMPATIENT = """\
from replayer.fio import client
from replayer.cli import main
client.LATE_S = 1.0
raise SystemExit(main())
"""
"""The program, but that it does not wait for two minutes."""
JOBS = "[hangs]\nioengine=psync\nrw=write\nbs=4k\nsize=1m\nruntime=2\ntime_based\nnumjobs=2\n"


def jobs_of(mount: Path) -> list[int]:
    pids = still_running(mount)
    return [pid for pid in pids if parent_of(pid) in pids]


def test_a_job_that_had_to_be_killed_as_it_did_not_end_leaves_the_run_unproven(
    shell: Shell, until: Until
) -> None:
    mount, other = shell.target(), shell.target("other")
    (shell.home / "own.fio").write_text(JOBS)
    words = ("--target", f"a={mount}", "--target", f"b={other}", "--stop-timeout=1s", "--json")
    process = shell.start("baseline", "own.fio", *words, program=("-c", IMPATIENT))
    until(lambda: has_measured(shell, "hangs"))
    job, _ = jobs_of(mount)
    os.kill(job, signal.SIGSTOP)  # it makes no headway, whatever it is asked to do
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    document = json.loads(out)
    assert document["status"] == "finished"
    assert document["verdict"]["outcome"] == "inconclusive"
    assert "users hung in a call: their last calls are in no figure" in str(
        document["verdict"]["reasons"]
    )
    (warning,) = (each for each in document["warnings"] if each["message"].startswith("a: fio"))
    assert warning["message"].endswith("was stopped, then killed; its last I/Os are in no figure")
    # Nothing more is run where calls hang, and what was made there goes.
    assert [path.name for path in (folder_of(shell) / "fio").glob("*.json")] == ["0-own-0-0.json"]
    assert [*mount.iterdir(), *other.iterdir()] == []


def test_a_job_that_is_late_and_ends_when_it_is_asked_to_is_told_of_and_judged(
    shell: Shell,
) -> None:
    (shell.home / "own.fio").write_text(JOBS.replace("runtime=2\ntime_based", "rate=10k,10k"))
    text = IMPATIENT.replace("LATE_S = 1.0", "SILENT_S = 0.5")
    words = ("baseline", "own.fio", "--target", shell.target(), "--json")
    done = shell.run(*words, program=("-c", text))
    assert done.code in {0, 4}, done.err
    document = done.document()
    messages = [each["message"] for each in document["warnings"]]
    assert "mount: fio did not end in time and was stopped" in messages
    assert "hung in a call" not in done.out


@pytest.fixture
def small(shell: Shell) -> Iterator[Path]:
    """A file system with room for little."""
    path = shell.target("small")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", path], check=False)
    if made.returncode:
        pytest.skip("no mounts can be made here")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


CREATING = (
    "[makes]\nioengine=psync\nrw=write\nbs=4k\nnrfiles=2000\nfilesize=4k\ncreate_on_open=1\n"
    "unlink_each_loop=1\ntime_based\nruntime=60\nnumjobs=4\n"
)


class FullLater(client.FioClient):
    """Its run folder takes no more once fio has begun."""

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        with suppress(OSError), (self.folder.path / "fill").open("wb", buffering=0) as filling:
            while True:
                filling.write(b"\0" * 4096)
        super().begin(segment, warm_up_ns)


def test_fio_ends_where_the_run_folder_takes_no_more(shell: Shell, small: Path) -> None:
    mount, progress, nobody = shell.target(), ProgressDisplay(), Interruption()
    file = check_job_file(parse_job_file(CREATING, "own.fio", {}), None)
    place = FolderPlace(NamedTarget("mount", (mount,)), DirContext(progress, nobody, 1.0))
    place.create("own", "{}")
    recorder, folder = FioRecorder(small), RunFolder(small, "own")
    made = FullLater(find_fio(), (file,), (place,), folder, recorder, progress, nobody)
    schedule = client.schedule_jobs((file,), 1, 1)
    controller = PhaseController(
        Terms(
            schedule,
            1,
            0,
            ends_by_count=True,
            events=None,
            stop_timeout_s=1.0,
            progress=progress,
            interruption=nobody,
        ),
        made,
    )
    controller.run()
    assert "the run folder cannot be written: No space left" in str(controller.failure)
    assert still_running(mount) == []


def test_an_fio_that_prints_what_is_no_result_is_ended_and_told_of(
    shell: Shell, tmp_path: Path
) -> None:
    mount, program = shell.target(), tmp_path / "bin/fio"
    program.parent.mkdir()
    says = r"case $* in *json+*) printf '{\n  nonsense\n}\n' ;; esac"
    program.write_text(f'#!/bin/sh\n{says}\nexec {shutil.which("fio")} "$@"\n')
    program.chmod(0o755)
    (shell.home / "own.fio").write_text(CREATING)
    path = f"{program.parent}:{os.environ['PATH']}"
    process = shell.start("baseline", "own.fio", "--target", mount, within=("env", f"PATH={path}"))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "own.fio: fio printed invalid results" in err
    assert list(mount.iterdir()) == []
