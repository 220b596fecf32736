"""Writing a run folder: its name, the plan, run.json replaced atomically, events appended.

The engine writes histograms.hlog and timeline.csv into the same folder, and appends to events.jsonl
too. Reading is next door (record).
"""

import errno
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from replayer.errors import OutsideError, ReplayerError
from replayer.measure.run import Run
from replayer.paths import replace_content

PARENT = Path("replayer-runs")
"""Where run folders are made unless a person says otherwise."""


@dataclass(frozen=True)
class RunFolder:
    """A folder that one run writes into."""

    path: Path
    id: str
    """The run's id, such as ``20261121T024839-ab12``."""

    def write_plan(self, document: bytes) -> None:
        """Write plan.json, atomically.

        Raises:
            ReplayerError: There is no room, or the folder is gone.
        """
        with writing_to(self.path):
            replace_content(self.path / "plan.json", document)

    def write_run(self, run: Run) -> None:
        """Write run.json, atomically: a reader sees the old one or the new one, whole.

        Raises:
            ReplayerError: There is no room, or the folder is gone; the old one is still there.
        """
        with writing_to(self.path):
            replace_content(self.path / "run.json", run.model_dump_json(indent=2).encode() + b"\n")

    def write_end(self, run: Run) -> tuple[Run, ReplayerError | None]:
        """Write how a run ended; return the run as it is to be told, and what refused to take it.

        Where there is no room for it the run has failed. Then that is written over what is there,
        for else it would look as if it had been killed.
        """
        try:
            self.write_run(run)
        except ReplayerError as error:
            failed = {
                "status": "failed",
                "ended": run.ended,
                "failure": run.failure or str(error),
                "failure_code": run.failure_code or error.exit_code,
            }
            with suppress(OSError, ValueError):
                _write_over(self.path / "run.json", failed)
            return run.model_copy(update=failed), error
        return run, None

    def append_event(self, kind: str, t_s: float, fields: Mapping[str, JsonValue]) -> None:
        """Append a line to events.jsonl: one write with O_APPEND, lest others mix in.

        Raises:
            ReplayerError: There is no room, or the folder is gone; nothing was written then.
        """
        line = event_line(kind, t_s, fields).encode(errors="replace")
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with writing_to(self.path):
            descriptor = os.open(self.path / "events.jsonl", flags, 0o644)
            try:
                _append_whole(descriptor, line)
            finally:
                os.close(descriptor)


def event_line(kind: str, t_s: float, fields: Mapping[str, JsonValue]) -> str:
    """Return an event as events.jsonl has it."""
    return json.dumps({"t_s": t_s, "kind": kind, **fields}, ensure_ascii=False) + "\n"


def _append_whole(descriptor: int, line: bytes) -> None:
    """Append a line whole or not at all, and not behind one that the engine could write in part.

    Raises:
        OSError: There is no room.
    """
    no_room = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        raise no_room
    written = os.write(descriptor, line)
    if written < len(line):
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if os.fstat(descriptor).st_size == end:  # nobody has written behind it
            os.ftruncate(descriptor, end - written)
        raise no_room


def create_run_folder(chosen: Path | None = None, parent: Path | None = None) -> RunFolder:
    """Create the folder of a new run: ``./replayer-runs/<run id>``, or the one that was chosen.

    Args:
        chosen: The folder itself.
        parent: Where a folder named by the run's id is made, if none was chosen; None means
            ./replayer-runs.

    Raises:
        ReplayerError: The chosen folder holds something already, is no folder, or cannot be made.
    """
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
    path = (chosen if chosen is not None else (parent or PARENT) / name).absolute()
    try:
        path.mkdir(parents=True, exist_ok=chosen is not None)
        inside = next(path.iterdir(), None)
    except OSError as error:
        raise _refusal(path, error) from error
    if inside is not None:
        message = f"{path}: a run folder must be empty, this one has {inside.name}"
        raise ReplayerError(message, hint="choose another folder with -o, or leave -o out")
    return RunFolder(path, name)


def _refusal(path: Path, error: OSError) -> ReplayerError:
    message = f"{path}: cannot be created as a run folder: {error.strerror or error}"
    if error.errno in {errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return ReplayerError(message, hint="choose another folder with -o")
    return OutsideError(message, hint="choose a folder that you can write to with -o")


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Turn what the kernel says about writing to a run folder into an error to act on.

    Raises:
        ReplayerError: What is done inside found no room, or the folder is gone.
    """
    try:
        yield
    except OSError as error:
        message = f"{path}: the run folder cannot be written: {error.strerror or error}"
        raise OutsideError(
            message, hint="free some space there, or choose another folder with -o"
        ) from error


def _write_over(path: Path, changes: Mapping[str, JsonValue]) -> None:
    """Change a run.json in its place, if it stays as long as it is: that takes no room."""
    before = path.read_bytes()
    run = Run.model_validate_json(before).model_copy(update=changes)
    after = run.model_dump_json().encode()  # without its indentation there is room to spare
    if len(after) < len(before):
        with path.open("r+b") as file:
            file.write(after.ljust(len(before) - 1) + b"\n")
