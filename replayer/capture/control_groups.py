"""Processes of control groups (cgroups(7)), and the groups of systemd's units."""

import shutil
import subprocess
from pathlib import Path

from replayer.errors import ReplayerError

__all__ = ["group_of_unit", "processes_of_group"]

MOUNT = Path("/sys/fs/cgroup")
LIST = "cgroup.procs"
ASKING_SECONDS = 30


def processes_of_group(group: Path) -> list[int]:
    """Return the processes of a control group and of those below it.

    Raises:
        ReplayerError: It is no control group, or has no process.
    """
    if not (group / LIST).is_file():
        message = f"{group}: is no control group: it has no {LIST}"
        raise ReplayerError(message, hint=f"they are below {MOUNT}")
    lists = (path.read_text().split() for path in sorted(group.rglob(LIST)))
    found = sorted({int(pid) for pids in lists for pid in pids})
    if not found:
        raise ReplayerError(f"{group}: has no process", hint="start the service first")
    return found


def group_of_unit(unit: str) -> Path:
    """Return the control group of a systemd unit.

    Raises:
        ReplayerError: systemd is not there, or does not run this unit.
    """
    systemctl = shutil.which("systemctl")
    if systemctl is None:
        raise ReplayerError(f"--unit {unit}: systemd is not there", hint="use --cgroup or -p")
    words = [systemctl, "show", "--property", "ControlGroup", "--value", "--", unit]
    try:
        done = subprocess.run(  # noqa: S603 - no shell reads the words
            words, capture_output=True, text=True, check=False, timeout=ASKING_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReplayerError(f"--unit {unit}: {error}", hint="use --cgroup or -p") from error
    name = done.stdout.strip()
    if not name:
        raise ReplayerError(f"--unit {unit}: does not run", hint="list units with: systemctl")
    every = (MOUNT / name.lstrip("/"), MOUNT / "systemd" / name.lstrip("/"))
    return next((group for group in every if group.is_dir()), every[0])
