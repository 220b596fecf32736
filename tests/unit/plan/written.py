"""Random scenarios, written as YAML: what the property tests of plans begin with."""

import json
from typing import Any

from hypothesis import strategies as st

from replayer.scenario.loading import parse_scenario
from replayer.scenario.model import Scenario

__all__ = ["scenarios"]

Value = dict[str, Any]

SIZES = st.one_of(
    st.integers(0, 100_000).map(lambda n: f"{n}B"),
    st.just({"uniform": ["1B", "9KiB"]}),
    st.just({"lognormal": {"median": "300B", "p95": "4KiB"}}),
    st.just({"exponential": "2KiB"}),
    st.just({"values": ["1B", "4KiB"]}),
    st.just({"quantiles": ["0B", "1KiB", "64KiB"]}),
)
PICKS = st.sampled_from(["uniform", "sequential", "own", {"hot": "80/20"}, {"zipf": 1.1}])
PLACES = st.one_of(
    PICKS.map(lambda pick: {"from": "files", "pick": pick}),
    st.just({"in": "files", "name": "d0/f1"}),
    st.just({"in": "work", "name": "x-{user}-{seq}-{random}"}),
)


def _lookups(draw: st.DrawFn) -> list[Value]:
    place = draw(PLACES)
    word = draw(st.sampled_from(["stat", "lstat", "access"]))
    return [{word: {**place, "expect": ["ok", "ENOENT"]}}]


def _reads(draw: st.DrawFn) -> list[Value]:
    pick = draw(PICKS)
    ways: list[Value] = [
        {"read": {"size": "8KiB", "until": "end"}},
        {"read": {"size": draw(SIZES)}},
        {"pread": {"size": "1KiB", "offset": "random"}},
        {"sendfile": {"size": "64KiB"}},
        {"fstat": "file"},
    ]
    middle: list[Value] = draw(st.lists(st.sampled_from(ways), max_size=3))
    opening: Value = {"open": {"from": "files", "pick": pick}}
    return [opening, *middle, {"close": "file"}]


def _writes(draw: st.DrawFn) -> list[Value]:
    name = draw(st.sampled_from(["a{seq}", "{user}/b{random}"]))
    opening = {"in": "work", "name": name, "flags": ["rdwr", "create"], "expect": "any"}
    if "/" in name:
        opening["name"] = name.replace("/", "-")
    write = {"write": {"size": draw(SIZES), "block": "4KiB", "expect": "any"}}
    return [{"open": opening}, write, {"fsync": {"expect": "any"}}, {"close": {"expect": "any"}}]


def _control(draw: st.DrawFn) -> list[Value]:
    inner = _lookups(draw)
    return draw(
        st.sampled_from(
            [
                [{"repeat": {"times": draw(st.integers(0, 3)), "steps": inner}}],
                [{"choose": [{"weight": 2, "steps": inner}, {"steps": []}]}],
                [{"each": {"of": "files", "as": "entry", "file": [{"stat": "entry"}]}}],
                [{"for": {"in": "files", "names": ["d0/f0", "no"], "steps": ["access_it"]}}],
                [{"think": "1us"}],
            ]
        )
    )


@st.composite
def scenarios(draw: st.DrawFn, users: int = 3) -> Scenario:
    """Draw a scenario of one to three transactions that compiles for so many users."""
    makers = [_lookups, _reads, _writes, _control]
    transactions: dict[str, list[Value]] = {}
    for number in range(draw(st.integers(1, 3))):
        chosen = draw(st.lists(st.sampled_from(makers), min_size=1, max_size=4))
        steps = [step for maker in chosen for step in maker(draw)]
        text = json.dumps(steps).replace('"access_it"', '{"access": {"expect": "layout"}}')
        transactions[f"t{number}"] = json.loads(text)
    value = {
        "name": "drawn",
        "seed": draw(st.integers(0, 2**64 - 1)),
        "users": {"count": users, **draw(st.sampled_from([{}, {"think_time": "0s"}]))},
        "iterations": draw(st.integers(1, 3)),
        "datasets": {
            "files": {
                "files": draw(st.integers(users, 30)),
                "sizes": draw(SIZES),
                "per_directory": draw(st.integers(2, 9)),
                "depth": 1,
            },
            "work": {"directory": True, "per": draw(st.sampled_from(["shared", "user"]))},
        },
        "mix": dict.fromkeys(transactions, 1),
        "transactions": transactions,
    }
    return parse_scenario(json.dumps(value), "drawn.yaml")  # JSON is YAML
