"""Where jobs work: the run's own folder on a target, or a block device that the user named.

Made before the first job, emptied after each, removed at the end. The engine's sandbox does what is
done to a mount; what is here only asks it.
"""

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from replayer._native import Sandbox, Task
from replayer.errors import ReplayerError
from replayer.fio import JobFile, bytes_needed, find_confinement, folders_of
from replayer.fio.devices import Device, claim_device, describe_device
from replayer.fio.promises import is_direct
from replayer.fio.run_record import marker_note
from replayer.measure import Target as TargetFacts
from replayer.measure import collect_target
from replayer.run.interruption import Interruption
from replayer.run.targets import MountError, NamedTarget, check_place, parse_targets
from replayer.run.watchdog import ANSWER_S, Watchdog, ask, finish

__all__ = ["NO_ROOM", "DevicePlace", "FolderPlace", "JobPlace", "without_direct"]


NO_ROOM = "make room, or use another target; `replayer baseline --size 10%` makes files smaller"
THREADS = 8  # chosen: as runs remove theirs


class JobPlace(Protocol):
    """Where the jobs of a target work."""

    name: str
    device: Path | None
    is_hanging: bool

    def check(self) -> None:
        """Refuse a place that cannot be used, before anything is made."""

    def facts(self, index: int) -> TargetFacts:
        """Describe it."""

    def create(self, run: str, note: str) -> None:
        """Make what is needed before the first job."""

    def require(self, file: JobFile) -> None:
        """Refuse a job file that cannot be run here."""

    def prepare(self, file: JobFile) -> Path:
        """Make the folders that a job file names; return the folder that fio starts in."""

    def clear(self, interruption: Interruption) -> None:
        """Remove what a job has left."""

    def remove(self, interruption: Interruption) -> None:
        """Remove everything that was made."""

    def left(self) -> str:
        """Return where it is, for who removes it by hand."""


@dataclass
class FolderPlace:
    """A folder on a mount.

    Attributes:
        target: Where it lies.
        device: None: it is no device.
        is_hanging: Whether a call on it was given up on: nothing more is asked of it.
    """

    target: NamedTarget
    device: Path | None = None
    is_hanging: bool = False
    _sandbox: Sandbox | None = None

    def __post_init__(self) -> None:
        self.name = self.target.name
        if len(self.target.paths) > 1:
            message = f"--target {self.name}: fio works through one mount point, got several"
            raise ReplayerError(message, hint="name one path")

    @property
    def path(self) -> Path:
        """The folder that the target names."""
        return self.target.paths[0]

    def check(self) -> None:
        """Look at the folder."""
        ask(self.path, partial(check_place, self.target, self.path))

    def facts(self, index: int) -> TargetFacts:
        """Describe the mount."""
        described = partial(collect_target, index, self.name, [self.path], find_confinement())
        return ask(self.path, described)

    def create(self, run: str, note: str) -> None:
        """Make the run's folder."""
        self._sandbox = ask(self.path, partial(Sandbox.create, str(self.path), run, note))

    def require(self, file: JobFile) -> None:
        """Refuse a job file that needs more room than there is, or O_DIRECT where there is none."""
        if self._sandbox is None:
            return
        direct = [section for section in file.sections if is_direct(section)]
        if direct and not ask(self.path, self.has_direct):
            message = (
                f"{self.path}: direct=1 of job {direct[0].name} ({file.source}) is not possible: "
                "this file system has no O_DIRECT"
            )
            raise MountError(message, hint="use another target, or a job file without direct=1")
        needed, space = bytes_needed(file), ask(self.path, self._sandbox.space)
        if space.bytes_total and needed > space.bytes_free:
            message = (
                f"{self.path}: {file.source} needs {needed:,} bytes, only {space.bytes_free:,} "
                "are free"
            )
            raise MountError(message, hint=NO_ROOM)

    def prepare(self, file: JobFile) -> Path:
        """Make the folders."""
        folder = Path(self._opened().path)
        for name in folders_of(file):
            ask(folder, partial(_make_folders, folder, name))
        return folder

    def clear(self, interruption: Interruption) -> None:
        """Wipe the run's folder but for its marker."""
        del interruption  # a wipe that is cut off is followed by the removal
        self._finish(self._opened().wipe(THREADS), lambda: False)

    def remove(self, interruption: Interruption) -> None:
        """Remove the run's folder; a second Ctrl-C that comes now ends that."""
        if self.is_hanging:
            message = f"{self.path}: calls hang there"
            raise MountError(message)
        if self._sandbox is not None:
            abandoned = partial(interruption.abandons_removal, _say)
            self._finish(self._sandbox.remove(THREADS), abandoned)
            self._sandbox = None

    def left(self) -> str:
        """Return the run's folder, or where it would be."""
        return str(self.path) if self._sandbox is None else self._sandbox.path

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            message = f"{self.path}: the run's folder was not made"
            raise ReplayerError(message)
        return self._sandbox

    def has_direct(self) -> bool:
        """Whether a file can be opened past the page cache, see open(2) on EINVAL."""
        probe = Path(self._opened().path, "direct")
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT
            os.close(os.open(probe, flags, 0o600))
        except OSError:
            return False
        finally:
            probe.unlink(missing_ok=True)
        return True

    def _finish(self, task: Task, cancelled: Callable[[], bool]) -> None:
        """Wait for a task, saying what hangs.

        Raises:
            ReplayerError: It failed, or a call does not come back: nothing is asked there again.
        """
        watchdog = Watchdog(ANSWER_S, ANSWER_S)
        try:
            finish(task, self.path, watchdog, cancelled)
        finally:
            self.is_hanging |= watchdog.is_over


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _make_folders(folder: Path, name: str) -> None:
    """Make a folder below another and those between, through no link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(folder, flags)
    for part in Path(name).parts:
        try:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            inner = os.open(part, flags, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    os.close(at)


@dataclass
class DevicePlace:
    """A block device without a file system, or whose file system the user gives up."""

    name: str
    found: Device
    is_hanging: bool = False

    def __post_init__(self) -> None:
        self.device: Path | None = self.found.path
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._claim: int | None = None

    def check(self) -> None:
        """Do nothing: it was looked at when its name was read."""

    def facts(self, index: int) -> TargetFacts:
        """Describe the device."""
        return describe_device(index, self.name, self.found)

    def create(self, run: str, note: str) -> None:
        """Claim the device, and make a folder for fio to start in."""
        del run, note
        self._claim = claim_device(self.found.path)
        self._folder = tempfile.TemporaryDirectory(prefix="replayer-fio-")

    def require(self, file: JobFile) -> None:
        """Refuse jobs that write, unless the user gives up the data."""
        for section in file.sections:
            if not self.found.expendable and section.pattern not in {"read", "randread"}:
                hint = f"to overwrite all of it: --i-will-lose-the-data {self.found.path}"
                section.place.refuse(f"job {section.name} writes to {self.found.path}", hint)

    def prepare(self, file: JobFile) -> Path:
        """Return an empty folder."""
        del file
        return Path(self._folder.name if self._folder is not None else "/")

    def clear(self, interruption: Interruption) -> None:
        """Leave the device as it is."""

    def remove(self, interruption: Interruption) -> None:
        """Let go of the device, and remove the empty folder."""
        del interruption
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def left(self) -> str:
        """Return the folder."""
        return self._folder.name if self._folder is not None else ""


def without_direct(files: Sequence[JobFile], targets: Sequence[str]) -> tuple[str, ...]:
    """Return those targets that have no O_DIRECT, if the jobs need it.

    A target that cannot be asked is not among them: who runs the jobs there says why.
    """
    if not any(is_direct(section) for file in files for section in file.sections):
        return ()
    return tuple(word for word in targets if _lacks_direct(word, files))


def _lacks_direct(word: str, files: Sequence[JobFile]) -> bool:
    run = f"direct-{secrets.token_hex(4)}"
    try:
        (target,) = parse_targets([word])
        place = FolderPlace(target)
        place.create(run, marker_note(run, files))
    except ReplayerError:
        return False
    try:
        return not ask(place.path, place.has_direct)
    except ReplayerError:
        return False
    finally:
        with suppress(ReplayerError):
            place.remove(Interruption())
