"""The folder of a study: which steps are done, so that an interrupted study can continue.

``study.json`` is replaced as a whole after each step. Each attempt at a step has a run folder of
its own; what an interrupted attempt measured stays there. A continued study must find the mounts
on which it began: a mount that is gone leaves an empty folder of another file system. A step is a
process of its own and may outlive its study. Folders left on targets are named, not removed.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import Field, ValidationError

from replayer.errors import OutsideError, ReplayerError
from replayer.measure.facts import Frozen, MountFacts, collect_facts
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import is_alive, is_elsewhere
from replayer.measure.runfolder import writing_to
from replayer.measure.summarise import summarise
from replayer.run.targets import MountError, parse_targets
from replayer.run.watchdog import ask
from replayer.verdict.judgement import judge


class StudyTarget(Frozen):
    """What one path of a target lies on."""

    target: str
    path: str
    filesystem: str
    source: str
    mount_point: str
    root: str
    """Which part of the file system is mounted there, see proc_pid_mountinfo(5)."""

    def __str__(self) -> str:
        part = "" if self.root == "/" else f", {self.root} of it"
        return f"{self.filesystem} {self.source} on {self.mount_point}{part}"


def find_places(targets: Sequence[str]) -> tuple[StudyTarget, ...]:
    """Look at each path of each target, in bounded time.

    Raises:
        ReplayerError: One is not there or does not answer.
    """
    return tuple(
        _place(target.name, ask(path, partial(collect_facts, path)))
        for target in parse_targets(targets)
        for path in target.paths
    )


def _place(target: str, mount: MountFacts) -> StudyTarget:
    return StudyTarget.made_of(dict(mount), target=target, source=_source(mount))


def _source(mount: MountFacts) -> str:
    """Return what is mounted; of a disk its size, as a kernel may name it anew at each start."""
    if mount.source.startswith("/dev/"):
        return f"of {mount.space.bytes_total:,} bytes"
    return mount.source


def refuse_other_places(then: Sequence[StudyTarget], now: Sequence[StudyTarget]) -> None:
    """Refuse to go on where a target lies on something else than when the study began.

    Raises:
        MountError: One does.
    """
    for before, after in zip(then, now, strict=True):
        if before != after:
            message = (
                f"target {before.target}: {after.path} is {after}, but was {before} when the study "
                "started"
            )
            raise MountError(message, hint="mount it as before, or start a new study")


FILE = "study.json"
FORMAT = 2


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


class StudyState(Frozen):
    """What study.json holds."""

    format: int = FORMAT
    study: str
    """Its name, or its file."""
    steps: str
    """The fingerprint of its steps."""
    targets: tuple[str, ...]
    places: tuple[StudyTarget, ...]
    """What each path of the targets lay on when it began."""
    quick: bool
    rounds: int | None
    attempts: dict[str, tuple[Attempt, ...]] = Field(default_factory=dict)


@dataclass
class Journal:
    """A study's folder."""

    path: Path
    state: StudyState

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


def create_journal(path: Path, state: StudyState) -> Journal:
    """Make a study's folder.

    Raises:
        ReplayerError: It holds something.
        OutsideError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        inside = next(path.iterdir(), None)
        if inside is not None:
            message = f"{path}: the folder of a study must be empty, this one has {inside.name}"
            raise ReplayerError(
                message, hint="choose another folder with -o, or continue with --resume"
            )
        journal = Journal(path, state)
        journal.write()
    except OSError as error:
        message = f"{path}: cannot be created as a study folder: {error.strerror or error}"
        raise OutsideError(message, hint="choose another folder with -o") from error
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
        state = StudyState.model_validate(document) if written == FORMAT else None
    except (OSError, ValueError, ValidationError, KeyError, TypeError) as error:
        message = f"{path}: is not a study folder"
        raise ReplayerError(message, hint="a study prints the folder that it writes") from error
    if state is None:
        message = f"{file}: format {written}, this version reads format {FORMAT}"
        raise ReplayerError(message, hint="continue with the version that wrote it")
    return Journal(path.absolute(), state)


SETTLED = frozenset({0, 1, 4})
"""Exit codes after which a step is not tried again: it ran, whatever it proved."""
ORPHAN_S = 120.0  # chosen: users end within their stop timeout, and folders are removed
POLL_S = 0.1


def adopt(journal: Journal, step: str, say: Callable[[str], None]) -> None:
    """Note attempts that a killed study could not note; wait for an attempt that still runs.

    Raises:
        ReplayerError: One does not end.
    """
    noted = {attempt.folder for attempt in journal.state.attempts.get(step, ())}
    for folder in sorted(journal.path.glob(f"{step}-*")):
        number = folder.name.removeprefix(f"{step}-")
        if folder.name in noted or not number.isdecimal():  # another step's, such as STEP-warm-1
            continue
        if not (folder / "run.json").exists():  # it was killed before there was a run
            continue
        _wait_for(load_run(folder), say)
        code = finished_code(folder)
        if code is not None:
            says = "its study was killed before it ended"
            done = code in SETTLED
            journal.note(step, Attempt(folder=folder.name, done=done, code=code, says=says))


def has_measured(folder: Path) -> bool:
    """Whether a step has kept its results: what it does from then on is show them and remove."""
    return _fact(folder, "status") not in {None, "running"}


def finished_code(folder: Path) -> int | None:
    """Return what the record of a run that finished comes to as an exit code; None of any other."""
    if _fact(folder, "status") != "finished":
        return None
    record = load_run(folder)
    return judge(record, summarise(record)).exit_code


def _fact(folder: Path, name: str) -> str | None:
    """Return what run.json says of one fact; None: there is no such file, or it does not say."""
    with suppress(OSError, ValueError, KeyError):
        return str(json.loads((folder / "run.json").read_text())[name])
    return None


def find_left(folder: Path, targets: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of a step that are still on its targets."""
    run = _fact(folder, "id")
    return () if run is None else tuple(_left(f"replayer-{run}", targets))


def _left(name: str, targets: Sequence[str]) -> Iterator[str]:
    for target in parse_targets(targets):
        path = target.paths[0] / name
        try:
            is_there = ask(path, path.exists)
        except ReplayerError:
            is_there = True  # it hangs: nothing was removed there
        if is_there:
            yield str(path)


def _wait_for(record: RunRecord, say: Callable[[str], None]) -> None:
    process = record.run.process
    if record.status == "running" and is_elsewhere(process):
        # Mostly of a container that is gone with it; to refuse would keep a study from going on.
        say(
            f"{record.folder.name} was started in another PID namespace (a container?): end it if "
            "it is still running"
        )
    if is_alive(process):
        say(f"{record.folder.name} is still ending (process {process.pid}): waiting")
    deadline = time.monotonic() + ORPHAN_S
    while is_alive(process):
        if time.monotonic() > deadline:
            message = f"{record.folder}: the step of the killed study is still running"
            raise ReplayerError(message, hint=f"end it first: kill {process.pid}")
        time.sleep(POLL_S)
