"""The run's folder on a target, from its making to its removal."""

import io
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from replayer.run.interruption import InterruptedRunError, Interruption
from replayer.run.progress import LineProgress, ProgressDisplay
from replayer.run.target_dir import LayoutContext, TargetDir
from replayer.run.targets import NamedTarget
from tests.unit.engine.drafts import Drafts

if TYPE_CHECKING:
    from replayer._native import Sandbox


@pytest.mark.parametrize("stop_timeout_s", [0.0, 5.0])
def test_a_folder_is_looked_at_and_removed_however_short_the_stop_timeout(
    tmp_path: Path, stop_timeout_s: float
) -> None:
    works = LayoutContext(ProgressDisplay(), Interruption(), stop_timeout_s, Drafts().plan([]))
    target_dir = TargetDir(NamedTarget("mount", (tmp_path,)), works)
    target_dir.create("20261121T000000-abcd", "{}")
    target_dir.lay_out()
    assert (target_dir.find_loss(), target_dir.is_hanging) == (None, False)
    target_dir.remove()
    assert list(tmp_path.iterdir()) == []


def test_work_that_is_cancelled_may_take_a_while_to_end_without_a_stop_timeout() -> None:
    works = LayoutContext(ProgressDisplay(), Interruption(), 0.0, Drafts().plan([]))
    assert 1 < works.patience_s < 5


def test_what_users_changed_is_laid_out_anew_at_the_end_of_a_run_that_was_to_end(
    tmp_path: Path,
) -> None:
    interruption = Interruption()
    works = LayoutContext(ProgressDisplay(), interruption, 1.0, Drafts().plan([]))
    target_dir = TargetDir(NamedTarget("mount", (tmp_path,)), works)
    target_dir.create("20261121T000000-abcd", "{}")
    target_dir.lay_out()
    folder = Path(target_dir.sandboxes[0].path)
    (folder / "files/a").unlink()
    (folder / "files/more").touch()
    interruption.ask()
    target_dir.restore()
    assert sorted(path.name for path in (folder / "files").iterdir()) == ["a", "b"]


class SlowRemoval:
    """A folder whose removal takes some looks, and the task of it; signals come at some looks."""

    path = "/mnt/replayer-run"
    total_entries = done_bytes = 0

    def __init__(self, interruption: Interruption, signals_at: Sequence[int]) -> None:
        self._interruption = interruption
        self._signals_at = signals_at
        self.done_entries = 0
        self.cancelled = False

    def remove(self, _threads: int) -> "SlowRemoval":
        return self

    def wipe(self, _threads: int) -> "SlowRemoval":
        return self

    @property
    def finished(self) -> bool:
        self.done_entries += 1
        if self.done_entries in self._signals_at:
            signal.raise_signal(signal.SIGINT)
        return self.cancelled or self.done_entries > 5

    def cancel(self) -> None:
        self.cancelled = True

    def stuck(self, _after_ns: int) -> list[tuple[str, str, int]]:
        return []

    def result(self) -> None:
        if self.cancelled:
            message = "cancelled"
            raise InterruptedError(message)


@pytest.mark.usefixtures("each_press_counts")
@pytest.mark.parametrize(
    ("before", "signals_at", "abandoned"), [(0, [2], False), (0, [2, 4], True), (2, [2], False)]
)
def test_one_signal_lets_a_removal_go_on_and_a_second_one_abandons_it(
    before: int, signals_at: list[int], *, abandoned: bool
) -> None:
    interruption, said = Interruption(), io.StringIO()
    interruption.watch()
    try:
        for _ in range(before):
            signal.raise_signal(signal.SIGINT)
        target_dir = TargetDir(
            NamedTarget("mount", (Path("/mnt"),)),
            LayoutContext(LineProgress(said), interruption, 1.0, Drafts().plan([])),
        )
        folder = SlowRemoval(interruption, signals_at)
        target_dir.sandboxes = [cast("Sandbox", folder)]
        if abandoned:
            with pytest.raises(InterruptedRunError, match="interrupted"):
                target_dir.remove()
        else:
            target_dir.remove()
    finally:
        interruption.unwatch()
    assert (folder.cancelled, interruption.has_abandoned) == (abandoned, abandoned)
    assert "removing the folders of the run; another Ctrl-C leaves them behind" in said.getvalue()
    assert ("done" in said.getvalue()) != abandoned


@pytest.mark.usefixtures("each_press_counts")
def test_a_signal_that_comes_while_all_is_laid_out_anew_ends_that() -> None:
    interruption = Interruption()
    interruption.watch()
    try:
        signal.raise_signal(signal.SIGINT)
        target_dir = TargetDir(
            NamedTarget("mount", (Path("/mnt"),)),
            LayoutContext(ProgressDisplay(), interruption, 1.0, Drafts().plan([])),
        )
        folder = SlowRemoval(interruption, [2])
        target_dir.sandboxes, target_dir.fresh = [cast("Sandbox", folder)], True
        with pytest.raises(InterruptedRunError, match="interrupted"):
            target_dir.restore()
    finally:
        interruption.unwatch()
    assert (folder.cancelled, target_dir.fresh, target_dir.is_hanging) == (True, False, False)


def test_once_all_is_done_ctrl_c_does_not_change_how_a_run_ends() -> None:
    interruption = Interruption()
    interruption.watch()
    try:
        interruption.settle()
        signal.raise_signal(signal.SIGINT)  # would raise KeyboardInterrupt
        assert interruption.presses == 0
    finally:
        interruption.unwatch()
