"""Traces with right checksums whose tables mean harm: refused, or replayed within their bounds.

A small number by default; ``REPLAYER_FUZZ_INPUTS`` asks for more and ``REPLAYER_FUZZ_SEED`` for
others. 0 asks for all.
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replayer import _native as engine
from replayer.cli.show import render_trace
from replayer.errors import ReplayerError
from replayer.plan.document import Plan
from replayer.plan.replaying import ReplayOptions, choose_requests, compile_replay
from replayer.plan.summary import describe_plan
from replayer.run.replays import describe_replay, load_plan
from replayer.trace.facts import load_facts
from replayer.trace.reading import count_trace, load_trace
from tests.forgery import COLUMNS, INT32, TEXT, Column, SmallTrace, small_trace
from tests.property.observation import made_readable, wait_until_idle

INPUTS = int(os.environ.get("REPLAYER_FUZZ_INPUTS", "60"))
SEED = int(os.environ.get("REPLAYER_FUZZ_SEED", "1"))
ROOM_BYTES = 64 << 20
"""What there is for a run: more is refused before anything is laid out."""
SLACK_BYTES = 1 << 20
"""Directories and attributes, as file systems keep them."""
NUMBERS = (0, -1, 1, 2**31 - 1, -(2**31))
LONG_NUMBERS = (*NUMBERS, 2**31, 2**40, 2**63 - 1, -(2**63))
TEXTS = ("", "x", ".", "..", "../../outside/kept", "/etc/passwd", "r/../../outside", "a" * 5000)


TIMES = {"start_ticks", "duration_ticks", "gap_ns", "after_ns", "start_ns", "end_ns"}
"""What others have is no more than another number there."""


class Cell(NamedTuple):
    """One cell, and what is written there."""

    table: str
    row: int
    column: str
    value: Any

    def __str__(self) -> str:
        value = repr(self.value)
        return f"{self.table}[{self.row}].{self.column} = {value[:40]}"


def values(column: Column, others: set[Any]) -> Iterator[Any]:
    """Yield what is put into a cell of a column: extremes, nothing, and what others have."""
    extremes = {TEXT: TEXTS, INT32: NUMBERS}.get(column.kind, LONG_NUMBERS)
    yield from dict.fromkeys([*extremes, None, *sorted(others)])


def all_cells() -> Iterator[Cell]:
    tables = small_trace().tables
    for table, columns in COLUMNS.items():
        rows = tables[table]
        for column in columns:
            others = {row[column.name] for row in rows if row.get(column.name) is not None}
            for number, row in enumerate(rows):
                for value in values(column, others if column.name not in TIMES else set()):
                    if value != row.get(column.name):
                        yield Cell(table, number, column.name, value)


def some_cells() -> list[Cell]:
    cells = list(all_cells())
    return random.Random(SEED).sample(cells, INPUTS) if INPUTS else cells  # noqa: S311 - no secret


def forged(cell: Cell) -> SmallTrace:
    """Return the small trace with one cell changed and its totals counted anew."""
    trace = small_trace()
    trace.tables[cell.table][cell.row][cell.column] = cell.value
    trace.count()
    return trace


def replay(folder: Path, mount: Path, *, requests: bool) -> str:
    """Do what ``show`` and ``replay`` do; returns how that ended."""
    try:
        facts = load_facts(str(folder), Path())
        list(render_trace(load_trace(folder), count_trace(folder, None).pauses, "forged"))
        chosen = choose_requests(facts, ()) if requests else None
        plan = compile_replay(facts, ReplayOptions(pace="asap", requests=chosen))
        needs = describe_plan(plan)
        describe_replay(plan)
        made = load_plan(plan)
    except ReplayerError as error:
        return f"refused: {error}"
    if needs.space_bytes > ROOM_BYTES:
        return "no room"
    return play(plan, made, mount, needs.space_bytes + SLACK_BYTES)


def play(plan: Plan, made: engine.Plan, mount: Path, most_bytes: int) -> str:
    sandbox = engine.Sandbox.create(str(mount), "run", "{}")
    place = Path(sandbox.path)
    try:
        sandbox.lay_out(made, 2).result()
        machine = engine.Engine(made, [[sandbox]])
        try:
            machine.begin_segment(0, 0, 0)
            for user in range(plan.users):
                machine.start_user(user)
            wait_until_idle(machine)
            assert machine.end_segment(10**9) == []
        finally:
            machine.close()
        made_readable(place)
        used = sum(path.lstat().st_blocks * 512 for path in [place, *place.rglob("*")])
        assert used <= most_bytes, f"{used:,} bytes are used, {most_bytes:,} were checked"
    except OSError as error:  # the mount refuses what is laid out
        return f"refused: {error}"
    finally:
        made_readable(place)
        shutil.rmtree(place)
    return "played"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mount, and beside it what no replay may touch."""
    scene = tmp_path_factory.mktemp("scene")
    (scene / "mount").mkdir()
    (scene / "outside").mkdir()
    (scene / "outside" / "kept").write_text("kept")
    return scene


def outside(scene: Path) -> list[tuple[str, int, int, bytes]]:
    found = [scene, scene / "mount", *(scene / "outside").rglob("*"), scene / "outside"]
    return [
        (p.name, p.lstat().st_mode, p.lstat().st_uid, p.read_bytes() if p.is_file() else b"")
        for p in found
    ]


def test_the_small_trace_itself_is_replayed(scene: Path, tmp_path: Path) -> None:
    folder = small_trace().write(tmp_path / "small")
    for requests in (False, True):
        assert replay(folder, scene / "mount", requests=requests) == "played"


@pytest.mark.timeout(0 if not INPUTS else 900)
def test_a_cell_of_any_value_is_refused_or_replayed_within_what_was_checked(
    scene: Path, tmp_path: Path
) -> None:
    before = outside(scene)
    for number, cell in enumerate(some_cells()):
        folder = forged(cell).write(tmp_path / f"{number}")
        try:
            for requests in (False, True):
                replay(folder, scene / "mount", requests=requests)
        except Exception as error:
            error.add_note(str(cell))
            raise
        assert outside(scene) == before, cell
        assert {path.name for path in scene.iterdir()} == {"mount", "outside"}, cell
        shutil.rmtree(folder)
