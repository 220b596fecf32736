"""Two targets at the same moment: each has its own users, its own record, and the same draws."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replayer._native import Engine, Sandbox
from tests.unit.engine.drafts import Drafts, Until

USERS = 2


@pytest.fixture
def folders(tmp_path: Path) -> list[Sandbox]:
    found = [Sandbox.create(str(tmp_path), name, "{}") for name in ("one", "two")]
    for folder in found:
        Path(folder.path, "files").mkdir()
    return found


@contextmanager
def working(
    drafts: Drafts, folders: list[Sandbox], users: int = 2 * USERS, *, abreast: bool = True
) -> Iterator[Engine]:
    """Users of which each makes directories whose names are drawn."""
    steps = [drafts.name(0, {"hex": 16}), drafts.call("mkdir", path=0, mode=0o755)]
    plan = drafts.plan(steps, users=USERS)
    engine = Engine(plan, [[folder] for folder in folders], abreast=abreast)
    try:
        for number in range(users):
            engine.start_user(number)
        yield engine
    finally:
        engine.close()


def made(folder: Sandbox) -> set[str]:
    return {path.name for path in Path(folder.path, "files").iterdir()}


def test_both_targets_are_at_work_at_the_same_time_with_the_same_draws(
    drafts: Drafts, folders: list[Sandbox], until: Until
) -> None:
    with working(drafts, folders) as engine:
        engine.begin_segment(0, 0, 0, beside=[1])
        until(lambda: engine.busy_users() == 0)
        engine.end_segment(0)
        assert len(made(folders[0])) == USERS
        assert made(folders[0]) == made(folders[1])
        rows = [row for row in engine.totals() if row.op == "mkdir"]
        found = {(row.target, row.phase): row.histogram.count for row in rows}
        assert found == {(0, "measured"): USERS, (1, "measured"): USERS}


def test_a_target_that_is_alone_has_the_others_wait_and_a_phase_of_its_own(
    drafts: Drafts, folders: list[Sandbox], until: Until
) -> None:
    with working(drafts, folders) as engine:
        engine.begin_segment(1, 0, 0, phase="alone")
        until(lambda: engine.busy_users() == 0)
        engine.end_segment(0)
        assert (len(made(folders[0])), len(made(folders[1]))) == (0, USERS)
        assert {(row.target, row.phase) for row in engine.totals()} == {(1, "alone")}
        assert engine.running_users() == 2 * USERS


def test_a_user_that_stops_leaves_those_of_the_other_target(
    drafts: Drafts, folders: list[Sandbox], until: Until
) -> None:
    with working(drafts, folders) as engine:
        engine.stop_user(3)
        until(lambda: engine.drain_finished() == [3])
        engine.begin_segment(0, 0, 0, beside=[1])
        until(lambda: engine.busy_users() == 0)
        engine.end_segment(0)
        assert (len(made(folders[0])), len(made(folders[1]))) == (USERS, USERS - 1)


def test_users_that_are_dealt_to_no_target_work_on_one_at_a_time(
    drafts: Drafts, folders: list[Sandbox]
) -> None:
    with working(drafts, folders, users=0, abreast=False) as engine:
        with pytest.raises(ValueError, match="a segment must have one target, got 2"):
            engine.begin_segment(0, 0, 0, beside=[1])
        with pytest.raises(ValueError, match='unknown phase "apart"'):
            engine.begin_segment(0, 0, 0, phase="apart")  # type: ignore[arg-type]
