"""Processes of control groups."""

from pathlib import Path

import pytest

from replayer.capture.processes import group_of_unit, processes_of_group
from replayer.errors import ReplayerError


def test_processes_of_groups_below_count_too(tmp_path: Path) -> None:
    (tmp_path / "workers").mkdir()
    (tmp_path / "cgroup.procs").write_text("4711\n")
    (tmp_path / "workers/cgroup.procs").write_text("4713\n4712\n4711\n")
    assert processes_of_group(tmp_path) == [4711, 4712, 4713]


def test_what_is_no_group_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayerError, match="is no control group"):
        processes_of_group(tmp_path)
    (tmp_path / "cgroup.procs").touch()
    with pytest.raises(ReplayerError, match="has no process"):
        processes_of_group(tmp_path)


def test_a_unit_is_asked_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\n[ $6 = shop.service ] && echo /system.slice/shop.service\n:\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = group_of_unit("shop.service")
    assert found == Path("/sys/fs/cgroup/system.slice/shop.service")
    with pytest.raises(ReplayerError, match="--unit other: does not run"):
        group_of_unit("other")
    systemctl.unlink()
    with pytest.raises(ReplayerError, match="systemd is not there"):
        group_of_unit("shop.service")
