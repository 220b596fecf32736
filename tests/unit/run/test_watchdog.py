"""How long calls that hang are waited for, and what of them is told."""

import threading
from pathlib import Path

import pytest

from replayer.run import target_dir as target_dirs
from replayer.run.interruption import Interruption
from replayer.run.progress import ProgressDisplay
from replayer.run.target_dir import LayoutContext, TargetDir
from replayer.run.targets import MountError, NamedTarget
from replayer.run.watchdog import Watchdog
from tests.unit.engine.drafts import Drafts


class Hanging:
    """Work of which one call has been under way for so long."""

    def __init__(self, op: str, age_s: float) -> None:
        self._op = op
        self._age_s = age_s

    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        age_ns = int(self._age_s * 1e9)
        return [(self._op, "/mnt/run", age_ns)] if age_ns > after_ns else []


@pytest.mark.parametrize(
    ("op", "age_s", "is_over"),
    [("create", 119, False), ("create", 121, True), ("syncfs", 121, False), ("syncfs", 1201, True)],
)
def test_writing_out_all_that_is_dirty_may_take_longer_than_other_calls(
    op: str, age_s: float, *, is_over: bool
) -> None:
    watchdog = Watchdog(120.0, 5.0)
    (told,) = watchdog.look(Hanging(op, age_s))
    assert str(told) == f"hangs: {op} /mnt/run, for {age_s} s"
    assert watchdog.is_over is is_over


def test_a_sync_of_the_machine_that_hangs_is_told_and_one_signal_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine that hangs cannot be had for a test; its sync is the only thing that is made up.
    answered = threading.Event()
    monkeypatch.setattr(target_dirs, "evict_machine_caches", answered.wait)
    monkeypatch.setattr("replayer.run.watchdog.STUCK_NS", 0)
    monkeypatch.setattr("replayer.run.watchdog.give_up_on", lambda _: None)
    interruption = Interruption()
    told: list[str] = []

    class Spoken(ProgressDisplay):
        def alarm(self, hang: object) -> None:
            told.append(str(hang))
            interruption.ask()

    works = LayoutContext(Spoken(), interruption, 0.0, Drafts().plan([]))
    target_dir = TargetDir(NamedTarget("here", (tmp_path,)), works)
    try:
        with pytest.raises(MountError, match="sync all mounts of this machine"):
            target_dir.evict_machine()
    finally:
        answered.set()
    assert told
    assert target_dir.is_hanging


def test_who_may_drop_the_caches_is_asked_without_dropping_them() -> None:
    assert isinstance(target_dirs.may_evict_machine(), bool)
