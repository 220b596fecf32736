"""The files of every dataset: those of its manifest, or made up from counts, sizes and names."""

import functools
import math
from collections.abc import Mapping

from replayer.plan.document import refuse
from replayer.plan.pickers import GAMMA, Stream, mix64
from replayer.plan.tables import tabulate
from replayer.scenario.draws import SizeDraw
from replayer.scenario.manifests import MAX_FILE_BYTES, Entry, check_link, check_path, sort_entries
from replayer.scenario.model import Dataset, Scenario
from replayer.scenario.places import template_parts

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
LINK_MODE = 0o777


def compile_entries(scenario: Scenario, seed: int) -> Mapping[str, tuple[Entry, ...]]:
    """Return the entries of every dataset, by its name.

    Raises:
        PlanError: File names come out twice, or leave the dataset.
    """
    return {name: _resolve(scenario, name, seed) for name in scenario.datasets}


def _resolve(scenario: Scenario, name: str, seed: int) -> tuple[Entry, ...]:
    dataset = scenario.datasets[name]
    if dataset.copy_of is not None:
        entries = _resolve(scenario, dataset.copy_of, seed)
    elif dataset.files is not None:
        entries = _generate(scenario, name, seed)
    else:
        entries = scenario.entries.get(name, ())
    moved, links = _moved(scenario, name, entries), _links(scenario, name)
    if not links:
        return moved
    place = f"{scenario.document.origin(('datasets', name, 'links'))}: datasets.{name}.links"
    return sort_entries((*moved, *links), place)


def _links(scenario: Scenario, name: str) -> list[Entry]:
    """Return the symbolic links that a dataset has beside the entries of its source."""
    found = []
    for path, target in scenario.datasets[name].links.items():
        entry = Entry(path, "l", 0, LINK_MODE, target)
        problem = check_path(path) or check_link(entry)
        if problem is not None:
            raise refuse(scenario, ("datasets", name, "links", path), problem)
        found.append(entry)
    return found


def _moved(scenario: Scenario, name: str, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Put entries below the directory that ``under`` names."""
    under = scenario.datasets[name].under
    if under is None:
        return entries
    problem = check_path(under)
    if problem is not None:
        raise refuse(scenario, ("datasets", name, "under"), f"({under}) {problem}")
    above = [Entry(path, "d", 0, DIRECTORY_MODE) for path in _with_parents([under])]
    moved = [Entry(f"{under}/{e.path}", e.type, e.size, e.mode, e.link) for e in entries]
    return (*above, *moved)


def _generate(scenario: Scenario, name: str, seed: int) -> tuple[Entry, ...]:
    dataset = scenario.datasets[name]
    count = dataset.files or 0
    number = list(scenario.datasets).index(name)
    sizes = _sizes(dataset, count, Stream(mix64(seed + GAMMA * (number + 1))))
    directories = _directories(dataset, count)
    template = dataset.names or "f{n}"
    strange = [word for kind, word in template_parts(template) if kind == "part" and word != "n"]
    if strange:
        message = f"has {{{strange[0]}}}, and can only have {{n}}"
        raise refuse(scenario, ("datasets", name, "names"), message)
    entries = [Entry(path, "d", 0, DIRECTORY_MODE) for path in _with_parents(directories)]
    per_directory = dataset.per_directory or count
    for index, size in enumerate(sizes):
        file_name = template.replace("{n}", str(index))
        folder = directories[index // per_directory] if directories else ""
        path = f"{folder}/{file_name}" if folder else file_name
        entries.append(Entry(path, "f", size, FILE_MODE))
    _check(scenario, name, entries)
    return sort_entries(entries, name)


def _sizes(dataset: Dataset, count: int, stream: Stream) -> list[int]:
    if dataset.sizes is None:
        return _share(dataset.bytes_ or 0, [1] * count)
    drawn = [_draw(dataset.sizes, stream) for _ in range(count)]
    return drawn if dataset.bytes_ is None else _share(dataset.bytes_, drawn)


def _share(total: int, weights: list[int]) -> list[int]:
    """Divide a total in proportion to weights, exactly."""
    whole = sum(weights)
    if whole == 0:
        return _share(total, [1] * len(weights))
    shares, cumulative, given = [], 0, 0
    for weight in weights:
        cumulative += weight
        until = total * cumulative // whole
        shares.append(until - given)
        given = until
    return shares


def _draw(draw: SizeDraw, stream: Stream) -> int:
    if draw.const is not None:
        return draw.const
    if draw.uniform is not None:
        low, high = draw.uniform
        return low + stream.below(high - low + 1)
    row = _row(draw)
    return row[stream.below(len(row))]


@functools.lru_cache(maxsize=64)
def _row(draw: SizeDraw) -> list[int]:
    return tabulate(draw) or [0]


def _directories(dataset: Dataset, count: int) -> list[str]:
    """Return the directory of each ``per_directory`` files; empty when all are at the top."""
    depth = 1 if dataset.depth is None else dataset.depth
    if dataset.per_directory is None or depth == 0:
        return []
    leaves = math.ceil(count / dataset.per_directory)
    fan_out = 1
    while fan_out**depth < leaves:
        fan_out += 1
    return [_leaf(index, fan_out, depth) for index in range(leaves)]


def _leaf(index: int, fan_out: int, depth: int) -> str:
    parts = []
    for _ in range(depth):
        index, digit = divmod(index, fan_out)
        parts.append(f"d{digit}")
    return "/".join(reversed(parts))


def _with_parents(directories: list[str]) -> list[str]:
    found: dict[str, None] = {}
    for directory in directories:
        steps = directory.split("/")
        found.update(dict.fromkeys("/".join(steps[: n + 1]) for n in range(len(steps))))
    return list(found)


def _check(scenario: Scenario, name: str, entries: list[Entry]) -> None:
    key = ("datasets", name, "names")
    seen: set[str] = set()
    for entry in entries:
        problem = check_path(entry.path)
        if problem is not None:
            raise refuse(scenario, key, f"gives the path {entry.path!r}, which {problem}")
        if entry.path in seen:
            hint = "put {n}, the number of the file, into the template"
            raise refuse(scenario, key, f"gives {entry.path} twice", hint)
        seen.add(entry.path)
        if entry.size > MAX_FILE_BYTES:
            message = f"gives {entry.path} {entry.size:,} bytes, more than {MAX_FILE_BYTES:,}"
            raise refuse(scenario, ("datasets", name, "files"), message)
