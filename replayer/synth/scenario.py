"""A scenario of a trace's requests: groups of them become transactions, with tables of their paths.

Requests are grouped by what they do. Of each group the commonest ways stand in tables, one line a
path, with a word that names what is done with it. A group that changes names (a file that is made
and removed) is replayed as it was recorded, as it would not come out the same for another user.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

from replayer.synth.requests import Entry, Request, Traffic, Visit

__all__ = ["Group", "Synthesis", "synthesize"]

MOST_WAYS = 8
"""Chosen: ways of a group that stand in tables; each other request counts to the nearest."""
FEWEST_PAUSES = 5  # chosen: pauses whose spread is told
RUN_TIME = "60s"
WORDS = {"close": "", "repeat": "read"}
"""What a step adds to the name of its series, where that is not its own."""
HEADER = "use\tname\n"
MANIFEST_HEADER = "path\ttype\tsize\tmode\tlink\n"


@dataclass(frozen=True)
class Group:
    """Requests that do nearly the same."""

    name: str
    label: str
    requests: int
    ways: Sequence[tuple[int, tuple[Visit, ...], Any]]
    """How many requests each way stands for, what it does, and the pause as a scenario has it."""
    changes: frozenset[str]
    """What it changes; such a group is replayed."""


@dataclass(frozen=True)
class Synthesis:
    """The scenario and the files beside it."""

    text: str
    files: Mapping[str, str]
    """By their path, relative to the scenario."""
    groups: Sequence[Group]
    left_out: Mapping[str, int] = field(default_factory=dict)


def synthesize(traffic: Traffic, name: str, trace: str, folder: str) -> Synthesis:
    """Make a scenario.

    Args:
        traffic: What the requests do.
        name: Of the scenario.
        trace: How the scenario names the trace, for groups that are replayed.
        folder: Where its tables and lists of files are, beside it.
    """
    groups = [*_groups(traffic.requests)]
    sequences = _sequences(groups)
    roots = _roots(traffic.tree)
    files: dict[str, str] = {
        f"{folder}/{dataset}.tsv": _manifest(traffic.tree, root)
        for root, dataset in roots.items()
        if sequences
    }
    transactions: dict[str, Any] = {}
    for group in groups:
        steps, tables = _transaction(group, sequences, roots, folder)
        transactions[group.name] = steps or {"trace": trace, "request": group.label}
        files.update(tables)
    written = {steps: [traffic.steps[step] for step in steps] for steps in sequences}
    parts = [
        f"name: {name}",
        f"about: The traffic of a trace, {len(traffic.requests)} requests.",
        *_block("assumptions", _assumptions(groups, traffic.left_out)),
        f"users: {_flow(_users(traffic.requests))}",
        f"duration: {RUN_TIME}",
        *_datasets(folder, roots.values() if sequences else ()),
        "mix:",
        *(f"  {group.name}: {group.requests}" for group in groups),
        *(["sequences:"] if sequences else []),
        *(
            line
            for steps, word in sequences.items()
            for line in _block(f"  {word}", written[steps])
        ),
        "transactions:",
        *(line for each in transactions.items() for line in _transaction_lines(*each)),
    ]
    text = "\n".join(parts) + "\n"
    return Synthesis(text, files, groups, traffic.left_out)


def _datasets(folder: str, names: Iterable[str]) -> Iterator[str]:
    lines = [f"  {name}: {_flow({'manifest': f'{folder}/{name}.tsv'})}" for name in names]
    yield from ["datasets:", *lines] if lines else []


def _block(title: str, values: Iterable[object]) -> Iterator[str]:
    """Yield a list below its title, each value in a line."""
    yield f"{title}:"
    depth = " " * (len(title) - len(title.lstrip()) + 2)
    yield from (f"{depth}- {_flow(value)}" for value in values)


def _transaction_lines(name: str, steps: object) -> Iterator[str]:
    if isinstance(steps, dict):
        yield f"  {name}: {_flow(steps)}"
        return
    yield from _block(f"  {name}", steps)  # type: ignore[arg-type] # a list of steps


class _Dumper(yaml.SafeDumper):
    """Writes each value where it stands."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as the library calls it
        return True


def _flow(value: object) -> str:
    """Return a value as YAML in one line."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        width=10**6,
        allow_unicode=True,
    )
    return text.removesuffix("...\n").strip()


def _groups(requests: Sequence[Request]) -> Iterator[Group]:
    labels: dict[str, list[Request]] = {}
    for request in requests:
        labels.setdefault(request.label, []).append(request)
    names: set[str] = set()
    for label, own in sorted(labels.items(), key=lambda item: -len(item[1])):
        name = _unique(_slug(label) or "request", names)
        changes = frozenset[str]().union(*(request.changes for request in own))
        yield Group(name, label, len(own), [] if changes else [*_ways(own)], changes)


def _ways(requests: Sequence[Request]) -> Iterator[tuple[int, tuple[Visit, ...], Any]]:
    """Yield ways, one of each shape first, with the pauses of the requests that each stands for."""
    shapes = Counter(map(_shape, requests))
    ordered = sorted(requests, key=lambda request: -shapes[_shape(request)])
    firsts = {_shape(request): request for request in reversed(ordered)}
    common = sorted(firsts.values(), key=lambda request: -shapes[_shape(request)])
    kept = [*{each.visits: each for each in [*common, *ordered]}.values()][:MOST_WAYS]
    pauses: list[list[int]] = [[] for _ in kept]
    for request in requests:
        distances = [
            (_distance(request, each), len(own)) for each, own in zip(kept, pauses, strict=True)
        ]
        pauses[distances.index(min(distances))].append(request.pause_ns)
    for request, own in zip(kept, pauses, strict=True):
        if own:
            yield len(own), request.visits, _pause(own)


def _shape(request: Request) -> tuple[tuple[str, ...], ...]:
    """Return what a request does, whatever the paths."""
    return tuple(visit.steps for visit in request.visits)


def _distance(one: Request, other: Request) -> int:
    """Return how many steps two requests do not have in common."""
    if one.visits == other.visits:
        return -1
    own, others = (
        Counter(step for visit in each.visits for step in visit.steps) for each in (one, other)
    )
    return (own - others).total() + (others - own).total()


def _pause(pauses_ns: Sequence[int]) -> Any:  # noqa: ANN401 - as a scenario has it
    median, p95 = (int(np.percentile(pauses_ns, share)) for share in (50, 95))
    if len(pauses_ns) < FEWEST_PAUSES or median <= 0:
        return f"{int(np.mean(pauses_ns))}ns"
    return {"lognormal": {"median": f"{median}ns", "p95": f"{p95}ns"}}


def _sequences(groups: Sequence[Group]) -> dict[tuple[str, ...], str]:
    """Return a word for each series of steps, the commonest first."""
    counts = Counter(
        visit.steps
        for group in groups
        for number, visits, _ in group.ways
        for visit in visits * min(number, 1)
    )
    words: set[str] = set()
    return {steps: _unique(_word(steps), words) for steps, _ in counts.most_common()}


def _word(steps: Sequence[str]) -> str:
    """Return what a series of steps is called: its calls, each once."""
    names = [re.sub(r"[^a-z_]", "", step.split(":")[0].lower()) for step in steps]
    said = [WORDS.get(name, name) for name in dict.fromkeys(names)]
    return "_".join(filter(None, said))[:40] or "look"


def _transaction(
    group: Group,
    sequences: Mapping[tuple[str, ...], str],
    roots: Mapping[bytes, str],
    folder: str,
) -> tuple[list[Any], dict[str, str]]:
    """Return the steps of a group, and its tables; none where it is replayed."""
    tables: dict[str, str] = {}
    branches = []
    for number, (weight, visits, pause) in enumerate(group.ways, 1):
        steps: list[Any] = [{"think": pause}]
        for part, (dataset, lines) in enumerate(_runs(visits, sequences, roots), 1):
            file = f"{folder}/{group.name}-{number}{f'-{part}' if part > 1 else ''}.tsv"
            tables[file] = HEADER + "".join(f"{word}\t{name}\n" for word, name in lines)
            steps.append({"script": {"in": dataset, "file": file}})
        branches.append({"weight": weight, "steps": steps})
    whole: list[Any] = [{"choose": branches}] if branches else []
    return branches[0]["steps"] if len(branches) == 1 else whole, tables  # type: ignore[return-value]


def _runs(
    visits: Sequence[Visit], sequences: Mapping[tuple[str, ...], str], roots: Mapping[bytes, str]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield visits that follow each other in one root, each as a word and a path."""
    run: tuple[str, list[tuple[str, str]]] | None = None
    for visit in visits:
        root, _, rest = visit.path.partition(b"/")
        name = _text(rest or b".")
        if root not in roots or name is None:
            continue
        if run is None or run[0] != roots[root]:
            if run is not None:
                yield run
            run = roots[root], []
        run[1].append((sequences[visit.steps], name))
    if run is not None:
        yield run


def _roots(tree: Sequence[Entry]) -> dict[bytes, str]:
    names: set[str] = set()
    roots = dict.fromkeys(entry.path.partition(b"/")[0] for entry in tree)
    return {root: _unique(_slug(root.decode(errors="replace")) or "files", names) for root in roots}


def _manifest(tree: Sequence[Entry], root: bytes) -> str:
    lines = []
    for entry in tree:
        own, _, rest = entry.path.partition(b"/")
        path, link = _text(rest), _text(entry.link)
        if own == root and rest and path is not None and link is not None and entry.type in "fdl":
            lines.append(f"{path}\t{entry.type}\t{entry.size}\t{entry.mode & 0o7777:o}\t{link}\n")
    return MANIFEST_HEADER + "".join(lines)


def _text(name: bytes) -> str | None:
    """Return a name as a table can hold it; None where it cannot."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return None
    return None if re.search(r"[\t\n\r\x00-\x1f]", text) else text


def _users(requests: Sequence[Request]) -> dict[str, Any]:
    """Return as many users as requests were under way at once, who pause as long as those did."""
    edges = sorted(
        [(each.start_ns, 1) for each in requests] + [(each.end_ns, -1) for each in requests]
    )
    at_once = max(int(np.cumsum([change for _, change in edges]).max()), 1)
    span_ns = max(edges[-1][0] - edges[0][0], 1)
    busy_ns = sum(each.end_ns - each.start_ns for each in requests)
    pause_ns = max((at_once * span_ns - busy_ns) // len(requests), 0)
    pause = {"think_time": {"exponential": f"{pause_ns}ns"}} if pause_ns else {}
    return {"count": at_once, **pause}


def _assumptions(groups: Sequence[Group], left_out: Mapping[str, int]) -> Iterator[str]:
    yield (
        "Made of a trace by replayer synth: requests of one label are one transaction, and the "
        "commonest ways in which they were served are its branches."
    )
    yield "A request's own work is one pause before its calls, as long as it was in all."
    yield "Files that were open at the same time are used one after the other."
    replayed = [group.name for group in groups if group.changes]
    if replayed:
        yield f"Replayed as recorded, as they change names or attributes: {', '.join(replayed)}."
    if left_out:
        told = ", ".join(f"{count} {op}" for op, count in Counter(left_out).most_common())
        yield f"Calls left out, for which scenarios have no word: {told}."
    rate = sum(group.requests for group in groups)
    yield f"The mix has the {rate} requests of the trace, by how often each kind was recorded."


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:48]


def _unique(name: str, names: set[str]) -> str:
    found, number = name, 1
    while found in names:
        number += 1
        found = f"{name}_{number}"
    names.add(found)
    return found
