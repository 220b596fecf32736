"""Which datasets a run may change, told by the names that steps give; in doubt one changes.

Reads to the end of all other files that are laid out are held against the sizes of their entries.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from replayer.scenario import calls as c
from replayer.scenario import steps as s
from replayer.scenario.manifests import Entry
from replayer.scenario.model import Scenario
from replayer.scenario.places import template_parts
from replayer.scenario.references import places_of

WRITING = frozenset({"wronly", "rdwr", "create", "creat", "trunc", "append"})

BUILT_IN = {**dict.fromkeys(("user", "round", "seq", "next"), "[0-9]+"), "random": "[0-9a-f]+"}
"""What the placeholders give that no step binds."""


def changed_datasets(scenario: Scenario, entries: Mapping[str, Sequence[Entry]]) -> frozenset[str]:
    """Return the datasets of which a transaction with a weight may change an entry.

    It may where it opens one to write, truncates, renames, removes or links it: a picked one, or
    one whose path a template can give. A name that no entry can have is that of a new file.
    """
    played = [_Names(_flat(scenario, scenario.transactions[name])) for name in _played(scenario)]
    changed = {place for names in played for place in names.changed()}
    links = [link for names in played for link in names.links()]
    if changed and any(leads_out for _, leads_out in links):
        return frozenset(entries)
    linked = {dataset for dataset, _ in links}
    tree = cache(lambda dataset: _Tree(entries[dataset]))
    return frozenset(
        dataset for dataset, paths in changed if dataset in linked or tree(dataset).may_have(paths)
    )


def _played(scenario: Scenario) -> Iterator[str]:
    mixes = [scenario.mix, *(role.mix for role in scenario.roles.values())]
    yield from (name for name in scenario.transactions if any(mix.get(name) for mix in mixes))


def _flat(scenario: Scenario, steps: tuple[c.StepPart, ...]) -> Iterator[c.StepPart]:
    for _, step in s.walk_steps(steps, ()):
        yield step
        if isinstance(step, s.Use):
            yield from _flat(scenario, scenario.sequences[step.sequence])
        if isinstance(step, s.Script):
            for used in {line.sequence: None for line in step.lines}:
                yield from _flat(scenario, scenario.sequences[used])


@dataclass(frozen=True)
class _Paths:
    """The paths that a template can give: what all begin with, and an expression for the whole.

    Case is folded: there are file systems on which ``Index`` and ``index`` are one file.
    """

    start: str
    pattern: str


ANY = _Paths("", ".*")


class _Tree:
    """The paths of a dataset's entries."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._paths = {entry.path.casefold() for entry in entries}
        self._links = [f"{entry.path.casefold()}/" for entry in entries if entry.type == "l"]

    def may_have(self, paths: _Paths) -> bool:
        """Whether one of some paths may be that of an entry, or lead to one through a link."""
        if any(link.startswith(paths.start[: len(link)]) for link in self._links):
            return True
        if paths.pattern == re.escape(paths.start):
            return paths.start in self._paths
        found = re.compile(paths.pattern)
        return any(found.fullmatch(path) for path in self._paths)


class _Names:
    """What the names of a transaction may stand for, at whatever place of it."""

    def __init__(self, steps: Iterator[c.StepPart]) -> None:
        self._steps = list(steps)
        self._homes: dict[str, set[tuple[str, str | None]]] = {}
        for step in self._steps:
            for slot, dataset, template in _bound(step):
                own = None if template == "." else template  # the dataset's own directory
                self._homes.setdefault(slot, set()).add((dataset, own))

    def changed(self) -> Iterator[tuple[str, _Paths]]:
        """Yield the dataset and the paths of what a step changes, or gives another name."""
        for slot in {slot for step in self._steps for slot in _changed_slots(step)}:
            for dataset, template in self._homes.get(slot, ()):
                yield dataset, ANY if template is None else self._paths(template)

    def links(self) -> Iterator[tuple[str, bool]]:
        """Yield the dataset of each link that is made, and whether it may lead to another one."""
        for step in self._steps:
            if isinstance(step, c.Symlink):
                leads_out = step.target is None or ".." in step.target.split("/")
                for dataset, _ in self._homes.get(step.slot, ()):
                    yield dataset, leads_out

    def _paths(self, template: str) -> _Paths:
        kind, text = template_parts(template)[0]
        start = text.casefold() if kind == "text" else ""
        return _Paths(start, self._pattern(template, frozenset()))

    def _pattern(self, template: str, within: frozenset[str]) -> str:
        return "".join(
            re.escape(text.casefold()) if kind == "text" else self._part(text, within)
            for kind, text in template_parts(template)
        )

    def _part(self, word: str, within: frozenset[str]) -> str:
        """Return the expression of a placeholder; ``within`` are those that it stands in."""
        if word in BUILT_IN:
            return BUILT_IN[word]
        if word.endswith(".name"):
            return "[^/]*"
        templates = [template for _, template in self._homes.get(word, ())]
        if word in within or not templates or None in templates:
            return ANY.pattern
        inner = (self._pattern(str(each), within | {word}) for each in templates)
        return f"(?:{'|'.join(sorted(inner))})"


def _bound(step: c.StepPart) -> Iterator[tuple[str, str, str | None]]:
    """Yield each name that a step binds, its dataset, and its template there; None: any entry."""
    for _, place in places_of(step, ()):
        dataset = place.in_ or place.from_
        if dataset is not None:
            yield place.slot, dataset, place.name
    match step:
        case s.Each():
            yield step.as_, step.of, None
        case s.For():
            yield from ((step.as_, step.in_, name) for name in step.names)
        case s.Script():
            yield from ((step.as_, step.in_, line.name) for line in step.lines)
        case _:
            pass


def _changed_slots(step: c.StepPart) -> Iterator[str]:
    match step:
        case c.Open() if WRITING & set(step.flags):
            yield step.slot
        case c.Rename():
            yield step.slot
            yield step.to.slot
        case (
            c.PathCall(do="unlink" | "rmdir") | c.Link()
        ):  # by another name, too, it may be written
            yield step.slot
        case c.Truncate():
            yield step.file or step.slot
        case _:
            pass
