"""Names that say nothing, in the place of those of a trace.

A directory's names are exchanged for letters drawn at random from a key and the directory's place.
They keep what the time of a call may depend on: the depth, the length in steps of four bytes (NFS
sends names padded to these), the order among the names beside it, and an ending that many have.
What is known to everybody, such as the files of WordPress, may stay as it is.
"""

import hmac
import random
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

__all__ = ["Directory", "Naming", "read_known"]

STEP = 4
LONGEST = 255
"""Linux takes no longer name (NAME_MAX)."""
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
ROOM = 50
"""Chosen: so many times as many beginnings as names, so that a draw is seldom a second one."""
LEAST_KNOWN = 5  # chosen: so many paths in common tell that it is a known tree
TRIES = 200  # chosen: for a beginning between two names that stay
ENDINGS = frozenset(
    b".7z .avi .avif .bak .bash .bin .bmp .bz2 .c .cc .cfg .conf .cpp .crt .css .csv .dat .db "
    b".deb .doc .docx .eot .gif .go .gz .h .htaccess .htm .html .ico .inc .ini .jar .java "
    b".jpeg .jpg .js .json .key .lock .log .map .md .mjs .mo .mov .mp3 .mp4 .mpeg .o .odt .old "
    b".orig .otf .pack .pdf .pem .php .phtml .pid .pl .png .po .pot .ppt .pptx .py .pyc .rar "
    b".rb .rpm .rs .rst .scss .sh .so .sock .sql .sqlite .svg .swp .tar .tgz .tif .tiff .tmp "
    b".toml .ts .tsv .ttf .txt .vue .wav .webm .webp .woff .woff2 .xls .xlsx .xml .xz .yaml "
    b".yml .zip .zst".split()
)
"""Chosen: endings that say of what kind a file is, and nothing of whose it is."""
OWN = frozenset({b".outside", b".removed"})
"""Names that trace format 2 gives a meaning."""


@dataclass
class Directory:
    """A name, and the names below it."""

    below: dict[bytes, "Directory"] = field(default_factory=dict)
    stays: bool = False
    """Whether its name is known to everybody."""
    new: bytes = b""

    def add(self, parts: Iterable[bytes]) -> "Directory":
        """Add a path; return its last part."""
        place = self
        for part in parts:
            place = place.below.setdefault(part, Directory())
        return place


def read_known(paths: Iterable[str]) -> Directory:
    """Return the tree of paths that everybody knows."""
    top = Directory()
    for path in paths:
        top.add(path.encode().split(b"/"))
    return top


class Naming:
    """New names of all paths of a trace."""

    def __init__(self, key: bytes, known: Sequence[Directory] = ()) -> None:
        self._key = key
        self._known = known
        self._top = Directory()
        self.unordered = 0
        """Names that could not keep their place among names that stay."""

    def learn(self, paths: Iterable[bytes]) -> None:
        """Take all paths, each relative to the top of the trace, and give them their names."""
        for path in paths:
            self._top.add(path.split(b"/"))
        for name in OWN & self._top.below.keys():
            self._top.below[name].stays = True
        for _, place in _all_of(self._top):
            for known in self._known:
                found = [*_common(place, known)]
                if len(found) >= LEAST_KNOWN:
                    for each in found:
                        each.stays = True
        for path, place in _all_of(self._top):
            self._name(place, path)

    def path(self, path: bytes) -> bytes:
        """Return the new name of a path."""
        return b"/".join(self._walk(path.split(b"/")))

    def link(self, owner: bytes, target: bytes) -> bytes:
        """Return what a link says that leads to a path relative to its own directory.

        A part that is no path of the trace gets a name of its own, without an order.
        """
        here = owner.split(b"/")[:-1]
        said: list[bytes] = []
        for part in target.split(b"/"):
            if part == b"..":
                here = here[:-1]
                said.append(part)
            elif part in {b"", b"."}:
                said.append(part)
            else:
                here = [*here, part]
                said.append(self._walk(here)[-1])
        return b"/".join(said)

    def word(self, word: bytes, what: bytes) -> bytes:
        """Return letters in the place of a word that is no path."""
        return self._letters(self._random(what + b"\0" + word), _length(word))

    def number(self, number: int, what: bytes, most: int) -> int:
        """Return another number, from 1 to ``most``."""
        return 1 + self._random(b"%s\0%d" % (what, number)).randrange(most)

    def counts(self) -> tuple[int, int]:
        """Return how many names there are, and how many of them stay."""
        places = [place for path, place in _all_of(self._top) if path]
        return len(places), sum(place.stays for place in places)

    def _walk(self, parts: Sequence[bytes]) -> list[bytes]:
        place: Directory | None = self._top
        found = []
        for at, part in enumerate(parts):
            place = None if place is None else place.below.get(part)
            if place is None:
                drawn = self._random(b"path\0" + b"/".join(parts[: at + 1]))
                found.append(self._letters(drawn, _length(part)))
            else:
                found.append(place.new)
        return found

    def _name(self, place: Directory, path: bytes) -> None:
        """Give the names in a directory new ones."""
        drawn = self._random(b"names\0" + path)
        kept = sorted(name for name, below in place.below.items() if below.stays)
        others = sorted(name for name, below in place.below.items() if not below.stays)
        for name in kept:
            place.below[name].new = name
        taken = set(kept)
        for low, high, names in _runs(others, kept):
            for name, new in zip(names, self._draw(drawn, names, low, high, taken), strict=True):
                place.below[name].new = new
                taken.add(new)

    def _draw(
        self,
        drawn: random.Random,
        names: Sequence[bytes],
        low: bytes,
        high: bytes | None,
        taken: set[bytes],
    ) -> list[bytes]:
        """Return as many new names, in order, between two that stay."""
        length = 2
        while len(LETTERS) ** length < ROOM * len(names):
            length += 1
        begins: set[bytes] = set()
        for _ in range(TRIES * len(names)):
            if len(begins) == len(names):
                break
            begin = _between(drawn, low, high, length)
            if begin is not None and begin not in taken:
                begins.add(begin)
        self.unordered += len(names) - len(begins)
        while len(begins) < len(names):
            begins.add(self._letters(drawn, 2 * length))
        return [
            self._fill(drawn, begin, name)
            for begin, name in zip(sorted(begins), names, strict=True)
        ]

    def _fill(self, drawn: random.Random, begin: bytes, name: bytes) -> bytes:
        ending = _ending(name)
        missing = _length(name) - len(begin) - len(ending)
        return begin + self._letters(drawn, max(missing, 0)) + ending

    def _letters(self, drawn: random.Random, count: int) -> bytes:
        return bytes(drawn.choice(LETTERS) for _ in range(count))

    def _random(self, what: bytes) -> random.Random:
        return random.Random(hmac.digest(self._key, what, "sha256"))  # noqa: S311 - keyed


def _length(name: bytes) -> int:
    return min(-(-max(len(name), 1) // STEP) * STEP, LONGEST)


def _ending(name: bytes) -> bytes:
    begin, dot, end = name.rpartition(b".")
    ending = dot + end
    return ending if begin and ending.lower() in ENDINGS else b""


def _all_of(top: Directory) -> Iterator[tuple[bytes, Directory]]:
    """Yield all directories with their paths: as deep as they may be, nothing calls itself."""
    left = [(b"", top)]
    while left:
        path, place = left.pop()
        yield path, place
        left += [(path + b"/" + name, below) for name, below in place.below.items()]


def _common(place: Directory, known: Directory) -> Iterator[Directory]:
    """Yield what lies below a directory and, at the same place, in a tree that everybody knows."""
    left = [(place, known)]
    while left:
        own, public = left.pop()
        for name in public.below.keys() & own.below.keys():
            yield own.below[name]
            left.append((own.below[name], public.below[name]))


def _runs(
    names: Sequence[bytes], kept: Sequence[bytes]
) -> Iterator[tuple[bytes, bytes | None, list[bytes]]]:
    """Yield sorted names by the two between which they lie of those that stay."""
    for at, own in groupby(names, lambda name: bisect(kept, name)):
        yield kept[at - 1] if at else b"", kept[at] if at < len(kept) else None, list(own)


def _between(drawn: random.Random, low: bytes, high: bytes | None, length: int) -> bytes | None:
    """Return letters that stand between two names whatever follows them; None if a draw misses."""
    found = bytearray()
    above, under = not low, high is None
    while len(found) < length or not (above and under):
        at = len(found)
        least = low[at] if not above and at < len(low) else 0
        if not under and high is not None and at >= len(high):
            return None  # all that begins so stands behind it
        most = high[at] if not under and high is not None else 255
        letters = [each for each in LETTERS if least <= each <= most]
        if not letters and least <= most and at < LONGEST // 2:
            letters = [most if above else least]  # the sign that a name beside it has
        if not letters:
            return None
        letter = drawn.choice(letters)
        above = above or at >= len(low) or letter > least
        under = under or letter < most
        found.append(letter)
    return bytes(found)
