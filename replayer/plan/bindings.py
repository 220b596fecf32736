"""Compiles how steps name paths: places, templates and picks become ``bind`` steps."""

import fnmatch
from typing import Any

from replayer.plan.pickers import candidates_of
from replayer.plan.refusal import PlanError
from replayer.plan.scope import Book, Scope
from replayer.scenario.calls import StepPart
from replayer.scenario.document import Key
from replayer.scenario.manifests import check_path
from replayer.scenario.places import Place, template_parts
from replayer.scenario.refusals import show_key

TYPES = {"file": "f", "directory": "d", "link": "l", "any": "fdl"}
RANDOM_DIGITS = 8


def compile_place(scope: Scope, step: StepPart, place: Place, key: Key) -> list[dict[str, Any]]:
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


def refuse(book: Book, key: Key, message: str, hint: str = "") -> PlanError:
    """Return the error for a place of the scenario."""
    origin = book.scenario.document.origin(key)
    return PlanError(str(origin), f"{show_key(key)} {message}", hint=hint)


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
        raise refuse(book, key, f"({template}) {problem}")


def _shortest(word: str) -> str:
    return "x" * RANDOM_DIGITS if word == "random" else "x"


def _pick(scope: Scope, step: StepPart, place: Place, key: Key) -> dict[str, Any]:
    book, dataset = scope.book, str(place.from_)
    types = TYPES[place.kind or _usual_kind(step)]
    candidates = candidates_of(book.entries[dataset], types)
    if candidates == 0:
        kind = (place.kind or _usual_kind(step)).replace("any", "").strip()
        what = f"{kind} entry" if kind else "entry"
        hint = "give the dataset entries, or take in: and name: for files that are made later"
        raise refuse(book, (*key, "from"), f"picks from {dataset}, which has no {what}", hint)
    if place.pick == "own" and candidates < book.users:
        message = (
            f"wants files for each user, but {dataset} has {candidates} for {book.users} users"
        )
        raise refuse(
            book, (*key, "pick"), message, f"at most {candidates} users, or a larger dataset"
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
        raise refuse(book, (*key, "match"), f"matches nothing in {dataset}")
    return runs


def _usual_kind(step: StepPart) -> str:
    return {"list": "directory", "rmdir": "directory", "readlink": "link"}.get(step.do, "file")
