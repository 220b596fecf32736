"""``replayer clean``: remove the folders that runs left behind, and nothing else."""

import argparse
import re
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from replayer._native import Finding, Sandbox, Task
from replayer.errors import OutsideError, ReplayerError, in_lines, in_one_line
from replayer.paths import is_folder, is_link
from replayer.run.marker import MARKER, Identity, identify, owner_in
from replayer.run.targets import DEFAULT_FOLDER
from replayer.run.watchdog import Watchdog, ask
from replayer.supervisor import hung_calls

R = TypeVar("R")

PREFIX = "replayer-"
THREADS = 8  # chosen: as runs remove theirs
HUNG_S = 20.0  # chosen: a mount that takes longer for one call is taken for dead
POLL_S = 0.02
BEGUN = re.compile(r"replayer-(\d{8}T\d{6}-[0-9a-f]{4}|(doctor|direct)-[0-9a-f]{8})")
"""Names that runs and probes give to their folders: an empty one of these was begun only."""
YOUNG_S = 60.0  # chosen: a run marks its folder at once, if its mount answers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", type=Path, help="a target, or a folder that a run left"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be removed")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also remove folders of runs that may still be alive",
    )


def run(arguments: argparse.Namespace) -> int:
    """Find the folders, then remove them; what cannot be removed is told, and keeps none else."""
    refusals = Refusals()
    found = Found()
    for path in arguments.paths:
        for each in refusals.attempt(partial(ask, path, partial(look, path))):
            found.add(each)
    for refusal in found.refused:
        refusals.tell(refusal)
    begun, marked = (_once(folders, refusals) for folders in (found.begun, found.marked))
    for folder in begun:
        refusals.attempt(partial(_clear_begun, folder, arguments))
    for folder in marked:
        refusals.attempt(partial(_clear_marked, folder, arguments))
    if not begun and not marked and not refusals.exit_code:
        print("nothing to remove", file=sys.stderr)
    return refusals.exit_code


def _say(text: str) -> None:
    print(in_one_line(text))


def _clear_begun(folder: Path, arguments: argparse.Namespace) -> None:
    if not arguments.force:
        refuse_young(folder)
    if arguments.dry_run:
        _say(f"would remove {folder}")
    else:
        remove_begun(folder)


def _clear_marked(folder: Path, arguments: argparse.Namespace) -> None:
    # Opened only now: to remove those before it may have taken long, and a run may have come.
    sandbox = ask(folder, partial(open_folder, folder))
    if not arguments.force:
        refuse_living(sandbox)
    if arguments.dry_run:
        _say(f"would remove {sandbox.path}")
    else:
        remove(sandbox)


class Refusals:
    """What was refused: each is told at once, and the weightiest gives the exit code.

    Others can plant a folder that cannot be removed; it must not keep those beside it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.exit_code = 0
        """That of the weightiest until now; 0: there was none."""
        self._hung = len(hung_calls())

    def attempt(self, call: Callable[[], R]) -> tuple[R, ...]:
        """Return the result of a call, or nothing if it refuses.

        Raises:
            ReplayerError: It has interrupted the whole, or a mount hangs: nothing more is asked.
        """
        try:
            return (call(),)
        except ReplayerError as error:
            if isinstance(error.__cause__, InterruptedError) or len(hung_calls()) > self._hung:
                raise
            self.tell(error)
            return ()

    def tell(self, refusal: ReplayerError) -> None:
        """Say what was refused and why."""
        print(in_lines(refusal), file=sys.stderr)
        self.exit_code = max(self.exit_code, refusal.exit_code)


@dataclass
class Found:
    """What is on some paths."""

    begun: list[Path] = field(default_factory=list)
    """Empty folders with a run's name: a run was killed in the making or the removing of them, so
    that they have no marker either."""
    marked: list[Path] = field(default_factory=list)
    """Folders that are a run's by their marker, or that have a run's name and cannot be looked into
    or were named themselves: whoever opens them says what is wrong."""
    refused: list[ReplayerError] = field(default_factory=list)
    """Places that cannot be looked into."""

    def add(self, other: "Found") -> None:
        """Take in what was found on another path."""
        self.begun += other.begun
        self.marked += other.marked
        self.refused += other.refused


def look(path: Path) -> Found:
    """Return the path itself if it is a run's by its marker or its name, else what is in it.

    That is what lies directly in it, and in the default target that is there. A link is followed
    if it is the path itself; those below it are left alone.

    Raises:
        ReplayerError: It is no folder, or the path gives no answer.
    """
    path = path.resolve() if is_link(path) else path
    if not is_folder(path):
        message = f"{path}: is not a folder"
        raise ReplayerError(message, hint="name a target, or the folder of a run on it")
    found = Found()
    _sort(path, found)
    if found.begun or found.marked:
        return found
    if BEGUN.fullmatch(path.name):
        return Found(marked=[path])
    _look_in(path, found)
    if not found.refused:
        _look_in(path / DEFAULT_FOLDER, found)
    return found


def _look_in(place: Path, found: Found) -> None:
    try:
        if not stat.S_ISDIR(place.lstat().st_mode):
            return
        folders = sorted(path for path in place.iterdir() if path.name.startswith(PREFIX))
    except FileNotFoundError:
        return
    except OSError as error:
        found.refused.append(_unreadable(place, error))
        return
    for folder in folders:
        _sort(folder, found)


def _sort(folder: Path, found: Found) -> None:
    """Note a folder that is a run's."""
    is_named = BEGUN.fullmatch(folder.name) is not None
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return
        if is_named and not any(folder.iterdir()):
            found.begun.append(folder)
            return
        (folder / MARKER).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        if not is_named:  # for all that is known it is somebody else's
            return
    found.marked.append(folder)


def _once(folders: Sequence[Path], refusals: Refusals) -> list[Path]:
    """Leave out folders that were found before under another path."""
    found: dict[Identity, Path] = {}
    for folder in folders:
        for identity in refusals.attempt(partial(ask, folder, partial(identify, str(folder)))):
            found.setdefault(identity, folder)
    return list(found.values())


def _unreadable(path: Path, error: OSError) -> OutsideError:
    return OutsideError(f"{path}: {error.strerror}")


def open_folder(path: Path) -> Sandbox:
    """Open a run's folder.

    Raises:
        ReplayerError: It has no marker, or cannot be opened.
    """
    try:
        return Sandbox.open(str(path))
    except ValueError as error:
        message = f"{path}: was not made by a run: {error}"
        raise ReplayerError(
            message, hint=f"replayer removes only folders that contain the file {MARKER}"
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def refuse_living(sandbox: Sandbox) -> None:
    """Refuse a folder whose run still goes on, or may do so where it cannot be seen from here.

    Raises:
        ReplayerError: Names the run.
    """
    hint = "end it first, or use --force"
    owner = owner_in(sandbox.note)
    if owner is None:
        return
    if owner.elsewhere:
        message = f"{sandbox.path}: its run was started {owner.elsewhere} and may still be running"
        raise ReplayerError(message, hint=hint)
    if owner.is_another:
        message = f"{sandbox.path}: its run is still running (process {owner.process.pid})"
        raise ReplayerError(message, hint=hint)


def refuse_young(folder: Path) -> None:
    """Refuse an empty folder that a run may be about to mark.

    Raises:
        ReplayerError: It has changed within the last minute.
    """
    # The file system's clock is a wall clock, too.
    age_s = datetime.now(UTC).timestamp() - ask(folder, folder.lstat).st_ctime
    if age_s < YOUNG_S:
        message = f"{folder}: is empty and {max(age_s, 0):.0f} s old; a run may be creating it"
        raise ReplayerError(message, hint=f"try again in {YOUNG_S:.0f} s, or use --force")


def remove_begun(folder: Path) -> None:
    """Remove a folder if nothing is in it, which the kernel makes sure of, and say so.

    Raises:
        ReplayerError: Something is in it by now, or the mount refuses.
    """
    ask(folder, folder.rmdir)
    _say(f"removed {folder}: an empty folder of a killed run")


def remove(sandbox: Sandbox) -> None:
    """Remove one folder and say so.

    Raises:
        OutsideError: The mount refuses.
    """
    path = sandbox.path
    try:
        found = _wait(sandbox.remove(THREADS), path)
    except OSError as error:
        message = f"{error.filename or path}: {error.strerror or error}"
        raise OutsideError(message, hint=f"{path} is only partly removed") from error
    _say(f"removed {path}: {found.files + found.links:,} files, {found.directories:,} directories")


def _wait(task: Task, path: str) -> Finding:
    """Wait for a removal, saying what hangs; one Ctrl-C ends it between two entries.

    Raises:
        MountError: A call does not come back.
    """
    patience = Watchdog(HUNG_S, HUNG_S)
    while not task.finished:
        try:
            for hang in patience.look(task):
                print(hang, file=sys.stderr, flush=True)
            time.sleep(POLL_S)
        except KeyboardInterrupt:
            task.cancel()
            patience.end()
        if patience.is_over:
            raise patience.give_up(path, path)
    return task.result()
