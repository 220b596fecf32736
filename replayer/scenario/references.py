"""Judges what names what: datasets, transactions of the mix, sequences, thresholds."""

import re
from collections.abc import Iterable, Iterator, Mapping

from replayer.ops import TIMED_OPS
from replayer.scenario.calls import OfTwoPaths, StepPart
from replayer.scenario.document import Key, ScenarioError, nearest_hint
from replayer.scenario.draws import Draw
from replayer.scenario.model import Content, Scenario, is_zeros
from replayer.scenario.places import Place
from replayer.scenario.refusals import show_key
from replayer.scenario.steps import Await, Each, For, Replay, Script, Signal, Use, walk_steps

_SUBJECT = re.compile(r"\s*(?:[^:<>=!\s]+:)?([A-Za-z0-9_-]+)(?:/[a-z_]+)?\.")
MAX_SIGNALS = 16
"""Signals of plan format 1."""
MAX_CHAIN = 32
"""Chosen: a sequence that uses a sequence is two; nobody has thirty."""
_METRICS = re.compile(r"service|lag|p[0-9]+")


def check_references(scenario: Scenario) -> None:
    """Check every name that refers to another part of the scenario.

    Raises:
        ScenarioError: Something is named that does not exist, refers to itself, or does not go
            with ``verify``.
    """
    if scenario.mix:
        _check_mix(scenario, ("mix",), scenario.mix)
    _check_roles(scenario)
    _check_datasets(scenario)
    for key, step in every_step(scenario):
        _check_step(scenario, key, step)
    _check_signals(scenario)
    uses = {
        name: [step.sequence for _, step in walk_steps(steps, ()) if isinstance(step, Use)]
        for name, steps in scenario.sequences.items()
    }
    _check_cycles(scenario, "sequences", uses)
    _check_thresholds(scenario)
    if scenario.verify:
        _check_verified(scenario)


def every_step(scenario: Scenario) -> Iterator[tuple[Key, StepPart]]:
    """Yield each step of transactions and sequences with its key."""
    for group in ("transactions", "sequences"):
        for name, steps in getattr(scenario, group).items():
            yield from walk_steps(steps, (group, name))


def refuse(scenario: Scenario, key: Key, message: str, hint: str = "") -> ScenarioError:
    """Return the error for a place of a scenario."""
    return ScenarioError(
        str(scenario.document.origin(key)), f"{show_key(key)} {message}", hint=hint
    )


def _check_mix(scenario: Scenario, key: Key, mix: Mapping[str, int]) -> None:
    for name in mix:
        if name not in scenario.transactions:
            hint = nearest_hint(name, scenario.transactions, kind="transactions")
            raise refuse(scenario, (*key, name), "is not a transaction of this scenario", hint)
    if not any(mix.values()):
        raise refuse(scenario, key, "is all zero: at least one weight must be more than 0")


def _check_roles(scenario: Scenario) -> None:
    for name, role in scenario.roles.items():
        _check_mix(scenario, ("roles", name, "mix"), role.mix)
    wanted = sum(role.users for role in scenario.roles.values())
    if wanted > scenario.users.count:
        message = f"use {wanted} users, more than users.count ({scenario.users.count})"
        raise refuse(scenario, ("roles",), message)


def _check_datasets(scenario: Scenario) -> None:
    for name, dataset in scenario.datasets.items():
        if dataset.copy_of is not None:
            _check_dataset(scenario, ("datasets", name, "copy_of"), dataset.copy_of)
        if dataset.sizes is not None and dataset.sizes.size_of is not None:
            key = ("datasets", name, "sizes", "size_of")
            raise refuse(scenario, key, "works in steps, not in datasets")
    copies = {
        name: [dataset.copy_of] if dataset.copy_of else []
        for name, dataset in scenario.datasets.items()
    }
    _check_cycles(scenario, "datasets", copies)


def _check_dataset(scenario: Scenario, key: Key, name: str) -> None:
    if name not in scenario.datasets:
        hint = nearest_hint(name, scenario.datasets, kind="datasets")
        raise refuse(scenario, key, f"names the dataset {name}, which does not exist", hint)


def _check_step(scenario: Scenario, key: Key, step: StepPart) -> None:
    inside = (*key, step.do)
    for place_key, place in places_of(step, inside):
        for field, name in (("in", place.in_), ("from", place.from_)):
            if name is not None:
                _check_dataset(scenario, (*place_key, field), name)
    match step:
        case Each():
            _check_dataset(scenario, (*inside, "of"), step.of)
        case For() | Script():
            _check_dataset(scenario, (*inside, "in"), step.in_)
        case Use() if step.sequence not in scenario.sequences:
            hint = nearest_hint(step.sequence, scenario.sequences, kind="sequences")
            message = f"names the sequence {step.sequence}, which does not exist"
            raise refuse(scenario, inside, message, hint)
        case _:
            pass


def _check_signals(scenario: Scenario) -> None:
    """Check that what is waited for is given somewhere, and that there are not too many."""
    every = list(every_step(scenario))
    given = {step.signal: None for _, step in every if isinstance(step, Signal)}
    for key, step in every:
        wanted = step.signal if isinstance(step, Await) else getattr(step, "since", None)
        if wanted is not None and wanted not in given:
            hint = nearest_hint(wanted, given, kind="signals")
            message = f"waits for {wanted}, a signal that no step sends"
            raise refuse(scenario, (*key, step.do), message, hint)
    if len(given) > MAX_SIGNALS:
        message = f"must give at most {MAX_SIGNALS} signals, got {len(given)}"
        raise refuse(scenario, ("transactions",), message)


def places_of(step: StepPart, key: Key) -> list[tuple[Key, Place]]:
    """Return the places that a step names, each with its key, in the order of binding."""
    own = [(key, step)] if isinstance(step, Place) else []
    return [*own, ((*key, "to"), step.to)] if isinstance(step, OfTwoPaths) else [*own]


def draws_of(step: StepPart, key: Key) -> Iterable[tuple[Key, Draw[int]]]:
    """Yield the draws of a step, each with its key."""
    for name, value in vars(step).items():
        if isinstance(value, Draw):
            yield (*key, name), value


def _check_cycles(scenario: Scenario, group: str, edges: Mapping[str, list[str]]) -> None:
    depths: dict[str, int] = {}
    for name in edges:
        _visit(scenario, group, edges, [name], depths)


def _visit(
    scenario: Scenario,
    group: str,
    edges: Mapping[str, list[str]],
    path: list[str],
    depths: dict[str, int],
) -> int:
    """Return how many there are in the longest chain that begins with the last of a path."""
    name = path[-1]
    if name in depths:
        return depths[name]
    deepest = 0
    for following in edges[name]:
        if following in path:
            loop = " -> ".join([*path[path.index(following) :], following])
            raise refuse(scenario, (group, following), f"contains itself: {loop}")
        if len(path) <= MAX_CHAIN:
            deepest = max(deepest, _visit(scenario, group, edges, [*path, following], depths))
        if len(path) + deepest > MAX_CHAIN:
            message = f"includes a chain of {MAX_CHAIN} or more sequences"
            raise refuse(scenario, (group, path[0]), message)
    depths[name] = 1 + deepest
    return depths[name]


def _check_thresholds(scenario: Scenario) -> None:
    for index, threshold in enumerate(scenario.thresholds):
        match = _SUBJECT.match(threshold)
        known = {*scenario.transactions, *TIMED_OPS}
        if match is not None and match[1] not in known and not _METRICS.fullmatch(match[1]):
            hint = nearest_hint(match[1], scenario.transactions, kind="transactions")
            message = f"({threshold}) names {match[1]}, a transaction which does not exist"
            raise refuse(scenario, ("thresholds", index), message, hint)


def _check_verified(scenario: Scenario) -> None:
    """Check that all data can say whose they are, and that nothing else judges them."""
    contents: dict[Key, Content] = {
        ("written",): scenario.written,
        **{("datasets", name, "content"): each.content for name, each in scenario.datasets.items()},
    }
    for key, content in contents.items():
        if is_zeros(content):
            message = "is only zeros, which verify cannot tell apart"
            hint = "use random or compressible contents, or run it without verify"
            raise refuse(scenario, key, message, hint)
    for key, step in every_step(scenario):
        if isinstance(step, Replay):
            message = "is not allowed with replays, which are checked against their traces"
            raise refuse(
                scenario,
                ("verify",),
                f"{message}: {show_key((*key, step.do))}",
                "run it without verify",
            )
