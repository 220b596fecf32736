"""The reference engine against values worked out by hand: FORMAT.md, man pages, known vectors."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import oracle
from tests.property.ops import call
from tests.property.steps import bind_name

GOLDEN = Path(__file__).parent.parent / "golden"
O_CREAT, O_RDWR, O_EXCL, O_APPEND, O_DIRECTORY = 0o100, 0o2, 0o200, 0o2000, 0o200000


def plan(steps: list[Any], entries: list[list[Any]] | None = None, **other: Any) -> dict[str, Any]:  # noqa: ANN401
    tree = {
        "name": "tree",
        "directory": "tree",
        "laid_out": True,
        "scope": "shared",
        "content": "random",
        "entries": entries or [],
    }
    return {
        "format": 1,
        "name": "by-hand",
        "seed": 1,
        "users": 1,
        "written": "random",
        "pool_bytes": 8192,
        "tables": [],
        "datasets": [tree],
        "pickers": [],
        "transactions": [{"name": "only", "steps": steps}],
        "mix": [1],
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": None, "transactions": 1},
        "warm_up_ns": 0,
        **other,
    }


def run(document: dict[str, Any], folder: Path) -> list[tuple[str, str, int]]:
    """Run a plan and list its ops: name, outcome, bytes."""
    oracle.lay_out(document, folder)
    done = oracle.run_plan(document, folder, turns=[0])
    return [(sample.op, sample.outcome, sample.bytes) for sample in done.samples]


def opened(name: str, flags: int, slot: int = 0) -> list[Any]:
    return [bind_name(slot, 0, name), call("open", path=slot, flags=flags, mode=0o640)]


def reading(size: int, *, until_end: bool = False, check_size: bool = False) -> dict[str, Any]:
    size_draw = {"const": size}
    return call("read", file=0, size=size_draw, until_end=until_end, check_size=check_size)


def writing(total: int, block: int) -> dict[str, Any]:
    return call("write", file=0, total={"const": total}, block={"const": block})


def test_streams_are_splitmix64() -> None:
    # The vector that accompanies Vigna's splitmix64.c, state 0.
    stream = oracle.Stream(0)
    drawn = [stream.draw() for _ in range(3)]
    assert drawn == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_streams_and_shuffles_yield_the_golden_values() -> None:
    golden = json.loads((GOLDEN / "streams.json").read_text())
    for case in golden["streams"]:
        stream = oracle.ops_stream(case["seed"], case["round"], case["user"])
        assert [stream.draw() for _ in case["ops"]] == case["ops"]
    for case in golden["stages"]:
        ops = oracle.ops_stream(case["seed"], case["round"], case["user"])
        stream = oracle.stage_stream(ops, case["pipeline"], case["stage"])
        assert [stream.draw() for _ in case["ops"]] == case["ops"]
    shuffle = golden["shuffle"]
    assert oracle.shuffled(len(shuffle["order"]), shuffle["seed"]) == shuffle["order"]


def vectorised_pool(seed: int, pool_bytes: int) -> bytes:
    """The formula of the pool, in numpy's arithmetic of 64 bits."""
    index = np.arange(1, pool_bytes // 8 + 1, dtype=np.uint64)
    start = np.uint64(seed ^ 0x5EED5EED5EED5EED)
    z = index * np.uint64(0x9E3779B97F4A7C15) + start
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z.astype("<u8").tobytes()


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_the_pool_is_what_the_formula_says(seed: int) -> None:
    assert oracle.make_pool(seed, 80_000) == vectorised_pool(seed, 80_000)


def test_compressible_data_begin_every_block_with_zeros() -> None:
    data = oracle.thinned(b"\xff" * 10_000, 30)
    zeros = 4096 * 30 // 100
    assert data[:zeros] == bytes(zeros)
    assert data[zeros:4096] == b"\xff" * (4096 - zeros)
    assert data[4096 : 4096 + zeros] == bytes(zeros)
    assert data[8192:] == bytes(zeros) + b"\xff" * (10_000 - 8192 - zeros)


def test_written_bytes_are_slices_of_the_pool(tmp_path: Path) -> None:
    steps = [*opened("f", O_CREAT | O_RDWR), writing(5000, 3000)]
    assert run(plan(steps), tmp_path)[1:3] == [("write", "ok", 3000), ("write", "ok", 2000)]
    pool, content = vectorised_pool(1, 8192), (tmp_path / "tree/f").read_bytes()
    first, second = pool.find(content[:3000]), pool.find(content[3000:])
    assert first >= 0
    assert second >= 0
    assert first % 8 == second % 8 == 0
    # mix64(mix64(u + G) + w), scaled to (8192 - size)/8 + 1 places of 8 bytes
    base = oracle.mix64(0x9E3779B97F4A7C15)
    assert first == 8 * (oracle.mix64(base) * ((8192 - 3000) // 8 + 1) >> 64)
    assert second == 8 * (oracle.mix64(base + 1) * ((8192 - 2000) // 8 + 1) >> 64)


def test_a_first_piece_may_have_another_length_than_the_others(tmp_path: Path) -> None:
    amount = {"total": {"const": 10}, "first": {"const": 3}, "block": {"const": 4}}
    small = {"total": {"const": 2}, "first": {"const": 3}, "block": {"const": 1}}
    steps = [
        *opened("f", O_CREAT | O_RDWR),
        call("write", file=0, **amount),
        call("write", file=0, **small),
    ]
    assert run(plan(steps), tmp_path)[1:5] == [("write", "ok", n) for n in (3, 4, 3, 2)]


def test_layout_gives_types_modes_links_and_unlisted_directories(tmp_path: Path) -> None:
    entries = [
        ["d", "d", 0, 0o2711, ""],
        ["d/f", "f", 9000, 0o4640, ""],
        ["d/l", "l", 0, 0o777, "./f"],
        ["un/listed/f", "f", 0, 0o600, ""],
    ]
    umask = os.umask(0o077)
    try:
        oracle.lay_out(plan([], entries), tmp_path)
    finally:
        os.umask(umask)
    seen = {path: state[:4] for path, state in oracle.tree(tmp_path).items()}
    assert seen == {
        "tree": ("d", 0, 0o755, ""),
        "tree/d": ("d", 0, 0o2711, ""),
        "tree/d/f": ("f", 9000, 0o4640, ""),
        "tree/d/l": ("l", 0, 0o777, "./f"),
        "tree/un": ("d", 0, 0o755, ""),
        "tree/un/listed": ("d", 0, 0o755, ""),
        "tree/un/listed/f": ("f", 0, 0o600, ""),
    }
    assert (tmp_path / "tree/d/f").read_bytes()[:4096] in vectorised_pool(1, 8192)


def test_reading_until_the_end_takes_one_more_read(tmp_path: Path) -> None:
    steps = [*opened("f", 0), reading(600, until_end=True), reading(10, check_size=True)]
    assert run(plan(steps, [["f", "f", 1000, 0o644, ""]]), tmp_path) == [
        ("open", "ok", 0),
        ("read", "ok", 600),
        ("read", "ok", 400),
        ("read", "END", 0),
        ("read", "END", 0),  # the name was composed: its size is 0
        ("close", "ok", 0),
    ]


def test_a_read_that_misses_the_entry_s_size_is_short(tmp_path: Path) -> None:
    picker = {"dataset": 0, "types": "f", "kind": "sequential"}
    bound = [{"do": "bind", "slot": 0, "pick": 0}, call("open", path=0, flags=0, mode=None)]
    steps = [*bound, reading(999, check_size=True), reading(999, until_end=True, check_size=True)]
    document = plan(steps, [["f", "f", 1000, 0o644, ""]], pickers=[picker])
    assert run(document, tmp_path)[1:-1] == [
        ("read", "SHORT", 999),
        ("read", "ok", 1),
        ("read", "SHORT", 0),
    ]


def test_calls_that_cannot_be_made_are_einval_and_ebadf(tmp_path: Path) -> None:
    steps = [
        call("stat", path=0),
        bind_name(0, 0, "a/../b"),
        call("stat", path=0),
        reading(1),
        writing(0, 1),
        call("close", file=0),
        bind_name(1, 0, "x"),
        call("symlink", path=1, target="../../x"),
        call("symlink", path=1, target="/etc"),
        call("symlink", path=1, target="../x"),
    ]
    assert [op[:2] for op in run(plan(steps), tmp_path)] == [
        ("stat", "EINVAL"),
        ("stat", "EINVAL"),
        ("read", "EBADF"),
        ("write", "EBADF"),
        ("close", "EBADF"),
        ("symlink", "EINVAL"),
        ("symlink", "EINVAL"),
        ("symlink", "ok"),
    ]


def test_an_unexpected_outcome_skips_the_rest_and_closes_in_slot_order(tmp_path: Path) -> None:
    steps = [
        *opened("a", O_CREAT | O_RDWR, slot=3),
        *opened("b", O_CREAT | O_RDWR, slot=1),
        call("open", ["ok"], path=1, flags=O_CREAT | O_EXCL, mode=0o600),
        call("stat", path=1),
    ]
    document = plan(steps)
    oracle.lay_out(document, tmp_path)
    done = oracle.run_plan(document, tmp_path, turns=[0])
    assert [(s.op, s.path, s.outcome) for s in done.samples] == [
        ("open", "tree/a", "ok"),
        ("open", "tree/b", "ok"),
        ("close", "tree/b", "ok"),  # opening again closes first
        ("open", "tree/b", "EEXIST"),
        ("close", "tree/a", "ok"),
    ]
    assert done.failed == {"only": 1}
    assert done.counts["only", "close", "ok"] == 2


def test_draws_of_a_step_come_before_anything_else(tmp_path: Path) -> None:
    closed = call("pwrite", file=9, size={"uniform": [0, 9]}, offset={"uniform": [0, 9]})
    named = bind_name(0, 0, {"hex": 5}, "-", {"draw": {"uniform": [3, 3]}}, "-", {"next": True})
    steps = [closed, named, call("mkdir", path=0, mode=0o700)]
    run(plan(steps), tmp_path)
    stream = oracle.ops_stream(1, 0, 0)
    hexadecimal = [f"{stream.draw():016x}" for _ in range(4)][3]  # mix, size, offset, hex
    assert list(oracle.tree(tmp_path)) == ["tree", f"tree/{hexadecimal[:5]}-3-1"]


def test_pickers_choose_as_the_format_says(tmp_path: Path) -> None:
    entries = [[f"f{i}", "f", i, 0o644, ""] for i in range(7)]
    kinds: list[dict[str, Any]] = [
        {"kind": "segments", "segments": [[0, 0, 3], [5, 3, 4]], "shuffle": 9},
        {"kind": "sequential"},
        {"kind": "own"},
    ]
    pickers = [{"dataset": 0, "types": "f", **kind} for kind in kinds]
    bound = [
        step
        for index in (0, 1, 1, 2)
        for step in ({"do": "bind", "slot": index, "pick": index}, call("stat", path=index))
    ]
    document = plan(bound, entries, pickers=pickers, users=3)
    oracle.lay_out(document, tmp_path)
    done = oracle.run_plan(document, tmp_path, turns=[2], round_number=5)
    stream = oracle.ops_stream(1, 5, 2)
    stream.draw()  # the mix
    stream.draw()  # the segment: only the second one has a weight
    ranked = oracle.shuffled(7, 9)[3 + (stream.draw() * 4 >> 64)]
    own = [2, 5][stream.draw() * 2 >> 64]
    names = [f"tree/f{i}" for i in (ranked, 2 * 7 // 3, 2 * 7 // 3 + 1, own)]
    assert [sample.path for sample in done.samples] == names


def test_locks_of_one_user_s_two_descriptors_conflict(tmp_path: Path) -> None:
    lock = {"kind": "exclusive", "wait": False}
    whole = {"offset": {"const": 0}, "size": {"const": 0}}
    steps = [
        *opened("f", O_CREAT | O_RDWR, slot=0),
        *opened("f", O_RDWR, slot=1),
        call("fcntl_lock", file=0, **lock, **whole),
        call("fcntl_lock", file=1, **lock, **whole),
        call("flock", file=0, **lock),
        call("flock", file=1, **lock),
    ]
    assert [op[1] for op in run(plan(steps), tmp_path)[2:6]] == ["ok", "EAGAIN", "ok", "EAGAIN"]


def test_modes_are_exact_and_directories_are_listed_to_the_end(tmp_path: Path) -> None:
    steps = [
        bind_name(0, 0, "d"),
        call("mkdir", path=0, mode=0o777),
        call("open", path=0, flags=O_DIRECTORY, mode=0o777),  # openat2 would refuse this mode
        call("getdents", file=0),
        call("mmap_read", file=0),
    ]
    umask = os.umask(0o077)
    try:
        ops = run(plan(steps), tmp_path)
    finally:
        assert os.umask(umask) == 0o077
    assert [op[:2] for op in ops[1:4]] == [("open", "ok"), ("getdents", "ok"), ("getdents", "END")]
    assert ops[4] == ("mmap_read", "ENODEV", 0)
    assert oracle.tree(tmp_path)["tree/d"].mode == 0o777


def test_appending_goes_to_the_end_whatever_the_offset(tmp_path: Path) -> None:
    amount = {"total": {"const": 10}, "block": {"const": 4}}
    steps = [
        *opened("f", O_CREAT | O_RDWR | O_APPEND),
        call("append", file=0, **amount),
        call("lseek", file=0, offset={"const": 1}, whence=0),
        call("append", file=0, **amount),
    ]
    assert run(plan(steps), tmp_path)[1:4] == [("append", "ok", n) for n in (4, 4, 2)]
    assert (tmp_path / "tree/f").stat().st_size == 20


def test_roles_and_interleavings_are_followed(tmp_path: Path) -> None:
    marks = [
        [bind_name(0, 0, name, {"user": True}), call("mkdir", path=0, mode=0o700)] for name in "xy"
    ]
    document = plan([], users=3, mix=[0, 1], roles=[[1, [1, 0]]])
    document["transactions"] = [{"name": f"t{i}", "steps": steps} for i, steps in enumerate(marks)]
    oracle.lay_out(document, tmp_path)
    done = oracle.run_plan(document, tmp_path, turns=[2, 0, 1, 0])
    assert [s.path for s in done.samples] == ["tree/y2", "tree/x0", "tree/y1", "tree/x0"]
    assert done.samples[3].outcome == "EEXIST"
    assert done.finished == {"t0": 2, "t1": 2}
