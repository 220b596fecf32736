"""From a scenario to a plan: pure, seeded, the same bytes on every machine."""

from collections.abc import Mapping
from typing import Any

from replayer.plan.bindings import check_pickers
from replayer.plan.calls import compile_steps
from replayer.plan.changes import changed_datasets
from replayer.plan.document import FORMAT, Plan, PlanError, refuse
from replayer.plan.layout import compile_entries
from replayer.plan.pickers import Pickers
from replayer.plan.scope import Book, Scope
from replayer.plan.tables import Tables, exponential_table
from replayer.scenario.draws import DurationDraw
from replayer.scenario.flow import names_of
from replayer.scenario.model import Compressible, Dataset, Scenario, wrong_users

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
        PlanError: The datasets do not fit the users or the pickers.
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
    body = {**_work(book), **_settings(scenario), "seed": seed, "users": count, "stop": stop}
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
        raise PlanError(str(scenario.document.origin(("users",))), f"users {wrong}")
    wanted = sum(role.users for role in scenario.roles.values())
    if count < wanted:
        message = f"users must be at least {wanted}, as many as the roles have, got {count}"
        raise PlanError(str(scenario.document.origin(("roles",))), message)
    if scenario.most_users is not None and count > scenario.most_users:
        message = f"users must be {wanted}, as many as the roles have, got {count}"
        hint = f"without a mix others have nothing to do: take -u {wanted}, or add a mix"
        raise PlanError(str(scenario.document.origin(("roles",))), message, hint=hint)


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
