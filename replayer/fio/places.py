"""Where jobs work: the run's own folder on a target, or a block device that the user named.

Made before the first job, emptied after each, removed at the end.
"""

import os
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.fio.amounts import bytes_needed
from replayer.fio.devices import Device, claim_device, describe_device
from replayer.fio.fence import find_confinement
from replayer.fio.jobfile import JobFile
from replayer.fio.promises import is_direct
from replayer.fio.run_record import note_of_jobs
from replayer.fio.writing import folders_of
from replayer.measure.run import Target as TargetFacts
from replayer.measure.run import collect_target
from replayer.run.interruption import Interruption
from replayer.run.options import DEFAULT_STOP_TIMEOUT_S
from replayer.run.progress import ProgressDisplay
from replayer.run.target_dir import DirContext, RunDir
from replayer.run.targets import MountError, check_place, parse_targets

NO_ROOM = (
    "free some space, or use another target; `replayer baseline --size 10%` makes files smaller"
)


@dataclass
class FolderPlace(RunDir):
    """A folder on a mount."""

    device: Path | None = None

    def __post_init__(self) -> None:
        self.name = self.target.name
        if len(self.target.paths) > 1:
            message = f"--target {self.name}: fio works through one mount point, got several"
            raise ReplayerError(message, hint="give one path")

    @property
    def path(self) -> Path:
        """The folder that the target names."""
        return self.target.paths[0]

    def check(self) -> None:
        """Look at the folder."""
        self.ask(self.path, partial(check_place, self.target, self.path))

    def facts(self, index: int) -> TargetFacts:
        """Describe the mount."""
        described = partial(collect_target, index, self.name, [self.path], find_confinement())
        return self.ask(self.path, described)

    def check_job(self, file: JobFile) -> None:
        """Refuse a job file that needs more room than there is, or O_DIRECT where there is none."""
        direct = [section for section in file.sections if is_direct(section)]
        if direct and not self.has_direct():
            message = (
                f"{self.path}: direct=1 of job {direct[0].name} ({file.source}) fails: this file "
                "system has no O_DIRECT"
            )
            raise MountError(message, hint="use another target, or a job file without direct=1")
        needed, space = bytes_needed(file), self.ask(self.path, self.sandboxes[0].space)
        if space.bytes_total and needed > space.bytes_free:
            message = (
                f"{self.path}: {file.source} needs {needed:,} bytes, only {space.bytes_free:,} "
                "are free"
            )
            raise MountError(message, hint=NO_ROOM)

    def prepare(self, file: JobFile) -> Path:
        """Make the folders."""
        folder = Path(self.sandboxes[0].path)
        for name in folders_of(file):
            self.ask(folder, partial(_make_folders, folder, name))
        return folder

    def clear(self) -> None:
        """Wipe the run's folder but for its marker."""
        self.wipe()

    def remove(self) -> None:
        """Remove the run's folder; a second Ctrl-C that comes now ends that."""
        if self.is_hanging:
            raise MountError(f"{self.path}: calls on it hang")
        if self.sandboxes:
            super().remove()

    def left(self) -> str:
        """Return the run's folder, or where it would be."""
        return self.place or str(self.path)

    def has_direct(self) -> bool:
        """Whether a file can be opened past the page cache."""
        return self.ask(self.path, partial(_has_direct, Path(self.sandboxes[0].path, "direct")))


def _has_direct(probe: Path) -> bool:
    """Whether a new file can be opened with O_DIRECT, see open(2) on EINVAL."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT
        os.close(os.open(probe, flags, 0o600))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


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

    def check_job(self, file: JobFile) -> None:
        """Refuse jobs that write, unless the user gives up the data."""
        for section in file.sections:
            if not self.found.expendable and section.pattern not in {"read", "randread"}:
                hint = (
                    f"to overwrite the whole device, add --i-will-lose-the-data {self.found.path}"
                )
                section.place.refuse(f"job {section.name} writes to {self.found.path}", hint)

    def prepare(self, file: JobFile) -> Path:
        """Return an empty folder."""
        del file
        return Path(self._folder.name if self._folder is not None else "/")

    def clear(self) -> None:
        """Leave the device as it is."""

    def remove(self) -> None:
        """Let go of the device, and remove the empty folder."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def left(self) -> str:
        """Return the folder."""
        return self._folder.name if self._folder is not None else ""


JobPlace = FolderPlace | DevicePlace

UNWATCHED = DirContext(ProgressDisplay(), Interruption(), DEFAULT_STOP_TIMEOUT_S)
"""That of a folder in which nothing is run."""


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
        place = FolderPlace(target, UNWATCHED)
        place.create(run, note_of_jobs(run, files))
    except ReplayerError:
        return False
    try:
        return not place.has_direct()
    except ReplayerError:
        return False
    finally:
        with suppress(ReplayerError):
            place.remove()
