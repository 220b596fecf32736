"""From a scenario to a plan: pure, seeded, the same bytes on every machine.

The files of a dataset are those of its manifest, or made up from counts, sizes and names.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

from replayer.plan.bindings import check_pickers
from replayer.plan.calls import compile_steps
from replayer.plan.changes import changed_datasets
from replayer.plan.document import FORMAT, Plan
from replayer.plan.pickers import GAMMA, Pickers, Stream, mix64
from replayer.plan.scope import Book, Scope, Tables, exponential_table, tabulate
from replayer.scenario.document import ScenarioError
from replayer.scenario.draws import DurationDraw, SizeDraw
from replayer.scenario.flow import names_of
from replayer.scenario.manifests import (
    DIRECTORY_MODE,
    MAX_FILE_BYTES,
    Entry,
    check_link,
    check_path,
    sort_entries,
)
from replayer.scenario.model import Compressible, Dataset, Scenario, wrong_users
from replayer.scenario.places import template_parts
from replayer.scenario.references import refuse

POOL_BYTES = 4 * 1024 * 1024
"""Chosen: larger than what file systems compress at once (records of 128 KiB)."""

POOL_MARGIN = 4096  # plan format 1
NANOSECONDS = 1_000_000_000


def compile_plan(
    scenario: Scenario,
    *,
    users: int | None = None,
    seed: int | None = None,
    duration_ns: int | None = None,
    transactions: int | None = None,
) -> Plan:
    """Compile a scenario; what is not given is taken from it.

    ``duration_ns`` and ``transactions`` (of each user) end a segment.

    Raises:
        ScenarioError: The datasets do not fit the users or the pickers.
    """
    count = scenario.users.count if users is None else users
    seed = scenario.seed if seed is None else seed
    _check_users(scenario, count)
    entries = compile_entries(scenario, seed)
    changed = changed_datasets(scenario, entries)
    book = Book(scenario, count, entries, Tables(), Pickers(seed), changed)
    stop = {
        "duration_ns": scenario.duration_ns if duration_ns is None else duration_ns,
        "transactions": scenario.iterations if transactions is None else transactions,
    }
    seeds = {"seed": seed} if scenario.draws is None else {"seed": seed, "draws": scenario.draws}
    body = {**_work(book), **_settings(scenario), **seeds, "users": count, "stop": stop}
    return Plan(body, tuple(book.traces.facts))


def _settings(scenario: Scenario) -> dict[str, Any]:
    """Return what a plan takes from its scenario as it stands."""
    # Users without a role have the mix; where there is none, that of the first role.
    rest = scenario.mix or next(iter(scenario.roles.values())).mix
    settings = {
        "format": FORMAT,
        "name": scenario.name,
        "written": _content(scenario.written),
        "mix": _weights(scenario, rest),
        "warm_up_ns": scenario.warm_up_ns,
    }
    if scenario.verify:
        settings["verify"] = True
    if scenario.roles:
        settings["roles"] = [
            [role.users, _weights(scenario, role.mix)] for role in scenario.roles.values()
        ]
    return settings


def _work(book: Book) -> dict[str, Any]:
    """Return what is made: transactions and pace first, since they fill the tables and pickers."""
    scenario = book.scenario
    transactions = [_transaction(book, name) for name in scenario.transactions]
    pace = _pace(book)
    check_pickers(book)
    traces = {"traces": book.traces.rows} if book.traces.rows else {}
    return {
        **traces,
        "transactions": transactions,
        "pace": pace,
        "pool_bytes": max(POOL_BYTES, -(-(book.largest_write + POOL_MARGIN) // 8) * 8),
        "tables": book.tables.rows,
        "pickers": book.pickers.rows,
        "datasets": [_dataset(book, name) for name in scenario.datasets],
    }


def _check_users(scenario: Scenario, count: int) -> None:
    wrong = wrong_users(count)
    if wrong is not None:
        raise refuse(scenario, ("users",), wrong)
    wanted = sum(role.users for role in scenario.roles.values())
    if count < wanted:
        message = f"users must be at least {wanted}, as many as the roles have, got {count}"
        raise ScenarioError(str(scenario.document.origin(("roles",))), message)
    if scenario.most_users is not None and count > scenario.most_users:
        message = f"users must be {wanted}, as many as the roles have, got {count}"
        hint = f"without a mix, other users have nothing to do: use -u {wanted}, or add a mix"
        raise ScenarioError(str(scenario.document.origin(("roles",))), message, hint=hint)


def _transaction(book: Book, name: str) -> dict[str, Any]:
    steps = book.scenario.transactions[name]
    names = names_of(book.scenario.sequences, steps)
    scope = Scope(book, {each: slot for slot, each in enumerate(names)})
    return {"name": name, "steps": compile_steps(scope, steps, ("transactions", name))}


def _pace(book: Book) -> dict[str, Any]:
    scenario, scope = book.scenario, Scope(book, {})
    if scenario.arrivals is not None:
        gap = NANOSECONDS / scenario.arrivals.rate
        if scenario.arrivals.process == "even":
            return {"kind": "arrivals", "gap": {"const": round(gap)}}
        return {"kind": "arrivals", "gap": {"table": book.tables.add(exponential_table(gap))}}
    users = scenario.users
    if users.every is not None:
        if not book.largest(users.every):
            raise refuse(book.scenario, ("users", "every"), "must be more than 0")
        return {"kind": "every", "period": scope.draw(users.every)}
    think = users.think_time or DurationDraw.model_validate(0)
    return {"kind": "closed", "think": scope.draw(think)}


def _dataset(book: Book, name: str) -> dict[str, Any]:
    dataset: Dataset = book.scenario.datasets[name]
    entries = [[e.path, e.type, e.size, e.mode, e.link] for e in book.entries[name]]
    return {
        "name": name,
        "directory": name,
        "laid_out": dataset.layout,
        "scope": dataset.per,
        "content": _content(dataset.content),
        "entries": entries,
    }


def _content(content: object) -> object:
    return content.model_dump() if isinstance(content, Compressible) else content


def _weights(scenario: Scenario, mix: Mapping[str, int]) -> list[int]:
    return [mix.get(name, 0) for name in scenario.transactions]


FILE_MODE = 0o644
LINK_MODE = 0o777


def compile_entries(scenario: Scenario, seed: int) -> Mapping[str, tuple[Entry, ...]]:
    """Return the entries of every dataset, by its name.

    Raises:
        ScenarioError: File names come out twice, or leave the dataset.
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
        message = f"has {{{strange[0]}}}, but only {{n}} is allowed"
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
