"""Makes of a trace one that can be given away: other names, owners and times, the same calls."""

import json
import re
import secrets
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

from replayer import _native
from replayer._native import OPS
from replayer.trace.errors import TraceError, UnmadeTraceError, translated
from replayer.trace.facts import NO_CHECKSUM
from replayer.trace.naming import Directory, Naming
from replayer.trace.reading import believed, load_trace

__all__ = ["Private", "Shared", "load_key", "make_key", "private_parts", "share_trace"]

KEY_BYTES = 32
KEY_MODE = stat.S_IRUSR | stat.S_IWUSR
LARGEST_ID = 60_000
"""Chosen: below what systems give away by themselves."""
LONGEST_SHIFT_NS = 10 * 365 * 86_400 * 10**9
PUBLIC_ATTRIBUTES = (b"security.", b"system.", b"trusted.")
"""Name spaces of attributes that the kernel gives a meaning (xattr(7)); ``user.`` has anyone's."""
UNCHANGED = -1
"""An owner that chown leaves as it is."""
MOST_SHOWN = 8  # chosen: what a person looks through


@dataclass(frozen=True)
class Shared:
    """What came of it."""

    document: Mapping[str, Any]
    """The new trace.json."""
    names: int
    kept: int
    """Of these names, those that everybody knows."""
    unordered: int
    """Names that could not keep their place among names that stay."""


@dataclass(frozen=True)
class Private:
    """What a trace gives away as it is, of each kind the commonest, with how many there are."""

    kinds: Mapping[str, tuple[int, tuple[str, ...]]]


def make_key(path: Path | None) -> bytes:
    """Return a new key, kept in a file that only its owner reads where one is named.

    Raises:
        UnmadeTraceError: The file is there, or cannot be written.
    """
    key = secrets.token_bytes(KEY_BYTES)
    if path is not None:
        try:
            path.touch(KEY_MODE, exist_ok=False)
            path.write_text(key.hex() + "\n")
        except OSError as error:
            message = f"{path}: the key cannot be written: {error.strerror or error}"
            raise UnmadeTraceError(message, hint="name a new file for --new-key") from error
    return key


def load_key(path: Path) -> bytes:
    """Return the key in a file.

    Raises:
        TraceError: It cannot be read, or holds none.
    """
    hint = "make one with --new-key FILE"
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: the key cannot be read: {error}", hint=hint) from error
    if not re.fullmatch(f"[0-9a-f]{{{2 * KEY_BYTES}}}", text):
        message = f"{path}: holds no key: a key has {2 * KEY_BYTES} hexadecimal digits"
        raise TraceError(message, hint=hint)
    return bytes.fromhex(text)


def share_trace(folder: Path, target: Path, key: bytes, known: Sequence[Directory] = ()) -> Shared:
    """Write a trace anew with other names, owners and times.

    Args:
        folder: The trace.
        target: The folder to make; it appears whole or not at all.
        key: What the new names are drawn from.
        known: Trees whose names stay.

    Raises:
        TraceError: It is no trace, or is damaged; the target is there, or cannot be made.
    """
    document = load_trace(folder)
    with translated():
        told = _native.trace_names(str(folder))
    paths, links, texts, labels, owners = told
    naming = Naming(key, known)
    naming.learn([*paths, *_roots(document)])
    new_labels = {label: f"kind-{number}" for number, label in enumerate(labels, 1)}
    renamed = (
        [naming.path(path) for path in paths],
        [naming.link(paths[row], link) for row, link in links],
        [_text(naming, op, None if row is None else paths[row], text) for op, row, text in texts],
        [*new_labels.values()],
        [_owner(naming, owner) for owner in owners],
    )
    with believed(folder):
        text = json.dumps(_document(document, naming, new_labels), ensure_ascii=False)
    shift_ns = -naming.number(0, b"shift", LONGEST_SHIFT_NS)
    with translated():
        written = _native.trace_rewrite(str(folder), str(target), told, renamed, shift_ns, text)
    names, kept = naming.counts()
    return Shared(json.loads(written), names, kept, naming.unordered)


def _roots(document: Mapping[str, Any]) -> Iterable[bytes]:
    return [str(root["name"]).encode() for root in document["roots"]]


def _text(naming: Naming, op: int, path: bytes | None, text: bytes) -> bytes:
    """Return the text of an event: what a link says, or the name of an attribute."""
    name = OPS[op][0]
    if name in {"symlink", "readlink"}:
        return naming.link(path or b"", text)
    if name.endswith("xattr") and not text.startswith(PUBLIC_ATTRIBUTES):
        space, dot, rest = text.partition(b".")
        return space + dot + naming.word(rest, b"attribute") if dot else text
    return text


def _owner(naming: Naming, owner: int) -> int:
    return owner if owner in {0, UNCHANGED} else naming.number(owner, b"owner", LARGEST_ID)


def _document(
    document: Mapping[str, Any], naming: Naming, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the new trace.json: what is not known to be harmless is left out."""
    clock, origin = document["clock"], document["origin"]
    return {
        "format": document["format"],
        "checksum": NO_CHECKSUM,
        "writer": document["writer"],
        "origin": {"format": origin["format"], "files": [], "note": ""},
        "clock": {**clock, "kind": "relative", "begin_ns": 0},
        "calibration": document["calibration"],
        "roots": [
            {"directory": f"/{name}", "name": name}
            for root in document["roots"]
            for name in [naming.path(str(root["name"]).encode()).decode()]
        ],
        "blind_spots": document["blind_spots"],
        "counts": {**document["counts"], "lines_not_understood_first": []},
        "labels": document["labels"],
        "tree": document["tree"],
        "requests": sorted(
            (
                {**each, "label": labels.get(each["label"], each["label"])}
                for each in document["requests"]
            ),
            key=itemgetter("label"),
        ),
    }


def private_parts(folder: Path) -> Private:
    """Tell what a trace gives away of the machine and the site that it was recorded on.

    Raises:
        TraceError: It is no trace, or is damaged.
    """
    document = load_trace(folder)
    with translated():
        paths, links, texts, labels, owners = _native.trace_names(str(folder))
    names = Counter(part for path in paths for part in path.split(b"/"))
    attributes = [text for op, _, text in texts if OPS[op][0].endswith("xattr")]
    said = [link for _, link in links] + [t for op, _, t in texts if OPS[op][0].endswith("link")]
    with believed(folder):
        origin, clock = document["origin"], document["clock"]
        begin = clock["begin_ns"] if clock["kind"] == "epoch" else None
        strange = document["counts"].get("lines_not_understood_first", [])
        kinds: dict[str, Sequence[object]] = {
            "names of files and directories": [name for name, _ in names.most_common()],
            "what links say": said,
            "requests": labels,
            "attributes": attributes,
            "users and groups": [owner for owner in owners if owner not in {0, UNCHANGED}],
            "roots": [root["directory"] for root in document["roots"]],
            "note": [origin["note"]] if origin["note"] else [],
            "files that it was made from": [PurePath(file).name for file in origin["files"]],
            "when it was recorded, ns since 1970": [] if begin is None else [begin],
            "lines of its log": [line["text"] for line in strange],
        }
    return Private(
        {
            kind: (len(found), tuple(map(_shown, found[:MOST_SHOWN])))
            for kind, found in kinds.items()
            if found
        }
    )


def _shown(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
