"""Strategies for valid plans of format 1: small enough to run by the thousand, full of corners.

All names come from a handful, so that ops meet: missing files, existing targets, wrong types,
closed descriptors. What is left out on purpose, because its outcome is no matter of the plan:
seeking in directories, O_DIRECT (alignment of buffers), copying a growing file onto itself (never
ends), links that two components of `..` could lead out of the run's folder after a rename, and
waiting for a lock that the same user holds.
"""

from typing import Any

from hypothesis import strategies as st

from tests.property.datasets import CONTENTS, DIRECTORIES, datasets
from tests.property.ops import LARGEST_WRITE, TABLES, Scene
from tests.property.steps import PICKERS, steps

Document = dict[str, Any]

ALONE = Scene(climbs=tuple(f"../{directory}" for directory in DIRECTORIES))
AMONG_OTHERS = Scene(climbs=())
SCOPES = {ALONE: ["shared", "user"], AMONG_OTHERS: ["user"]}


@st.composite
def _picker(draw: st.DrawFn, filled: list[dict[str, Any]], users: int) -> Document:
    index = draw(st.integers(0, len(filled) - 1))
    entries = filled[index]["entries"]
    there = sorted({entry[1] for entry in entries})
    types = draw(st.lists(st.sampled_from(there), min_size=1, unique=True))
    count = sum(entry[1] in types for entry in entries)
    kinds = ["segments", "sequential", "own"] if count >= users else ["segments", "sequential"]
    picker: Document = {"dataset": index, "types": "".join(types)}
    picker["kind"] = draw(st.sampled_from(kinds))
    if picker["kind"] == "segments":
        picker["segments"] = draw(_segments(count))
        picker["shuffle"] = draw(st.none() | st.integers(0, 2**64 - 1))
    return picker


@st.composite
def _segments(draw: st.DrawFn, count: int) -> list[list[int]]:
    cuts = sorted(draw(st.sets(st.integers(0, count - 1), max_size=2)) | {0})
    ends = [*cuts[1:], count]
    weights = [draw(st.integers(0, 80)) for _ in cuts]
    weights[0] += 1
    spans = zip(weights, cuts, ends, strict=True)
    return [[weight, start, end - start] for weight, start, end in spans]


@st.composite
def plans(draw: st.DrawFn, users: int) -> Document:
    """A plan for so many users; if they are several, they do not get into each other's way."""
    scene = ALONE if users == 1 else AMONG_OTHERS
    sets = draw(datasets(SCOPES[scene]))
    bodies = draw(st.lists(steps(scene), min_size=1, max_size=2))
    evenly = [1] * len(bodies)
    return {
        "format": 1,
        "name": "any-plan",
        "seed": draw(st.integers(0, 2**64 - 1)),
        **draw(st.sampled_from([{}, {"draws": 2**64 - 1}])),
        "users": users,
        "written": draw(CONTENTS),
        "pool_bytes": LARGEST_WRITE + 4096 + 8 * draw(st.integers(0, 100)),
        "tables": TABLES,
        "datasets": sets,
        "pickers": [draw(_picker(sets, users)) for _ in range(PICKERS)],
        "transactions": [{"name": f"t{i}", "steps": body} for i, body in enumerate(bodies)],
        "mix": [weight + draw(st.integers(0, 9)) for weight in evenly],
        **draw(st.sampled_from([{}, {}, {"roles": [[1, evenly]]}])),
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": None, "transactions": draw(st.integers(1, 3))},
        "warm_up_ns": 0,
    }
