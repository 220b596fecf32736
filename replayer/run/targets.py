"""Targets: what the command line names, checked before anything is created on it.

A target is a name and one or more mount points of the same export. Nothing is written here; a
target that passes goes on to the target folder, where its folder is made.
"""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import category

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.paths import is_link
from replayer.run.interruption import InterruptedRunError

DEFAULT_FOLDER = Path("replayer-data")
"""The target of a run that names none."""
FORBIDDEN = ("/dev", "/proc", "/sys")
UNSHOWABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, bytes that are not UTF-8, ends of lines and paragraphs."""
GONE = frozenset({errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EHOSTDOWN, errno.ETIMEDOUT})


class TargetError(ReplayerError):
    """A target that cannot be meant."""


class MountError(ReplayerError):
    """A target that is meant, but cannot be used as it is."""

    exit_code = EXIT_ENVIRONMENT


_REASONS: tuple[tuple[frozenset[int], type[ReplayerError], str, str], ...] = (
    (
        frozenset({errno.ENOSPC, errno.EDQUOT}),
        MountError,
        "no space left",
        "free some space or inodes, or use another target",
    ),
    (frozenset({errno.EROFS}), MountError, "is mounted read-only", "remount it read-write"),
    (
        frozenset({errno.EACCES}),
        MountError,
        "permission denied for this user",
        "check its owner and mode, and those of the folders on its way",
    ),
    (
        frozenset({errno.EPERM}),
        MountError,
        "operation not permitted for this user",
        "check its owner, mode and attributes (lsattr)",
    ),
    (
        frozenset({errno.EXDEV}),
        MountError,
        "is a mount point inside the run's folder",
        "unmount it: a run stays on the mount of its folder",
    ),
    (GONE, MountError, "the mount does not answer", "check that its server is up"),
    (
        frozenset({errno.ENOENT}),
        TargetError,
        "does not exist",
        "create the folder, or mount it, first",
    ),
    (
        frozenset({errno.ENOTDIR, errno.ELOOP}),
        TargetError,
        "is not a folder",
        "a target must be a folder on the mount",
    ),
)


@dataclass(frozen=True)
class NamedTarget:
    """A name and the folders it is reached through, one for each mount point."""

    name: str
    paths: tuple[Path, ...]
    written: str = field(default="", compare=False)
    """The folders as the command line has them, with commas between."""
    is_beside: bool = False
    """Whether this is the second setting of a target: the load beside a neighbour."""

    @property
    def is_on_workers(self) -> bool:
        """Whether only the workers of this process know its folders."""
        return not self.paths

    def folder_of(self, run: str) -> str:
        """Return the run's name in the folder that it makes here."""
        return f"{run}-beside" if self.is_beside else run


def parse_targets(words: Sequence[str]) -> tuple[NamedTarget, ...]:
    """Parse ``[NAME=]PATH[,PATH…]`` words; a target without a name is named after its first folder.

    No target is looked at: its mount may hang (see check_place and refuse_aliases).

    Raises:
        TargetError: An empty name or path, a name that cannot be shown, or two targets of one name
            or place.
    """
    targets = _name_apart([_parse_target(word) for word in words])
    for target in targets:
        _refuse_unshowable(target)
    _refuse_one_place_twice(targets, str)
    _refuse_one_name_twice(targets)
    return targets


def add_settings(targets: Sequence[NamedTarget], neighbour: str) -> tuple[NamedTarget, ...]:
    """Return each target twice, in the order of turns: alone, and beside a neighbour of a name.

    Raises:
        TargetError: Another target has the name of a second setting.
    """
    found = tuple(
        setting
        for target in targets
        for setting in (
            target,
            replace(target, name=f"{target.name}+{neighbour}", is_beside=True),
        )
    )
    _refuse_one_name_twice(found)
    return found


def check_place(target: NamedTarget, path: Path) -> None:
    """Look at one folder of a target: it must be one that can be written, and not the system's.

    Raises:
        TargetError: It is missing, no folder, ``/`` or inside /dev, /proc or /sys.
        MountError: It is read-only, not writable, or its mount is gone.
    """
    try:
        _check_folder(path)
    except TargetError:
        _refuse_comma(target)
        raise


def refuse_aliases(targets: Sequence[NamedTarget]) -> None:
    """Look where the targets' links lead: two of them to one place are refused.

    Raises:
        TargetError: Two do.
    """
    _refuse_one_place_twice(targets, os.path.realpath)


def explain(path: Path, error: OSError) -> ReplayerError:
    """Turn a failed call on a target into the refusal that a person can act on."""
    if isinstance(error, InterruptedError) and not error.errno:  # a task of the engine's
        return InterruptedRunError(f"{path}: interrupted")
    number = errno.ETIMEDOUT if isinstance(error, TimeoutError) else error.errno or 0
    for numbers, kind, reason, hint in _REASONS:
        if number in numbers:
            return kind(f"{path}: {reason}", hint=hint)
    return MountError(f"{path}: {os.strerror(number).lower()}")


def explain_record(folder: Path, error: tuple[str, int] | None) -> ReplayerError | None:
    """Return why a run folder's record is not whole, from a file's name and an errno."""
    if error is None:
        return None
    name, number = error
    return explain(folder / name, OSError(number, os.strerror(number)))


def explain_reading(path: Path, error: OSError) -> ReplayerError:
    """Turn a failed call of who only reads what was laid out into such a refusal."""
    if error.errno not in {errno.EACCES, errno.EPERM}:
        return explain(path, error)
    hint = (
        "the scenario sets the modes of entries: change them there, run as root, or run as the "
        "user who laid them out"
    )
    return MountError(f"{path}: permission denied: this user cannot read it", hint=hint)


def _parse_target(word: str) -> NamedTarget:
    name, equals, places = word.partition("=")
    if not equals or "/" in name:
        name, places = "", word
    paths = tuple(_absolute(place) for place in places.split(",") if place)
    if not paths or (equals and not places) or places.count(",") >= len(paths):
        raise TargetError(f"--target {word!r}: has no path", hint="write [NAME=]PATH[,PATH…]")
    return NamedTarget(name, paths, places)


def _absolute(place: str) -> Path:
    """Make a path absolute, and without ``..`` unless a link stands before it.

    The target is not looked at, only what is left again on the way: its mount may hang.
    """
    path = Path(place).absolute()
    short = Path(path.anchor)
    for part in path.parts[1:]:
        if part != "..":
            short /= part
        elif is_link(short):
            return path
        else:
            short = short.parent
    return short


def _refuse_unshowable(target: NamedTarget) -> None:
    """Refuse names that break lines and tables, or that no file of a run could hold."""
    if any(category(character) in UNSHOWABLE for character in target.name):
        message = f"target {target.name!r}: a name must be UTF-8 without control characters"
        raise TargetError(message, hint="choose another name: --target NAME=PATH")


def _name_apart(targets: Sequence[NamedTarget]) -> tuple[NamedTarget, ...]:
    """Name those without a name after their folder, or by the whole path where two are alike."""
    taken = Counter(target.name or target.paths[0].name for target in targets)
    return tuple(
        target if target.name else replace(target, name=_short_name(target.paths[0], taken))
        for target in targets
    )


def _refuse_one_name_twice(targets: Sequence[NamedTarget]) -> None:
    doubled = [name for name, times in Counter(t.name for t in targets).items() if times > 1]
    if doubled:
        message = f"two targets are named {doubled[0]!r}"
        raise TargetError(message, hint="give each target its own name: --target NAME=PATH")


def _refuse_one_place_twice(
    targets: Sequence[NamedTarget], place_of: Callable[[Path], str]
) -> None:
    """Refuse targets, or mount points of one, that would be measured against themselves."""
    owners: dict[str, NamedTarget] = {}
    for target in targets:
        for path in target.paths:
            place = place_of(path)
            if place not in owners:
                owners[place] = target
            elif owners[place] is target:
                message = f"target {target.name}: the same folder twice: {path}"
                raise TargetError(
                    message, hint="the paths of a target must be different mount points"
                )
            else:
                message = f"{owners[place].name} and {target.name} are the same folder: {path}"
                raise TargetError(message, hint="leave one of these targets out")


def _short_name(path: Path, taken: Counter[str]) -> str:
    return path.name if path.name and taken[path.name] == 1 else str(path)


def _refuse_comma(target: NamedTarget) -> None:
    """Tell a folder with a comma in its name from mount points of which one is missing."""
    if len(target.paths) > 1 and os.path.isdir(target.written):  # noqa: PTH112 - as it was written
        message = (
            f"{target.written}: commas separate mount points, but this folder name contains one"
        )
        raise TargetError(message, hint="create a link without a comma: ln -s FOLDER LINK")


def _check_folder(path: Path) -> None:
    real = Path(os.path.realpath(path))
    if real == Path("/"):
        message = f"{path}: the root of the system cannot be a target"
        raise TargetError(message, hint="give a folder on the mount to measure")
    if _is_of_the_system(real):
        message = f"{path}: /{real.parts[1]} is a system folder and cannot be a target"
        raise TargetError(message, hint="give a folder on the mount to measure")
    try:
        found = real.stat()
        read_only = os.statvfs(real).f_flag & os.ST_RDONLY
    except OSError as error:
        raise explain(path, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise explain(path, NotADirectoryError(errno.ENOTDIR, ""))
    if read_only:
        raise explain(path, OSError(errno.EROFS, ""))
    if not os.access(real, os.W_OK | os.X_OK):
        raise MountError(f"{path}: is not writable for this user", hint="check its owner and mode")


def _is_of_the_system(real: Path) -> bool:
    # /dev/shm is a tmpfs like any other, and the quickest place to try things on.
    places = (real, *real.parents)
    return Path("/dev/shm") not in places and any(Path(root) in places for root in FORBIDDEN)  # noqa: S108
