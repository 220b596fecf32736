"""Strategies for steps: bindings, ops on them, loops around both, and habits of real programs."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.property.datasets import DIRECTORIES, NAMES
from tests.property.ops import (
    AT,
    FILES,
    LISTS,
    LOOSE,
    O_CREAT,
    O_DIRECTORY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    USEFUL,
    Scene,
    Step,
    Strategy,
    call,
    data_ops,
    file_ops,
    numbers,
    opens,
    path_ops,
)

PICKERS = 4  # every plan has so many
SOURCE, COPY, LOCKED = 13, 14, 15  # slots of habits

KNOWN = ["a", "a", "b", "b", "c", "a/a", "a/b", "b/a", "a/b/c", *NAMES[3:]]
INVALID = ["", ".", "..", "/a", "a//b", "a/../b", "n" * 256, "long/" * 900 + "x", "a/"]
DATASET = st.integers(0, len(DIRECTORIES) - 1)
PICKER = st.integers(0, PICKERS - 1)
NOTHING, SOME = {"const": 0}, {"const": 4096}


def bind_name(slot: int, dataset: int, *parts: object) -> Step:
    """Bind a composed name."""
    return {"do": "bind", "slot": slot, "name": {"dataset": dataset, "parts": list(parts)}}


PART = st.one_of(
    st.sampled_from(
        ["a", "/", "x", {"user": True}, {"round": True}, {"seq": True}, {"next": True}]
    ),
    st.integers(1, 16).map(lambda digits: {"hex": digits}),
    numbers(70_000).map(lambda draw: {"draw": draw}),
    AT.map(lambda slot: {"path_of": slot}),
    AT.map(lambda slot: {"name_of": slot}),
)
PARTS = st.one_of(
    *[st.sampled_from(KNOWN).map(lambda path: [path])] * 5,
    AT.map(lambda slot: [{"path_of": slot}]),
    st.lists(PART, max_size=4),
    st.sampled_from(INVALID).map(lambda path: [path]),
)
BINDS = st.one_of(
    *[st.builds(lambda s, d, p: bind_name(s, d, *p), AT, DATASET, PARTS)] * 3,
    st.builds(lambda s, p: {"do": "bind", "slot": s, "pick": p}, AT, PICKER),
    st.builds(
        lambda s, d: {"do": "bind", "slot": s, "dataset": d}, st.sampled_from(LISTS), DATASET
    ),
)


def _copied(where: int, source: str, copy: str) -> list[Step]:
    return [
        bind_name(SOURCE, where, source),
        call("open", path=SOURCE, flags=0, mode=None),
        bind_name(COPY, where, copy),
        call("open", path=COPY, flags=O_WRONLY | O_CREAT | O_TRUNC, mode=0o640),
        call("copy_file_range", file=SOURCE, to=COPY, size={"const": 30_000}),
    ]


def _locked(where: int, op: str) -> list[Step]:
    kind = {"file": LOCKED, "kind": "exclusive", "wait": True}
    span = {"offset": {"const": 5}, "size": {"const": 10}} if op == "fcntl_lock" else {}
    return [
        bind_name(LOCKED, where, "locked-", {"user": True}),
        call("open", ["ok", "ENOENT"], path=LOCKED, flags=O_RDWR | O_CREAT, mode=0o600),
        call(op, **kind, **span),
        call("append", file=LOCKED, total={"const": 99}, block={"const": 50}),
    ]


def _saved(where: int, slot: int, name: str) -> list[Step]:
    return [
        bind_name(slot, where, name, {"draw": {"uniform": [0, 3]}}),
        call("open", path=slot, flags=O_RDWR | O_CREAT, mode=None),
        call("write", file=slot, total={"uniform": [0, 9000]}, block={"const": 4096}),
        call("lseek", file=slot, offset={"const": 0}, whence=0),
        call("read", file=slot, size={"const": 5000}, until_end=True, check_size=False),
    ]


def _found(where: int, slot: int, name: str) -> list[Step]:
    return [
        bind_name(slot, where, name),
        call("mkdir", ["ok", "EEXIST"], path=slot, mode=0o755),
        call("open", path=slot, flags=O_DIRECTORY, mode=None),
        call("getdents", file=slot),
    ]


def _named(where: int, parts: list[Any]) -> list[Step]:
    """Make what is drawn visible in the tree."""
    named = bind_name(SOURCE, where, "n-", *parts)
    return [named, call("mkdir", path=SOURCE, mode=None)]


def _picked(picker: int, time: int) -> list[Step]:
    """Leave a mark on what is picked, the link itself and what it leads to."""
    return [
        {"do": "bind", "slot": SOURCE, "pick": picker},
        call("setxattr", path=SOURCE, name="user.p", size={"const": 9}),
        call("utimens", path=SOURCE, mtime_ns={"const": time * 10**9}),
    ]


def _modelled(where: int, picker: int, slot: int) -> list[Step]:
    """Make files and links as the picked entries say."""
    return [
        {"do": "bind", "slot": slot, "pick": picker},
        bind_name(COPY, where, "m-", {"name_of": slot}, {"draw": {"uniform": [0, 2]}}),
        call("open", path=COPY, flags=O_RDWR | O_CREAT, mode=None),
        call("append", file=COPY, total={"size_of": COPY}, block={"const": 5000}),
        call("mmap_read", file=COPY),
        call("fallocate", ["ok", "ENOTSUP"], file=COPY, offset=NOTHING, size=SOME, mode=16),
        bind_name(SOURCE, where, "l-", {"name_of": COPY}),
        call("symlink", path=SOURCE, target=None),
    ]


HABITS = st.one_of(
    st.builds(_copied, DATASET, st.sampled_from(KNOWN), st.sampled_from(KNOWN)),
    st.builds(_locked, DATASET, st.sampled_from(["flock", "fcntl_lock"])),
    st.builds(_saved, DATASET, st.sampled_from(FILES), st.sampled_from(NAMES)),
    st.builds(_found, DATASET, st.sampled_from(LISTS), st.sampled_from(KNOWN)),
    st.builds(_named, DATASET, st.lists(PART, min_size=1, max_size=4)),
    st.builds(_picked, PICKER, st.integers(1, 99)),
    st.builds(_modelled, DATASET, PICKER, AT),
).map(list)  # one alternative among others, not four


NAMED = st.builds(lambda s, d, p: bind_name(s, d, *p), AT, DATASET, PARTS)
HOPES = st.sampled_from([["ok"], ["UNMET"], ["ok", "UNMET"], LOOSE, ["ok", "UNMET"]])
NEVER = 15  # a signal that no step gives
LOOKS = 6  # stat, lstat, access, mkdir, rmdir, unlink


@cache
def waits(scene: Scene) -> Strategy:
    """Looking for what is there or not, and signals that were given or never will be.

    Without a limit: how often is looked must not be a matter of time.
    """
    fixed = {"every": {"const": 1}, "limit": {"const": 0}, "since": None}
    strict = st.sampled_from([["ok"], ["ENOENT"], ["EEXIST", "ENOTDIR"]])
    op = st.one_of(*path_ops(scene)[:LOOKS])
    strictly = st.builds(lambda step, expect: {**step, "expect": expect}, op, strict)
    look = st.lists(st.one_of(NAMED, strictly, strictly, opens()), min_size=1, max_size=4)
    until = st.builds(
        lambda steps, expect: [{"do": "until", "steps": steps, "expect": expect, **fixed}],
        look,
        HOPES,
    )
    return st.one_of(until, until, st.builds(_signalled, st.integers(0, 14), HOPES))


def _signalled(signal: int, expect: list[str]) -> list[Step]:
    at_once = {"limit": {"const": 0}, "expect": expect}
    return [
        {"do": "signal", "signal": signal},
        {"do": "await", "signal": signal, **at_once, "expect": ["ok"]},
        {"do": "await", "signal": NEVER, **at_once},
    ]


def _joined(some: Strategy, least: int, most: int) -> Strategy:
    lists = st.lists(some, min_size=least, max_size=most)
    return lists.map(lambda parts: [step for part in parts for step in part])


@cache
def steps(scene: Scene) -> Strategy:
    """The steps of a transaction."""
    op = st.one_of(*path_ops(scene), *data_ops(), *file_ops())
    action = st.one_of(
        st.tuples(op, op, op).map(list),
        st.tuples(BINDS, op, op).map(list),
        st.tuples(BINDS, opens(), op, op).map(list),
        st.tuples(opens(), op, op, op).map(list),
        HABITS,
    )
    body = _joined(action, 1, 4)
    weighted = st.tuples(st.integers(0, 5), body).map(list)
    nested = st.one_of(
        st.builds(_repeated, numbers(3), body),
        st.lists(weighted, min_size=1, max_size=3).map(_chosen),
        st.builds(_each, DATASET, AT, st.booleans(), body, body),
        numbers(1000).map(lambda time: [{"do": "think", "time": time}]),
        waits(scene),
    )
    looped = st.builds(_repeated, numbers(2), nested)
    first = st.tuples(*map(_bound, FILES + LISTS), USEFUL, USEFUL, USEFUL, opens()).map(list)
    rest = _joined(st.one_of(*[action] * 6, nested, looped), 5, 25)
    return st.tuples(first, rest).map(lambda both: both[0] + both[1])


def _bound(slot: int) -> Strategy:
    return st.builds(lambda d, path: bind_name(slot, d, path), DATASET, st.sampled_from(KNOWN))


def _repeated(times: Step, inner: list[Step]) -> list[Step]:
    return [{"do": "repeat", "times": times, "steps": inner}]


def _chosen(branches: list[list[Any]]) -> list[Step]:
    [_weight, steps_], *rest = branches  # weights may be 0, but not all of them
    return [{"do": "choose", "branches": [[1, steps_], *rest]}]


def _each(
    dataset: int, slot: int, reverse: object, files: list[Step], rest: list[Step]
) -> list[Step]:
    step = {"do": "each", "dataset": dataset, "slot": slot, "reverse": reverse}
    return [{**step, "f": files, "d": rest, "l": rest[:2]}]
