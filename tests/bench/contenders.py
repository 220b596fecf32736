"""Who takes part: the engine, the yardstick in C (bare or with clock reads), fio's engines."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from replayer import _native as engine
from tests.bench import plans

SOURCE = Path(__file__).with_name("yardstick.c")
FIO_ENGINES = {"fio-create": "filecreate", "stat": "filestat", "unlink": "filedelete"}
POLL_S = 0.002


@dataclass(frozen=True)
class Heat:
    """One measurement: a kind of work, by so many users, on so many files each."""

    work: plans.Work
    users: int
    files: int

    @property
    def total(self) -> int:
        """How many files are gone through, counting every pass."""
        return self.users * self.files * self.work.passes


class Contender(Protocol):
    """Someone who does a heat in a folder of its own and says how many files a second."""

    name: str

    def run(self, heat: Heat) -> float: ...


def build_yardstick(folder: Path) -> Path:
    """Compile the C program."""
    binary = folder / "yardstick"
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O2", "-Wall", "-Werror", "-pthread", "-o", str(binary), str(SOURCE)],
        check=True,
    )
    return binary


class Yardstick:
    """The C program, ``bare`` or ``timed``."""

    def __init__(self, binary: Path, arena: Path, clock: str) -> None:
        self.name = f"C {clock}"
        self._binary = binary
        self._clock = clock
        self._folder = arena / f"yard-{clock}"

    def run(self, heat: Heat) -> float:
        for user in range(heat.users):
            (self._folder / "files" / f"u{user}").mkdir(parents=True, exist_ok=True)
        counts = [str(heat.users), str(heat.files), str(heat.work.passes)]
        words = [str(self._binary), str(self._folder), heat.work.name, *counts, self._clock]
        printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return heat.total / int(printed) * 1e9


class Native:
    """The engine, with all its recording on, so many files a transaction."""

    def __init__(self, arena: Path, record: Path, batch: int) -> None:
        self.name = f"engine/{batch}"
        self._sandbox = engine.Sandbox.create(str(arena), f"bench-{batch}", "{}")
        self._record = record
        self._batch = batch

    def run(self, heat: Heat) -> float:
        plan = plans.files_plan(heat.work, heat.users, heat.files, self._batch)
        self._make_directories(heat)
        elapsed_ns = run_all(Stage(plan, self._sandbox, self._record), heat.users)
        return heat.total / elapsed_ns * 1e9

    def leave(self) -> None:
        """Remove what is left."""
        self._sandbox.remove(1).result()

    def _make_directories(self, heat: Heat) -> None:
        for user in range(heat.users):
            (Path(self._sandbox.path) / "files" / f"u{user}").mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class Stage:
    """Where a plan runs and records."""

    plan: engine.Plan
    sandbox: engine.Sandbox
    record: Path
    null: bool = False

    def engine(self) -> engine.Engine:
        record = tempfile.mkdtemp(dir=self.record)
        return engine.Engine(self.plan, [[self.sandbox]], record=record, null=self.null)


def run_all(stage: Stage, users: int) -> int:
    """Run a plan until all its users have used up their transactions; return the time it took.

    Raises:
        RuntimeError: An op failed, so that the time means nothing.
    """
    machine = stage.engine()
    start_all(machine, users)
    begin = time.monotonic_ns()
    machine.begin_segment(0, 0, 0)
    _rest_until_all_are_idle(machine)
    elapsed_ns = time.monotonic_ns() - begin
    machine.end_segment(1_000_000_000)
    failures = [row for row in machine.totals() if not row.expected]
    machine.close()
    if failures:
        message = f"{failures[0].op} ended with {failures[0].outcome}"
        raise RuntimeError(message)
    return elapsed_ns


def start_all(machine: engine.Engine, users: int) -> None:
    """Start users, and wait until all of them are there."""
    for user in range(users):
        machine.start_user(user)
    while machine.running_users() < users:
        time.sleep(POLL_S)


def _rest_until_all_are_idle(machine: engine.Engine) -> None:
    """Wait for the doorbell: looking now and then would take time from the users, and end late."""
    while machine.busy_users():
        select.select([machine.doorbell], [], [])
        os.read(machine.doorbell, 8)
        machine.drain_finished()


class Fio:
    """fio's engines for files, in their fastest setting: a folder a job, files in sequence."""

    name = "fio"

    def __init__(self, arena: Path) -> None:
        self._arena = arena

    def run(self, heat: Heat) -> float:
        folder = self._arena / "fio"
        folders = [folder / f"u{user}" for user in range(heat.users)]
        for each in folders:
            each.mkdir(parents=True)
        places = ":".join(map(str, folders))
        words = [*self._words(heat), f"--directory={places}"]
        printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        job = json.loads(printed[printed.index("{") :])["jobs"][0]
        shutil.rmtree(folder)
        return float(job["read"]["iops"])

    @staticmethod
    def _words(heat: Heat) -> list[str]:
        return [
            "fio",
            "--name=heat",
            f"--ioengine={FIO_ENGINES[heat.work.name]}",
            f"--nrfiles={heat.files}",
            f"--filesize={plans.BLOCK}",
            "--file_service_type=sequential",
            "--openfiles=1",
            "--fallocate=none",
            "--thread",
            "--group_reporting",
            f"--numjobs={heat.users}",
            "--output-format=json",
        ]
