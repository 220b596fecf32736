"""YAML with a memory: plain values, and for each of them the file and line it came from.

Scalars follow the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), so that
``12:30`` is not a number in base 60 and ``on`` is not a boolean. The models judge what is read
here. A scenario is refused in one line with file, line, name, value and bound, then a hint.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from replayer.errors import ReplayerError
from replayer.paths import UnaskablePathError, is_file


class ScenarioError(ReplayerError):
    """A scenario (or an option that changes it) says something that cannot be run."""

    def __init__(self, place: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{place}: {message}", hint=hint)
        self.place = place
        """``file:line`` or the option that is wrong."""


def nearest_hint(name: str, known: Iterable[str], *, kind: str) -> str:
    """Return a hint that names the known word nearest to a mistaken one; ``kind`` is a plural."""
    words = list(known)
    near = difflib.get_close_matches(name, words, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    if not words:
        return f"{kind} are not allowed here"
    return f"known {kind}: {', '.join(words[:40])}"


MAX_TEXT_BYTES = 16 * 1024 * 1024
"""Chosen: thousands of times the largest shipped scenario."""

MAX_NODES = 100_000
"""Chosen: what aliases may blow a file up to."""

MAX_DEPTH = 64
"""Chosen: steps nest by two levels a block; nobody nests thirty blocks."""

Key: TypeAlias = tuple[str | int, ...]
"""Where a value is: the keys and indexes that lead to it from the top."""

_KINDS = ("null", "bool", "int", "float", "str", "seq", "map", "timestamp", "value", "merge")
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True)
class Origin:
    """Where a value was written: a line of a file, or an option of the command line."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        """Return ``file:line``, or the option."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True)
class YamlDocument:
    """The plain values of a scenario and the origin of each."""

    value: object
    origins: Mapping[Key, Origin] = field(default_factory=dict)

    def origin(self, key: Key) -> Origin:
        """Return where a value, or the nearest thing around it, was written."""
        while key and key not in self.origins:
            key = key[:-1]
        return self.origins.get(key, Origin("scenario"))


def parse_document(text: str, source: str) -> YamlDocument:
    """Parse YAML text into plain values with origins.

    Raises:
        ScenarioError: It is no YAML, has a key twice, or is too large or too deep.
    """
    root = _compose(text, source)
    if root is None:
        raise ScenarioError(source, "the file is empty", hint="see scenarios/README.md")
    reader = _Reader(source)
    return YamlDocument(reader.read(root, (), ()), reader.origins)


def parse_fragment(text: str, source: str) -> object:
    """Parse the YAML value of an option.

    Raises:
        ScenarioError: It is no YAML, or nothing: an unset variable must not take a setting away.
    """
    root = _compose(text, source)
    if root is None:
        hint = "is a variable not set? null removes the value of the scenario"
        raise ScenarioError(source, "the value is empty", hint=hint)
    return _Reader(source).read(root, (), ())


def load_text(path: Path) -> str:
    """Read a scenario file.

    Raises:
        ScenarioError: It cannot be read, is too large or is not UTF-8.
    """
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            message = (
                f"a scenario must be at most 16 MiB, this file has {path.stat().st_size} bytes"
            )
            raise ScenarioError(str(path), message, hint="move file lists to a manifest")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(str(path), f"not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ScenarioError(str(path), f"cannot be read: {error.strerror}") from None


def leads_to_file(path: Path, place: str) -> bool:
    """Whether there is a file where a scenario says so.

    Raises:
        ScenarioError: That cannot be told: a folder on the way is closed, or a name is too long.
    """
    try:
        return is_file(path)
    except UnaskablePathError as error:
        raise ScenarioError(place, str(error), hint=error.hint) from error


def _compose(text: str, source: str) -> yaml.Node | None:
    if len(text) > MAX_TEXT_BYTES:
        message = f"a scenario must be at most 16 MiB, got {len(text)} characters"
        raise ScenarioError(source, message, hint="move file lists to a manifest")
    try:
        # The parser in C overflows its stack on deep nesting; this one raises RecursionError.
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = source if mark is None else f"{source}:{mark.line + 1}"
        problem = error.problem or error.context or "cannot be parsed"
        raise ScenarioError(place, f"not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise ScenarioError(source, f"not valid YAML: {reason}") from None
    except RecursionError:
        raise ScenarioError(source, f"must be nested at most {MAX_DEPTH} levels deep") from None


class _Reader:
    """Turns composed nodes into plain values."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.origins: dict[Key, Origin] = {}
        self._nodes = 0

    def read(self, node: yaml.Node, key: Key, around: tuple[int, ...]) -> object:
        """Return the plain value of a node and remember where everything in it was written."""
        self._count(node, around)
        # A value starts on its key's line or below: the key's line is the one to show.
        self.origins.setdefault(key, Origin(self.source, node.start_mark.line + 1))
        inside = (*around, id(node))
        if isinstance(node, yaml.MappingNode):
            return {
                name: self.read(child, (*key, name), inside)
                for name, child in self._pairs(node, key)
            }
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*key, i), inside) for i, child in enumerate(node.value)]
        return self._scalar(node)

    def _pairs(self, node: yaml.MappingNode, key: Key) -> Iterator[tuple[str, yaml.Node]]:
        seen: dict[str, int] = {}
        for name_node, child in node.value:
            line = name_node.start_mark.line + 1
            if not isinstance(name_node, yaml.ScalarNode):
                self._refuse(name_node, "a key must be a word, got a list or a mapping")
            name = name_node.value
            self._check_text(name_node)
            if name in seen:
                self._refuse(name_node, f"{name} is given twice, first in line {seen[name]}")
            if name == "<<":
                self._refuse(
                    name_node,
                    "merge keys (<<) are not supported",
                    "define sequences: for repeated steps",
                )
            seen[name] = line
            self.origins[(*key, name)] = Origin(self.source, line)
            yield name, child

    def _scalar(self, node: yaml.Node) -> object:
        text = node.value
        self._check_text(node)
        if (
            getattr(node, "style", None) is not None
        ):  # quoted or a block: a string whatever it looks like
            return str(text)
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text) and len(text) <= MAX_DEPTH:
            return int(text)
        if _FLOAT.fullmatch(text) and not text.lstrip("+-").isdigit():
            return float(text)
        return str(text)

    def _check_text(self, node: yaml.Node) -> None:
        if any("\ud800" <= char <= "\udfff" for char in node.value):
            self._refuse(node, "must be valid UTF-8, and has half of a surrogate pair")

    def _count(self, node: yaml.Node, around: tuple[int, ...]) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._refuse(node, f"must have at most {MAX_NODES} values after aliases are expanded")
        if len(around) >= MAX_DEPTH:
            self._refuse(node, f"must be nested at most {MAX_DEPTH} levels deep")
        if id(node) in around:
            self._refuse(node, "an alias that contains itself")
        if node.tag not in _TAGS:
            self._refuse(node, f"the tag {node.tag} is not supported")

    def _refuse(self, node: yaml.Node, message: str, hint: str = "") -> None:
        raise ScenarioError(f"{self.source}:{node.start_mark.line + 1}", message, hint=hint)
