"""The run's folder on a target, from its making to its removal."""

from pathlib import Path

import pytest

from replayer.load.ground import Ground, Works
from replayer.load.interruption import Interruption
from replayer.load.progress import SilentProgress
from replayer.load.targets import Target
from tests.unit.engine.drafts import Drafts


@pytest.mark.parametrize("stop_timeout_s", [0.0, 5.0])
def test_a_folder_is_looked_at_and_removed_however_short_the_stop_timeout(
    tmp_path: Path, stop_timeout_s: float
) -> None:
    works = Works(Drafts().plan([]), SilentProgress(), Interruption(), stop_timeout_s)
    ground = Ground(Target("mount", (tmp_path,)), works)
    ground.create("20261121T000000-abcd", "{}")
    ground.lay_out()
    assert (ground.find_loss(), ground.is_hanging) == (None, False)
    ground.remove()
    assert list(tmp_path.iterdir()) == []


def test_work_that_is_cancelled_may_take_a_while_to_end_without_a_stop_timeout() -> None:
    works = Works(Drafts().plan([]), SilentProgress(), Interruption(), 0.0)
    assert 1 < works.patience_s < 5
