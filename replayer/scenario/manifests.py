"""Lists of files: read from manifests (tab-separated) and from the headers of tar archives.

Nothing is ever extracted. Every entry is checked: relative, inside the dataset, not a device, not
there twice.
"""

import gzip
import lzma
import posixpath
import re
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Literal, TypeAlias, cast

from replayer.scenario.document import ScenarioError

MANIFEST_ENDINGS = (".tsv.xz", ".tsv.gz", ".tsv")
HEADER = ("path", "type", "size", "mode", "link")
MAX_ENTRIES = 10_000_000
MAX_COMPONENT_BYTES = 255  # NAME_MAX of Linux
MAX_PATH_BYTES = 4000  # plan format 1
MAX_FILE_BYTES = 2**50  # plan format 1
DIRECTORY_MODE = 0o755
BLOCK_BYTES = 512  # tar(5)
MAX_DIGITS = 19  # of a number of 64 bits
MAX_LINE = 16_384
NEIGHBOURS = 25
"""Chosen: of a tenth of a kernel tree, nine in ten directories are then those that were meant."""

MAX_CACHED_BYTES = 1 << 20  # chosen: twice the largest shipped manifest

_CONTROL = re.compile(r"[\x00-\x1f]")

EntryType: TypeAlias = Literal["f", "d", "l"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or symbolic link of a dataset."""

    path: str
    type: EntryType
    size: int
    mode: int
    link: str = ""


def load_manifest(path: Path) -> tuple[Entry, ...]:
    """Read a manifest: a header line, then path, type, size, mode and link of every entry.

    Raises:
        ScenarioError: It cannot be read, or a line is wrong; the message names file and line.
    """
    try:
        found = path.stat()
        if found.st_size > MAX_CACHED_BYTES:
            return _read_manifest(path)
        return _read_manifest_once(path, (found.st_dev, found.st_ino, found.st_mtime_ns))
    except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as error:
        raise ScenarioError(str(path), f"cannot be read: {error}") from None


def _read_manifest(path: Path) -> tuple[Entry, ...]:
    with _open_text(path) as file:
        return sort_entries(list(_parse_lines(file, path)), str(path))


@lru_cache(maxsize=8)
def _read_manifest_once(path: Path, _identity: tuple[int, ...]) -> tuple[Entry, ...]:
    """Read what several scenarios use; a file that was changed has another identity."""
    return _read_manifest(path)


def load_tar(path: Path) -> tuple[Entry, ...]:
    """Read names, sizes, modes and links of an archive's members; its data stay where they are.

    Raises:
        ScenarioError: It is no archive, or holds a name that leaves the directory, a device or a
        pipe.
    """
    try:
        with tarfile.open(path, "r:*") as archive:
            entries = list(_members(archive, str(path)))
            _check_end(archive, str(path))
    except (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError) as error:
        reason = str(error).partition(":\n")[0]  # what every decoder says of it fills lines
        hint = "tar files may be plain or compressed with gzip, bzip2 or xz"
        message = f"cannot be read as a tar archive: {reason}"
        raise ScenarioError(str(path), message, hint=hint) from None
    return sort_entries(entries, str(path))


def _check_end(archive: tarfile.TarFile, source: str) -> None:
    """Check that reading stopped at the end: the standard library takes any bad header for it.

    Raises:
        ScenarioError: There is something else than zeros, which mark the end, or nothing.
    """
    archive.fileobj.seek(archive.offset)
    block = archive.fileobj.read(BLOCK_BYTES)
    if block.strip(b"\0") or len(block) not in {0, BLOCK_BYTES}:
        message = f"is damaged or truncated: no header at byte {archive.offset:,}"
        raise ScenarioError(source, message, hint="check it with: tar tf")


def part_of(entries: Sequence[Entry], percent: int) -> tuple[Entry, ...]:
    """Return so many of a hundred directories, evenly spread, with what lies directly in them.

    Neighbours are taken together, since the directories above them have to be there too (without
    their other entries).
    """
    directories = ["", *(entry.path for entry in entries if entry.type == "d")]
    together = min(max(len(directories) // 100, 1), NEIGHBOURS)
    taken = {
        path
        for number, path in enumerate(directories)
        if number // together * percent // 100 > (number // together - 1) * percent // 100
    }
    kept = taken | {str(above) for path in taken for above in PurePosixPath(path).parents}
    return tuple(
        entry
        for entry in entries
        if (entry.path in kept if entry.type == "d" else _parent(entry.path) in taken)
    )


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def check_path(path: str) -> str | None:
    """Return what is wrong with an entry's path, or None."""
    parts = path.split("/")
    if path.startswith("/"):
        return "is absolute"
    if "" in parts or "." in parts:
        return "has an empty component or a '.'"
    if ".." in parts:
        return "leads out of the dataset through '..'"
    return "has a control character" if _CONTROL.search(path) else _check_lengths(parts)


def _check_lengths(parts: list[str]) -> str | None:
    if sum(map(len, parts)) <= MAX_COMPONENT_BYTES and all(map(str.isascii, parts)):
        return None  # most of them
    try:
        lengths = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "is not UTF-8"
    if max(lengths) > MAX_COMPONENT_BYTES:
        return f"has a component of {max(lengths)} bytes, at most {MAX_COMPONENT_BYTES} are allowed"
    whole = sum(lengths) + len(parts) - 1
    return f"must be at most {MAX_PATH_BYTES} bytes long" if whole > MAX_PATH_BYTES else None


def sort_entries(entries: Sequence[Entry], source: str) -> tuple[Entry, ...]:
    """Check that the entries make a tree, and bring parents before children.

    Directories that nobody listed but something lies in are added, with the mode 0755, as tar and
    the engines make them.

    Raises:
        ScenarioError: A path is there twice, or lies below a file.
    """
    kinds: dict[str, EntryType] = {}
    for entry in entries:
        if entry.path in kinds:
            raise ScenarioError(source, f"{entry.path} is listed twice")
        kinds[entry.path] = entry.type
    found: list[Entry] = []
    seen: set[str] = set()
    for entry in entries:
        above = _unseen_parents(entry.path, seen)
        for parent in (_parent((*above, entry.path)[0]), *above):
            if kinds.get(parent, "d") != "d":
                message = f"{entry.path} is below {parent}, which is not a directory"
                raise ScenarioError(source, message)
        found += [Entry(path, "d", 0, DIRECTORY_MODE) for path in above if path not in kinds]
        found.append(entry)
        seen.update(above, (entry.path,))
    places = {entry.path: number for number, entry in enumerate(found)}
    if all(places.get(_parent(each.path), -1) < at for at, each in enumerate(found)):
        return tuple(found)
    return tuple(sorted(found, key=lambda item: item.path.split("/")))


def _unseen_parents(path: str, seen: set[str]) -> list[str]:
    """Return the directories above a path that are not among those seen, the highest first."""
    above: list[str] = []
    while (path := _parent(path)) and path not in seen:
        above.append(path)
    return above[::-1]


def _open_text(path: Path) -> IO[str]:
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8", newline="\n")
    if path.suffix == ".gz":
        return cast("IO[str]", gzip.open(path, "rt", encoding="utf-8", newline="\n"))
    return path.open("r", encoding="utf-8", newline="\n")


def _parse_lines(file: IO[str], path: Path) -> Iterator[Entry]:
    header = tuple(file.readline(MAX_LINE).rstrip("\n").split("\t"))
    if header != HEADER:
        hint = "the first line must be: " + "<TAB>".join(HEADER)
        raise ScenarioError(f"{path}:1", "is not a manifest", hint=hint)
    number = 1
    while line := file.readline(MAX_LINE):
        number += 1
        if number > MAX_ENTRIES:
            raise ScenarioError(f"{path}:{number}", f"must have at most {MAX_ENTRIES} entries")
        entry = _parse_line(line.rstrip("\n"), f"{path}:{number}")
        if entry.path != ".":
            yield entry


def _parse_line(line: str, place: str) -> Entry:
    fields = line.split("\t")
    if len(fields) != len(HEADER):
        raise ScenarioError(place, f"must have {len(HEADER)} fields, got {len(fields)}")
    path, kind, size, mode, link = fields
    if path in {"", "."} and kind == "d":  # what find(1) says of where it begins
        return Entry(".", "d", 0, DIRECTORY_MODE)
    if kind not in {"f", "d", "l"}:
        raise ScenarioError(place, f"type must be f, d or l, got {kind!r}")
    if not size.isdecimal() or not size.isascii():
        raise ScenarioError(place, f"size must be a number of bytes, got {size!r}")
    bits = _parse_octal(mode)
    if bits is None:
        raise ScenarioError(place, f"mode must be octal such as 644, got {mode!r}")
    if len(size) > MAX_DIGITS:
        raise ScenarioError(place, f"size must be at most {MAX_FILE_BYTES:,} bytes, got {size}")
    return _checked(Entry(path, cast("EntryType", kind), int(size), bits, link), place)


def _parse_octal(text: str) -> int | None:
    try:
        bits = int(text, 8)
    except ValueError:
        return None
    return bits if 0 <= bits <= 0o7777 else None  # noqa: PLR2004 - all permission bits


def _checked(entry: Entry, place: str) -> Entry:
    problem = check_path(entry.path)
    if problem is not None:
        raise ScenarioError(place, f"the path {entry.path!r} {problem}")
    if entry.type == "l":
        problem = check_link(entry)
        if problem is not None:
            hint = "only relative links inside the dataset are laid out"
            raise ScenarioError(place, f"the link {entry.path} {problem}", hint=hint)
        return Entry(entry.path, "l", 0, 0o777, entry.link)
    if entry.size > MAX_FILE_BYTES:
        message = f"{entry.path} must have at most {MAX_FILE_BYTES:,} bytes, got {entry.size:,}"
        raise ScenarioError(place, message)
    return Entry(entry.path, entry.type, entry.size if entry.type == "f" else 0, entry.mode)


def check_link(entry: Entry) -> str | None:
    """Return what is wrong with a symbolic link's target, or None."""
    depth = entry.path.count("/")
    if _CONTROL.search(entry.link) or len(entry.link.encode(errors="replace")) > MAX_PATH_BYTES:
        return (
            f"must point to a name without control characters and of at most {MAX_PATH_BYTES} bytes"
        )
    for part in entry.link.split("/"):
        depth += -1 if part == ".." else int(part not in {"", "."})
        if depth < 0 or entry.link.startswith("/") or not entry.link:
            return f"points to {entry.link!r}, outside the dataset"
    return None


def _members(archive: tarfile.TarFile, source: str) -> Iterator[Entry]:
    seen: dict[str, Entry] = {}
    for count, member in enumerate(archive):
        if count > MAX_ENTRIES:
            raise ScenarioError(source, f"must have at most {MAX_ENTRIES} members")
        path = member.name.removeprefix("./").rstrip("/")
        if path in {"", "."}:
            continue
        entry = _checked(_entry_of(member, path, seen, source), source)
        seen[path] = entry  # a later member of the same name replaces the earlier one, as tar does
    yield from seen.values()


def _entry_of(member: tarfile.TarInfo, path: str, seen: dict[str, Entry], source: str) -> Entry:
    mode = stat.S_IMODE(member.mode)
    if member.isdir():
        return Entry(path, "d", 0, mode)
    if member.isreg():
        return Entry(path, "f", member.size, mode)
    if member.issym():
        return Entry(path, "l", 0, 0o777, member.linkname)
    original = seen.get(member.linkname.removeprefix("./")) if member.islnk() else None
    if original is not None:  # a hard link: another name of a file, laid out as a file of its own
        return Entry(path, "f", original.size, original.mode)
    raise ScenarioError(source, f"{member.name} is not a file, a directory or a link")


MAX_LINKS = 40  # MAXSYMLINKS of Linux


def find_through_links(
    path: str, find: Callable[[str], int | None], link_of: Callable[[int], str | None]
) -> int | None:
    """Return the number of the entry that a path leads to, or None.

    ``find`` gives the number of the entry with exactly a path, ``link_of`` the target of a link.
    """
    for _ in range(MAX_LINKS):
        number = find(path)
        if number is not None:
            return number
        followed = _follow(path, find, link_of)
        if followed is None:
            return None
        path = followed
    return None


def _follow(
    path: str, find: Callable[[str], int | None], link_of: Callable[[int], str | None]
) -> str | None:
    """Replace the first directory of a path that is a link by what it points to."""
    parts = path.split("/")
    for end in range(1, len(parts)):
        number = find("/".join(parts[:end]))
        target = None if number is None else link_of(number)
        if target is not None:
            return posixpath.normpath(posixpath.join(*parts[: end - 1], target, *parts[end:]))
    return None
