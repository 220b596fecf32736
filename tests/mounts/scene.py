"""A run on a mount to which something happens: begun, watched from outside, judged at its end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.behaviour.shell import Done, Shell, make_shell
from tests.mounts.tree import Tree, differences, fingerprint
from tests.processes import children_of

__all__ = ["Ending", "Scene", "make_scene"]

PATIENCE_S = 90.0
TABLE = os.environ.get("REPLAYER_FAULT_TABLE")
"""A file that a line of JSON is added to for each fault: what happened, for a table."""


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        code: The exit code.
        took_s: From what happened to its end.
        said: Everything on stderr.
        run: run.json as it was left.
        ops: Calls that are in its records.
        outcomes: The outcomes of calls that were not expected.
    """

    code: int
    took_s: float
    said: str
    run: Any
    ops: int
    outcomes: frozenset[str]


@dataclass
class Scene:
    """A target with a foreign file on it, and the run of a scenario.

    Attributes:
        shell: Where the program is run.
        mount: The target.
        process: The run.
    """

    shell: Shell
    mount: Path
    foreign: Tree = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None
    _happened: float = 0.0
    _reported_s: float | None = None

    @property
    def said(self) -> str:
        """What the run has said on stderr until now."""
        return (self.shell.home / "err").read_text()

    @property
    def folder(self) -> Path:
        """The run's folder on the target."""
        (folder,) = self.mount.glob("replayer-2*")
        return folder

    def begin(
        self,
        what: str,
        *words: str | Path,
        command: str = "run",
        limit: Callable[[], None] | None = None,
    ) -> None:
        """Start a run on the target, under a limit of its own if one is given."""
        whole = (command, what, "--target", f"here={self.mount}", *map(str, words))
        with (
            (self.shell.home / "err").open("wb") as said,
            (self.shell.home / "out").open("wb") as out,
        ):
            self.process = subprocess.Popen(
                [sys.executable, "-m", "replayer", *whole],
                cwd=self.shell.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=said,
                preexec_fn=limit,  # noqa: PLW1509 - this process has no other threads
            )

    def wait(self, is_so: Callable[[], object], what: str) -> None:
        """Wait until something is so while the run goes on."""
        assert self.process is not None
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert self.process.poll() is None, f"it ended before {what}:\n{self.said}"
            assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}\n{self.said}"
            time.sleep(0.002)

    def wait_until_measuring(self) -> None:
        """Wait until users work, and a little more."""
        self.wait(lambda: any('"measured"' in text for text in self._events()), "it measures")
        time.sleep(0.3)

    def wait_until_working(self) -> None:
        """Wait until users of any process work on the target, and a little more."""
        self.wait(lambda: any(self.mount.glob("replayer-2*/work/*/*")), "users work")
        time.sleep(0.3)

    def wait_until_idle(self) -> None:
        """Wait until the users have done their work."""
        self.wait(lambda: any('"idle"' in text for text in self._events()), "they have ended")

    def wait_until_laying_out(self) -> None:
        """Wait until the first files are there."""
        self.wait(lambda: any(self.mount.glob("replayer-2*/files/*")), "it lays out")

    def wait_until_told(self, words: str) -> float:
        """Wait until the run says something, and return how long after the fault it did."""
        self.wait(lambda: words in self.said, f"it says {words!r}")
        self._reported_s = time.monotonic() - self._happened
        return self._reported_s

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the process that works while something is done to its mount."""
        assert self.process is not None
        (worker,) = children_of(self.process.pid)
        os.kill(worker, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(worker, signal.SIGCONT)

    def send(self, number: int) -> None:
        """Send the run a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def happens(self) -> None:
        """Remember when the fault happened."""
        self._happened = time.monotonic()

    def end(self, limit_s: float = 60) -> Ending:
        """Wait for the end of the run; its records must be readable."""
        assert self.process is not None
        code = self.process.wait(limit_s)
        took_s = time.monotonic() - self._happened
        return Ending(code, took_s, self.said, *self._records())

    def kill(self) -> None:
        """Kill the run, if it still goes on."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def check_foreign(self) -> None:
        """Check that nothing of others was touched."""
        assert differences(fingerprint(self.mount / "foreign"), self.foreign) == []

    def clean(self) -> Done:
        """Have ``replayer clean`` remove the rest; nothing of a run is left then."""
        done = self.shell.run("clean", self.mount)
        assert done.code == 0, done.err
        assert list(self.mount.glob("replayer-2*")) == []
        self.check_foreign()
        return done

    def tell(self, fault: str, mount: str, ending: Ending) -> None:
        """Add a row to the table of faults, if one is asked for."""
        if TABLE is not None:
            row = {
                "fault": fault,
                "mount": mount,
                "ops": ending.ops,
                "outcomes": sorted(ending.outcomes),
                "report_s": self._reported_s,
                "end_s": round(ending.took_s, 1),
                "code": ending.code,
            }
            with Path(TABLE).open("a") as file:
                file.write(json.dumps(row) + "\n")

    def _events(self) -> Iterator[str]:
        return (path.read_text() for path in self.shell.home.glob("replayer-runs/*/events.jsonl"))

    def _records(self) -> tuple[Any, int, frozenset[str]]:
        # Beside it lie the workers' own records, one level deeper.
        (file,) = self.shell.home.glob("replayer-runs/*/run.json")
        folder = file.parent
        run = json.loads((folder / "run.json").read_text())
        if not (folder / "histograms.hlog").exists():
            return run, 0, frozenset()
        shown = self.shell.run("report", folder, "--format", "json")
        assert shown.out, shown.err
        document = json.loads(shown.out)
        rows = [
            row for target in document["summary"]["targets"] for row in target["overall"]["ops"]
        ]
        outcomes = {
            outcome["outcome"]
            for row in rows
            for outcome in row["outcomes"]
            if not outcome["expected"]
        }
        return run, sum(row["count"] for row in rows), frozenset(outcomes)


def make_scene(home: Path, mount: Path) -> Scene:
    """Put a foreign tree on a mount, and return the scene."""
    home.mkdir(parents=True, exist_ok=True)
    scene = Scene(make_shell(home), mount)
    foreign = mount / "foreign"
    (foreign / "replayer-20260101T000000-0000").mkdir(parents=True)
    (foreign / "file").write_text("keep me")
    (foreign / "replayer-20260101T000000-0000" / "file").write_text("keep me too")
    scene.foreign = fingerprint(foreign)
    return scene
