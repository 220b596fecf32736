"""``include``: a scenario that takes what another file says, and adds to it or changes it.

It is done on plain values before the models see them; the origin of every value stays the file in
which it was written.
"""

from collections.abc import Mapping
from pathlib import Path

from replayer.scenario.document import (
    Document,
    Key,
    Origin,
    leads_to_file,
    load_text,
    parse_document,
)
from replayer.scenario.problems import ScenarioError
from replayer.scenario.shipped import shipped_folder

__all__ = ["include_files"]

ADDED = frozenset({"users", "datasets", "sequences", "transactions"})
"""Keys whose entries are added to those of the included files; other keys are replaced."""

MAX_DEPTH = 4
"""Chosen: a variant of a scenario that uses shared sequences is two deep."""


def include_files(document: Document, folder: Path, depth: int = 0) -> Document:
    """Return a document with everything that its ``include`` names.

    Args:
        document: What the file says.
        folder: Where the file is; the included ones are looked for there, then among the shipped.
        depth: How many files have included this one.

    Raises:
        ScenarioError: A file does not exist, cannot be read, or files include each other.
    """
    names = _names(document)
    if not names:
        return document
    place = str(document.origin(("include",)))
    if depth == MAX_DEPTH:
        raise ScenarioError(place, f"include goes deeper than {MAX_DEPTH} files")
    below = Document({})
    for name in names:
        path = _find(name, folder, place)
        found = parse_document(load_text(path), str(path))
        if not isinstance(found.value, dict):
            raise ScenarioError(str(path), "must be a mapping of keys such as sequences")
        below = _laid_over(below, include_files(found, path.parent, depth + 1))
    return _laid_over(below, document)


def _names(document: Document) -> list[str]:
    """Return what is included; anything else than names is left to the models to refuse."""
    value = document.value
    names = value.get("include", ()) if isinstance(value, dict) else ()
    names = [names] if isinstance(names, str) else names
    good = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return list(names) if good else []


def _find(name: str, folder: Path, place: str) -> Path:
    for home in (folder, shipped_folder()):
        path = home / Path(name).expanduser()
        if leads_to_file(path, place):
            return path
    raise ScenarioError(place, f"the included file {folder / name} does not exist")


def _laid_over(below: Document, above: Document) -> Document:
    value = dict(_mapping(below.value))
    origins: dict[Key, Origin] = dict(below.origins)
    for name, new in _mapping(above.value).items():
        old = value.get(name)
        if name in ADDED and isinstance(new, dict) and isinstance(old, dict):
            value[name] = {**old, **new}
            gone: list[Key] = [(name, inner) for inner in new]
        else:
            value[name] = new
            gone = [(name,)]
        origins = {key: at for key, at in origins.items() if not _inside(key, gone)}
    return Document(value, {**origins, **above.origins})


def _inside(key: Key, places: list[Key]) -> bool:
    return key[:1] in places or key[:2] in places


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
