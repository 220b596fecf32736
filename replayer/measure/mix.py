"""What a plan says of its transactions: the share of each, and whether users think in between.

Plans come from run folders, of any version and perhaps damaged: what cannot be read is as if the
plan said nothing.
"""

from collections.abc import Mapping
from typing import Any

Plan = Mapping[str, Any]


def planned_shares(plan: Plan) -> dict[str, float]:
    """Return each transaction's share of all, 0 to 1: of users with a role and of others together.

    Raises:
        KeyError: The plan has no transactions, as fio's job files have none.
    """
    roles = [*plan.get("roles", [])]
    rest = plan["users"] - sum(users for users, _ in roles)
    shares = {row["name"]: 0.0 for row in plan["transactions"]}
    for users, mix in [*roles, [rest, plan["mix"]]]:
        for name, weight in zip(shares, mix, strict=True):
            shares[name] += users / plan["users"] * weight / sum(mix)
    return shares


def by_weight(counts: Mapping[str, int], plan: Plan | None) -> list[str]:
    """Return the names of transactions, those first that users do most.

    By the shares of the plan, which chance does not change; then by how often they were counted.
    """
    try:
        shares = planned_shares(plan or {})
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        shares = {}
    places = {name: place for place, name in enumerate(shares)}

    def rank(name: str) -> tuple[float, int, int, str]:
        unplanned = -counts[name] if name not in places else 0
        return -shares.get(name, 0.0), places.get(name, len(places)), unplanned, name

    return sorted(counts, key=rank)


def has_think_time(plan: Plan | None) -> bool:
    """Whether users wait between transactions, so that their rate is mostly their own."""
    try:
        pace = (plan or {})["pace"]
        return bool(pace["kind"] == "closed" and pace["think"] != {"const": 0})
    except (KeyError, TypeError):
        return False
