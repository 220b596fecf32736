"""The runs in a folder: listed, found by name, and kept under names of one's own.

A run is named by the path of its folder, its id, a beginning of that which no other run has,
``latest``, ``latest~N`` (N runs before), or the name that it is kept under.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from replayer.errors import ReplayerError
from replayer.measure.record import load_run
from replayer.measure.run import Run
from replayer.measure.runfolder import PARENT, writing_to
from replayer.paths import (
    UnaskablePathError,
    exists,
    is_file,
    is_folder,
    is_link,
    replace_content,
)

MOST_RUNS = 200
"""Chosen: the newest ones; nobody reads a longer list."""
MOST_NAMED = 4  # chosen: runs that a hint names
RUN_HELP = "a run: its folder, its id or the beginning of it, latest, latest~1, or a kept name"
KEPT = "kept.json"
_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class PastRun:
    """A run folder, as far as run.json tells."""

    name: str
    run: Run


def list_runs(folder: Path = PARENT, most: int = MOST_RUNS) -> list[PastRun]:
    """Return the runs in a folder, newest first; what is no run is left out."""
    found = (_load(folder / name) for name in run_names(folder)[:most])
    return [run for run in found if run is not None]


def run_names(folder: Path = PARENT) -> list[str]:
    """Return the names of the runs in a folder, newest first; none where it cannot be listed."""
    return names_with(folder, "run.json")


def names_with(folder: Path, document: str) -> list[str]:
    """Return the names of the folders in a folder that hold a document, the last ones first."""
    try:
        found = (each.name for each in folder.iterdir() if _holds(each, document))
        return sorted(found, reverse=True)
    except OSError:
        return []


def find_run(word: str, folder: Path = PARENT) -> Path:
    """Return the folder of the run that a word names.

    Raises:
        ReplayerError: None has that name, or several begin with it.
    """
    if os.sep in word or exists(Path(word)):
        return Path(word)  # whoever reads it says what is wrong with it
    names = run_names(folder)
    latest = _LATEST.fullmatch(word)
    if latest:
        place = int(latest[1] or 0)
        if place < len(names):
            return folder / names[place]
        message = f"{word}: {folder} holds {len(names)} runs"
        raise ReplayerError(message, hint="'replayer run' creates them; see replayer runs")
    kept = kept_runs(folder).get(word)
    if kept is not None:
        return kept
    found = [name for name in names if name.startswith(word)]
    if len(found) == 1:
        return folder / found[0]
    if found:
        message = f"{word}: {len(found)} runs in {folder} begin like this"
        raise ReplayerError(message, hint=f"write more of it: {', '.join(found[:MOST_NAMED])}")
    message = f"{word}: no run has that name"
    raise ReplayerError(message, hint="see replayer runs, or give the path of a run folder")


def previous_of(path: Path, run: Run) -> Path | None:
    """Return the newest run beside a run that did the same work before it; None: there is none."""
    for name in run_names(path.parent):
        past = _load(path.parent / name) if name < path.name else None
        if past is not None and past.run.plan.fingerprint == run.plan.fingerprint:
            return path.parent / name
    return None


def kept_runs(folder: Path = PARENT) -> Mapping[str, Path]:
    """Return the folder of each run that is kept under a name.

    Raises:
        ReplayerError: The file with the names cannot be read.
    """
    file = folder / KEPT
    try:
        named = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _damaged(file) from error
    if not isinstance(named, dict) or not all(isinstance(path, str) for path in named.values()):
        raise _damaged(file)
    return {name: folder / path for name, path in named.items()}


def _damaged(file: Path) -> ReplayerError:
    message = f"{file}: the names of kept runs cannot be read"
    return ReplayerError(message, hint="remove the file, and keep the runs again")


def keep_run(name: str, path: Path, folder: Path = PARENT) -> Path | None:
    """Keep a run under a name; return the run that had the name before.

    Raises:
        ReplayerError: The name is none, the run is none, or the name cannot be written.
    """
    if not _NAME.fullmatch(name) or _LATEST.fullmatch(name):
        message = f"{name!r} cannot name a run"
        hint = "use a letter, then up to 63 letters, digits, dots, hyphens or underscores"
        raise ReplayerError(message, hint=hint)
    kept = kept_runs(folder)
    _write_kept({**kept, name: path}, folder)
    return kept.get(name)


def keep_ended_run(name: str, path: Path, folder: Path = PARENT) -> Path | None:
    """Do what ``keep_run`` does with a run that has ended.

    Raises:
        ReplayerError: It has not, or as ``keep_run`` does.
    """
    if load_run(path).status == "running":
        raise ReplayerError(f"{path}: the run has not ended yet", hint="keep it once it has ended")
    return keep_run(name, path.absolute(), folder)


def forget_name(name: str, folder: Path = PARENT) -> Path:
    """Take a name from the run that is kept under it, and return that run, which stays.

    Raises:
        ReplayerError: No run is, or the names cannot be written.
    """
    kept = dict(kept_runs(folder))
    if name not in kept:
        raise ReplayerError(f"{name}: no run is kept under that name", hint="see replayer runs")
    path = kept.pop(name)
    _write_kept(kept, folder)
    return path


def names_by_run(folder: Path = PARENT) -> Mapping[Path, list[str]]:
    """Return the names that each run is kept under, by its folder without links.

    Raises:
        ReplayerError: The file with the names cannot be read.
    """
    names: dict[Path, list[str]] = defaultdict(list)
    for name, path in kept_runs(folder).items():
        names[path.resolve()].append(name)
    return names


def _write_kept(kept: Mapping[str, Path], folder: Path) -> None:
    named = {key: os.path.relpath(each, folder) for key, each in kept.items()}
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_content(folder / KEPT, (json.dumps(named, indent=2) + "\n").encode())


def _holds(folder: Path, document: str) -> bool:
    """Whether a folder holds a document; those of others may not let themselves be looked into."""
    try:
        return not is_link(folder) and is_folder(folder) and is_file(folder / document)
    except UnaskablePathError:
        return False


def _load(folder: Path) -> PastRun | None:
    try:
        return PastRun(folder.name, Run.model_validate_json((folder / "run.json").read_bytes()))
    except (OSError, ValidationError):
        return None
