"""``replayer clean``: remove the folders that runs left behind, and nothing else."""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from replayer.engine import Finding, Sandbox, Task
from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.load.asking import ask
from replayer.load.marker import MARKER, owner_in
from replayer.load.patience import Patience
from replayer.load.targets import DEFAULT_FOLDER
from replayer.load.whereabouts import Identity, identify

NAME = "clean"
HELP = "remove what killed runs left below a folder: only folders that a run has marked as its own"
PREFIX = "replayer-"
THREADS = 8  # chosen: as runs remove theirs
HUNG_S = 20.0  # chosen: a mount that takes longer for one call is taken for dead
POLL_S = 0.02
BEGUN = re.compile(r"replayer-(\d{8}T\d{6}-[0-9a-f]{4}|(doctor|direct)-[0-9a-f]{8})")
"""Names that runs and probes give to their folders: an empty one of these was begun only."""
YOUNG_S = 60.0  # chosen: a run marks its folder at once, if its mount answers


class RemovalError(ReplayerError):
    """A folder could not be removed."""

    exit_code = EXIT_ENVIRONMENT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a target, or a folder")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed")
    parser.add_argument(
        "--force", action="store_true", help="remove folders whose run is (or may be) alive, too"
    )


def run(arguments: argparse.Namespace) -> int:
    """Find the folders, then remove them; the exit code of the first refusal."""
    paths = [ask(path, partial(follow, path)) for path in arguments.paths]
    empty = [folder for path in paths for folder in ask(path, partial(find_begun, path))]
    begun = _once(empty)
    full = [
        folder
        for path in paths
        if path not in empty
        for folder in ask(path, partial(find_folders, path))
    ]
    sandboxes = [ask(folder, partial(open_folder, folder)) for folder in _once(full)]
    if not arguments.force:
        _refuse(sandboxes, begun)
    if arguments.dry_run:
        for where in (*begun, *(sandbox.path for sandbox in sandboxes)):
            print(f"would remove {where}")
    else:
        _remove(sandboxes, begun)
    if not sandboxes and not begun:
        print("nothing to remove", file=sys.stderr)
    return 0


def _refuse(sandboxes: Sequence[Sandbox], begun: Sequence[Path]) -> None:
    for sandbox in sandboxes:
        refuse_living(sandbox)
    for folder in begun:
        refuse_young(folder)


def _remove(sandboxes: Sequence[Sandbox], begun: Sequence[Path]) -> None:
    for folder in begun:
        remove_begun(folder)
    for sandbox in sandboxes:
        remove(sandbox)


def _once(folders: Sequence[Path]) -> list[Path]:
    """Leave out folders that were found before under another path."""
    found: dict[Identity, Path] = {}
    for folder in folders:
        found.setdefault(ask(folder, partial(identify, str(folder))), folder)
    return list(found.values())


def follow(path: Path) -> Path:
    """Return what a person has named, where a link leads to it; those below it are left alone."""
    return path.resolve() if path.is_symlink() else path


def find_begun(path: Path) -> list[Path]:
    """Return folders that a run was killed in the making or the removing of.

    They have a run's name and nothing in them: no marker either. The path itself, or in it or its
    default target.
    """
    if BEGUN.fullmatch(path.name):
        return [path] if _is_empty(path) else []
    return sorted(
        folder for folder in _in(path) if BEGUN.fullmatch(folder.name) and _is_empty(folder)
    )


def _in(path: Path) -> Iterator[Path]:
    """Yield what may be a run's directly below a path, and in the default target that is there."""
    yield from path.glob(f"{PREFIX}*")
    default = path / DEFAULT_FOLDER
    if not default.is_symlink():
        yield from default.glob(f"{PREFIX}*")


def _is_empty(path: Path) -> bool:
    try:
        return not path.is_symlink() and not any(path.iterdir())
    except OSError:
        return False  # no folder, or not ours to look at


def find_folders(path: Path) -> list[Path]:
    """Return the path itself if it is a run's by its marker or its name, else those in it.

    Those in it have a marker; what has only the name is refused when it is opened.

    Raises:
        ReplayerError: It does not exist.
    """
    if not path.is_dir():
        message = f"{path}: is not a folder"
        raise ReplayerError(message, hint="name a target, or the folder of a run on it")
    if BEGUN.fullmatch(path.name) or os.path.lexists(path / MARKER):
        return [path]
    return sorted(
        folder
        for folder in _in(path)
        if folder.is_dir() and not folder.is_symlink() and os.path.lexists(folder / MARKER)
    )


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
            message, hint=f"only folders with the file {MARKER} are removed"
        ) from error
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise RemovalError(message) from error


def refuse_living(sandbox: Sandbox) -> None:
    """Refuse a folder whose run still goes on, or may do so where it cannot be seen from here.

    Raises:
        ReplayerError: Names the run.
    """
    hint = "end it first, or add --force"
    owner = owner_in(sandbox.note)
    if owner is None:
        return
    if owner.elsewhere:
        message = f"{sandbox.path}: its run was started {owner.elsewhere}, and may go on there"
        raise ReplayerError(message, hint=hint)
    if owner.is_another:
        message = f"{sandbox.path}: its run still goes on (process {owner.process.pid})"
        raise ReplayerError(message, hint=hint)


def refuse_young(folder: Path) -> None:
    """Refuse an empty folder that a run may be about to mark.

    Raises:
        ReplayerError: It has changed within the last minute.
    """
    # The file system's clock is a wall clock, too.
    age_s = datetime.now(UTC).timestamp() - ask(folder, folder.lstat).st_ctime
    if age_s < YOUNG_S:
        message = f"{folder}: is empty and {max(age_s, 0):.0f} s old: a run may be making it"
        raise ReplayerError(message, hint=f"try again in {YOUNG_S:.0f} s, or add --force")


def remove_begun(folder: Path) -> None:
    """Remove a folder if nothing is in it, which the kernel makes sure of, and say so.

    Raises:
        ReplayerError: Something is in it by now, or the mount refuses.
    """
    ask(folder, folder.rmdir)
    print(f"removed {folder}: empty, a run was killed when it made it")


def remove(sandbox: Sandbox) -> None:
    """Remove one folder and say so.

    Raises:
        RemovalError: The mount refuses.
    """
    path = sandbox.path
    try:
        found = _wait(sandbox.remove(THREADS), path)
    except OSError as error:
        message = f"{error.filename or path}: {error.strerror or error}"
        raise RemovalError(message, hint=f"{path} is only partly removed") from error
    print(f"removed {path}: {found.files + found.links:,} files, {found.directories:,} directories")


def _wait(task: Task, path: str) -> Finding:
    """Wait for a removal, saying what hangs; one Ctrl-C ends it between two entries.

    Raises:
        MountError: A call does not come back.
    """
    patience = Patience(HUNG_S, HUNG_S)
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
