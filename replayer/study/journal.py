"""The folder of a study: which steps are done, so that an interrupted one can go on.

``study.json`` is replaced as a whole after each step. Each attempt at a step has a run folder of
its own; what an interrupted attempt measured stays there.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.measure import Frozen
from replayer.measure.runfolder import writing_to
from replayer.study.places import Place

__all__ = ["Attempt", "Journal", "State", "create_journal", "open_journal"]

FILE = "study.json"
FORMAT = 2


class UnmadeFolderError(ReplayerError):
    """The folder of a study cannot be made."""

    exit_code = EXIT_ENVIRONMENT


class Attempt(Frozen):
    """One attempt at a step."""

    folder: str
    """The run folder, beside study.json."""
    done: bool
    """Whether it is not to be tried again."""
    code: int | None = None
    """Exit code of its command; null: there was none, or the user interrupted it."""
    says: str | None = None
    """Why it has no result, or not all of it."""


class State(Frozen):
    """What study.json holds."""

    format: int = FORMAT
    study: str
    """Its name, or its file."""
    steps: str
    """The fingerprint of its steps."""
    targets: tuple[str, ...]
    places: tuple[Place, ...]
    """What each path of the targets lay on when it began."""
    quick: bool
    rounds: int | None
    attempts: dict[str, tuple[Attempt, ...]] = Field(default_factory=dict)


@dataclass
class Journal:
    """A study's folder."""

    path: Path
    state: State

    def last(self, step: str) -> Attempt | None:
        """Return the last attempt at a step."""
        found = self.state.attempts.get(step, ())
        return found[-1] if found else None

    def is_done(self, step: str) -> bool:
        """Whether a step is not to be tried again."""
        last = self.last(step)
        return last is not None and last.done

    def next_folder(self, step: str) -> Path:
        """Return where the next attempt goes; nothing is there yet."""
        number = len(self.state.attempts.get(step, ())) + 1
        while (self.path / f"{step}-{number}").exists():  # an attempt that was killed
            number += 1
        return self.path / f"{step}-{number}"

    def note(self, step: str, attempt: Attempt) -> None:
        """Keep how an attempt went."""
        attempts = dict(self.state.attempts)
        attempts[step] = (*attempts.get(step, ()), attempt)
        self.state = self.state.model_copy(update={"attempts": attempts})
        self.write()

    def write(self) -> None:
        """Replace study.json.

        Raises:
            ReplayerError: There is no room, or the folder is gone.
        """
        beside = self.path / f".{FILE}"
        with writing_to(self.path):
            beside.write_text(self.state.model_dump_json(indent=2) + "\n", encoding="utf-8")
            beside.replace(self.path / FILE)


def create_journal(path: Path, state: State) -> Journal:
    """Make a study's folder.

    Raises:
        ReplayerError: It holds something.
        UnmadeFolderError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        inside = next(path.iterdir(), None)
        if inside is not None:
            message = f"{path}: the folder of a study must be empty, this one holds {inside.name}"
            raise ReplayerError(message, hint="choose another with -o, or go on with --resume")
        journal = Journal(path, state)
        journal.write()
    except OSError as error:
        message = f"{path}: cannot be made a study's folder: {error.strerror or error}"
        raise UnmadeFolderError(message, hint="choose another with -o") from error
    return journal


def open_journal(path: Path) -> Journal:
    """Read a study's folder.

    Raises:
        ReplayerError: It is none, or of another version.
    """
    file = path / FILE
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        written = document["format"]
        state = State.model_validate(document) if written == FORMAT else None
    except (OSError, ValueError, ValidationError, KeyError, TypeError) as error:
        message = f"{path}: is no study's folder"
        raise ReplayerError(message, hint="a study says which folder it writes") from error
    if state is None:
        message = f"{file}: format {written}, this version reads format {FORMAT}"
        raise ReplayerError(message, hint="go on with the version that wrote it")
    return Journal(path.absolute(), state)
