"""Compiles how steps name paths: places, templates and picks become ``bind`` steps.

Checks what plan format 1 can hold. The engine refuses what is beyond it, but cannot name the line
of the scenario.
"""

import fnmatch
from typing import Any

from replayer.plan.scope import Book, Scope
from replayer.scenario import calls as c
from replayer.scenario.document import Key
from replayer.scenario.manifests import check_path
from replayer.scenario.places import Place, template_parts
from replayer.scenario.references import draws_of, refuse

TYPES = {"file": "f", "directory": "d", "link": "l", "any": "fdl"}
RANDOM_DIGITS = 8


def compile_place(scope: Scope, step: c.StepPart, place: Place, key: Key) -> list[dict[str, Any]]:
    """Return the ``bind`` step of a place: none for a name that is bound already."""
    if place.from_ is not None:
        return [_pick(scope, step, place, key)]
    if place.in_ is None:
        return []
    slot = scope.slot(place.slot)
    scope.unbind(place.slot)
    if place.name is None:
        return [{"do": "bind", "slot": slot, "dataset": scope.book.numbers[place.in_]}]
    return [compile_template(scope, place.slot, place.in_, (*key, "name"), place.name)]


def compile_copy(scope: Scope, name: str, place: Place) -> dict[str, Any]:
    """Return the ``bind`` step that gives a name the path of a place which is bound already."""
    dataset = scope.book.numbers[str(place.in_ or place.from_)]
    bind: dict[str, Any] = {"do": "bind", "slot": scope.slot(name)}
    scope.take_over(name, place.slot)
    if place.in_ is not None and place.name in {None, "."}:
        return {**bind, "dataset": dataset}  # a dataset's own directory has no path within it
    return {**bind, "name": {"dataset": dataset, "parts": [{"path_of": scope.slot(place.slot)}]}}


def compile_template(
    scope: Scope, name: str, dataset: str, key: Key, template: str
) -> dict[str, Any]:
    """Return the ``bind`` step of a name in a dataset.

    The name of an entry becomes a pick of this very entry, so that its size and mode are known.
    """
    book = scope.book
    bind: dict[str, Any] = {"do": "bind", "slot": scope.slot(name)}
    scope.unbind(name)
    if template == ".":
        scope.exists[name] = True
        return {**bind, "dataset": book.numbers[dataset]}
    _check_literal(book, key, template)
    if "{" not in template:
        scope.exists[name] = book.holds(dataset, template)
    index = book.position(dataset, template)
    if index is not None and book.entries[dataset][index].type == "f":
        if book.stays(dataset):
            scope.sized[name] = dataset
        return {**bind, "pick": book.pickers.add_single(book.numbers[dataset], index)}
    parts = compile_parts(scope, template)
    return {**bind, "name": {"dataset": book.numbers[dataset], "parts": parts}}


def compile_parts(scope: Scope, template: str) -> list[Any]:
    """Return the parts of a template in the form of plan format 1."""
    return [
        text if kind == "text" else _part(scope, text) for kind, text in template_parts(template)
    ]


def _part(scope: Scope, word: str) -> dict[str, Any]:
    match word:
        case "user" | "round" | "seq" | "next":
            return {word: True}
        case "random":
            return {"hex": RANDOM_DIGITS}
        case _ if word.endswith(".name"):
            return {"name_of": scope.slot(word.removesuffix(".name"))}
        case _:
            return {"path_of": scope.slot(word)}


def _check_literal(book: Book, key: Key, template: str) -> None:
    """Refuse what can be seen to be no path; placeholders stand for a component's part each."""
    parts = template_parts(template)
    shown = "".join(_shortest(text) if kind == "part" else text for kind, text in parts)
    problem = check_path(shown)
    if problem is not None:
        raise refuse(book.scenario, key, f"({template}) {problem}")


def _shortest(word: str) -> str:
    return "x" * RANDOM_DIGITS if word == "random" else "x"


def _pick(scope: Scope, step: c.StepPart, place: Place, key: Key) -> dict[str, Any]:
    book, dataset = scope.book, str(place.from_)
    types = TYPES[place.kind or _usual_kind(step)]
    candidates = sum(entry.type in types for entry in book.entries[dataset])
    if candidates == 0:
        kind = (place.kind or _usual_kind(step)).replace("any", "").strip()
        what = f"{kind} entry" if kind else "entry"
        hint = "give the dataset entries, or use in: and name: for files that are created later"
        raise refuse(
            book.scenario, (*key, "from"), f"picks from {dataset}, which has no {what}", hint
        )
    if place.pick == "own" and candidates < book.users:
        raise refuse(
            book.scenario,
            (*key, "pick"),
            f"needs files for each user, but {dataset} has {candidates} for {book.users} users",
            f"use at most {candidates} users, or a larger dataset",
        )
    scope.unbind(place.slot)
    if types == "f" and book.stays(dataset):
        scope.sized[place.slot] = dataset
    number = book.numbers[dataset]
    if place.match is None:
        pick = book.pickers.add(number, types, place.pick or "uniform", candidates)
    else:
        pick = book.pickers.add_segments(number, types, _matching(book, dataset, types, place, key))
    return {"do": "bind", "slot": scope.slot(place.slot), "pick": pick}


def _matching(book: Book, dataset: str, types: str, place: Place, key: Key) -> list[list[int]]:
    """Return the runs of neighbouring candidates whose last component matches a pattern."""
    patterns = place.match or ()
    runs: list[list[int]] = []
    rank = 0
    for entry in book.entries[dataset]:
        if entry.type not in types:
            continue
        name = entry.path.rpartition("/")[2]
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            if runs and runs[-1][1] + runs[-1][2] == rank:
                runs[-1][2] += 1
                runs[-1][0] += 1
            else:
                runs.append([1, rank, 1])
        rank += 1
    if not runs:
        raise refuse(book.scenario, (*key, "match"), f"matches nothing in {dataset}")
    return runs


def _usual_kind(step: c.StepPart) -> str:
    return {"list": "directory", "rmdir": "directory", "readlink": "link"}.get(step.do, "file")


MAX_NUMBER = 2**63 - 1
MAX_PICKERS = 2**16
MAX_READ_BYTES = 2**30
MAX_WRITE_BYTES = 2**34 - 4096  # what writes are sliced from is as large, and 4096 bytes


def check_bounds(book: Book, step: c.StepPart, key: Key) -> None:
    """Check that a step asks for no more than an engine can do in one call.

    Raises:
        ScenarioError: It can draw a larger number.
    """
    if id(step) in book.bounded:
        return  # a script uses the steps of a sequence many times
    book.bounded.add(id(step))
    for draw_key, draw in draws_of(step, key):
        _check(book, draw_key, book.largest(draw), MAX_NUMBER)
    if isinstance(step, c.Read | c.AtOffset) and step.do != "pwrite":
        _check(book, (*key, "size"), book.largest(step.size), MAX_READ_BYTES)
    written = largest_write(book, step)
    where = "block" if isinstance(step, c.Write) else "size"
    _check(book, (*key, where), written, MAX_WRITE_BYTES)


def check_pickers(book: Book) -> None:
    """Check that the transactions do not pick files in more ways than steps can refer to.

    Raises:
        ScenarioError: They do.
    """
    found = len(book.pickers.rows)
    if found > MAX_PICKERS:
        message = (
            f"must pick and name files in at most {MAX_PICKERS:,} different ways, got {found:,}"
        )
        hint = "each path of a script is one way: use a shorter script"
        raise refuse(book.scenario, ("transactions",), message, hint)


def largest_write(book: Book, step: c.StepPart) -> int:
    """Return how many bytes one call of a step writes at most."""
    match step:
        case c.Write():
            pieces = [step.block] if step.first is None else [step.first, step.block]
            return min(book.largest(step.size), max(map(book.largest, pieces)))
        case c.AtOffset(do="pwrite") | c.Setxattr():
            return book.largest(step.size)
        case _:
            return 0


def _check(book: Book, key: Key, value: int, most: int) -> None:
    if value > most:
        message = f"must be at most {most:,} for one call, but can be {value:,}"
        raise refuse(book.scenario, key, message)
