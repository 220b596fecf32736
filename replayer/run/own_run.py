"""A run of this very program in a process of its own: a trial of a search, the turn of a neighbour.

It lays its files out once and keeps them; later ones take them over, until they are removed.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join

import gevent

from replayer.errors import EXIT_INCONCLUSIVE, in_one_line
from replayer.measure.record import RunRecord, load_run
from replayer.run.own_command import split_failure, start_ourselves
from replayer.run.targets import NamedTarget

POLL_S = 0.1
MEASURED = frozenset({0, 1, EXIT_INCONCLUSIVE})
"""Exit codes of runs that have measured."""
WRITTEN = frozenset({"finished", "interrupted"})
"""How a run has ended once all of it is written."""


@dataclass(frozen=True)
class OwnRun:
    """A run that was started."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def record(self) -> RunRecord | None:
        """What it has measured; None: nothing."""
        return load_run(self.folder) if (self.folder / "run.json").exists() else None

    def counts(self, record: RunRecord) -> bool:
        """Whether what it has recorded counts, once its process has ended.

        A Ctrl-C that comes when all is written, and only its process has to end, kills that.
        """
        code = self.process.returncode
        return code in MEASURED or (code == -signal.SIGINT and record.status in WRITTEN)

    @property
    def failure(self) -> tuple[str, str]:
        """Why it ended, in its own words, and what to do about it; empty where it has said none."""
        return split_failure(said_beside(self.folder).read_text(errors="replace"))


def start_run(words: Sequence[str], folder: Path) -> OwnRun:
    """Start a run whose folder that is to be."""
    return start_heard([*words, "--yes", "--quiet"], folder)


def start_heard(words: Sequence[str], folder: Path) -> OwnRun:
    """Start a command whose folder that is to be; what it says goes to a file beside it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with said_beside(folder).open("wb") as said:
        process = start_ourselves([*words, "-o", str(folder)], said.fileno())
    return OwnRun(process, folder)


def said_beside(folder: Path) -> Path:
    """Return the file of what a command has said."""
    return folder.with_suffix(".txt")


def place_words(name: str, written: str, kept: str | None) -> tuple[str, ...]:
    """Return the words of where it runs: on a target, or in the folders kept of an earlier one."""
    if kept is None:
        return "--target", f"{name}={written}", "--keep"
    return "--reuse", f"{name}={kept}"


def kept_of(target: NamedTarget, record: RunRecord) -> str | None:
    """Return the folders that a run has kept on a target, with commas between; None: it has not."""
    folders = [str(path / f"replayer-{record.run.id}") for path in target.paths]
    is_kept = not target.is_on_workers and all(map(os.path.isdir, folders))
    return ",".join(folders) if is_kept else None


def remove_kept(kept: Iterable[str | None], is_abandoned: Callable[[], bool]) -> str | None:
    """Have kept folders removed; return a line that names them if they are left.

    Args:
        kept: Each as ``kept_of`` returns it.
        is_abandoned: Asked while it goes on; true leaves the rest.
    """
    folders = [folder for each in kept if each for folder in each.split(",")]
    if not folders or _has_removed(folders, is_abandoned):
        return None
    return f"left behind; remove it with: replayer clean {in_one_line(join(folders))}"


def _has_removed(folders: Sequence[str], is_abandoned: Callable[[], bool]) -> bool:
    process = start_ourselves(["clean", *folders])
    while process.poll() is None:
        if is_abandoned():
            process.terminate()
            return False
        gevent.sleep(POLL_S)
    return process.returncode == 0
