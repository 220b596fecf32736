"""Processes as /proc and control groups show them: who descends from whom, what each holds open.

Reading /proc races with the processes: what has gone in between is left out. Nothing is changed.
"""

import os
import shutil
import stat
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.measure.facts import Frozen

__all__ = [
    "PROC",
    "Descriptor",
    "GoneFile",
    "ProcessState",
    "ancestors_of",
    "computed_below",
    "families_of",
    "family_of",
    "group_of_unit",
    "hangs",
    "has_ended",
    "is_running",
    "namespace_of",
    "processes_of_group",
    "read_at",
    "read_descriptors",
    "read_own_state",
    "read_state",
    "share_table",
    "tracees_of",
    "tracer_of",
]

PROC = Path("/proc")
_GONE = " (deleted)"
"""What the kernel writes behind the name that an open file had (proc_pid_fd(5))."""
_CUTIME = 16 - 3  # proc_pid_stat(5) counts from 1, and the name is its second field


class GoneFile(Frozen):
    """A file that is open and was removed, or never had a name."""

    size: int
    inode: int


class Descriptor(Frozen):
    """One open descriptor, as proc_pid_fd(5) and proc_pid_fdinfo(5) show it."""

    number: int
    link: str
    """A path, or what is open instead of one: ``pipe:[4711]``."""
    position: int
    flags: str
    """Octal, as open(2) takes them."""
    gone: GoneFile | None = None
    """Its regular file, if that had no name any more."""


class ProcessState(Frozen):
    """A process or thread before it was recorded."""

    pid: int
    """Its thread id; that of the first thread is the process's."""
    process: int
    command: tuple[str, ...]
    cwd: str
    root: str
    umask: str
    descriptors: tuple[Descriptor, ...]
    mountinfo: str
    """Its mount table; empty where it is the same as the first process's."""
    namespace: str = ""
    """Whose mounts these are, as the kernel names it; empty where that is not known."""


def family_of(pid: int) -> list[int]:
    """Return a process and all its descendants, parents before children."""
    children = defaultdict(list)
    for process in _all():
        if (parent := _status(process).get("PPid")) is not None:
            children[int(parent)].append(process)
    family = [pid]
    for member in family:
        family.extend(children[member])
    return family


def families_of(pids: Sequence[int]) -> list[int]:
    """Return processes and their descendants, each once, parents before children."""
    return list(dict.fromkeys(member for pid in pids for member in family_of(pid)))


def ancestors_of(pid: int) -> list[int]:
    """Return a process, its parent, and so on up to the first one."""
    line = [pid]
    while (parent := int(_status(line[-1]).get("PPid", "0"))) > 0 and parent not in line:
        line.append(parent)
    return line


def tracees_of(tracer: int) -> list[int]:
    """Return the processes that a tracer traces."""
    wanted = str(tracer)
    return [process for process in _all() if _status(process).get("TracerPid") == wanted]


def is_running(pid: int) -> bool:
    """Tell whether a process exists and is not merely waiting to be reaped."""
    return _state(pid) not in ("Z", "X")


def hangs(pids: Iterable[int]) -> list[int]:
    """Return the processes of which a thread is now in a call of the kernel that no signal ends.

    One that merely waits for its disk may be among them.
    """
    return [pid for pid in pids if "D" in map(_state, _threads(pid))]


def _state(task: int) -> str:
    """Return the letter for what a process or thread does (proc_pid_status(5)); X without it."""
    return _status(task).get("State", "X")[:1]


def tracer_of(pid: int) -> int:
    """Return who traces a process; 0 if nobody does."""
    return int(_status(pid).get("TracerPid", "0"))


def has_ended(pid: int) -> bool:
    """Look at a child without reaping it: its times can still be read afterwards."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def computed_below(pid: int) -> int | None:
    """Return the CPU time in ns that a process's ended children used outside of the kernel.

    The kernel tells it in clock ticks, while the process runs and until somebody waits for it.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    behind_name = stat.rpartition(")")[2].split()
    return int(behind_name[_CUTIME]) * 10**9 // os.sysconf("SC_CLK_TCK")


def read_state(pids: list[int]) -> tuple[ProcessState, ...]:
    """Return the state of processes and all their threads."""
    found = (_read_thread(process, thread) for process in pids for thread in _threads(process))
    return share_table(state for state in found if state is not None)


def share_table(found: Iterable[ProcessState]) -> tuple[ProcessState, ...]:
    """Return processes; a table of mounts that is the first one's stands there alone."""
    states = [*found]
    for place, state in enumerate(states[1:], 1):
        if state.mountinfo == states[0].mountinfo:
            states[place] = state.model_copy(update={"mountinfo": ""})
    return tuple(states)


def namespace_of(pid: int) -> str:
    """Return the name of a process's mount namespace; empty where it cannot be read."""
    try:
        return os.readlink(PROC / str(pid) / "ns/mnt")  # noqa: PTH115 - no path
    except OSError:
        return ""


def read_own_state() -> ProcessState | None:
    """Return what a process that we start will begin with."""
    state = _read_thread(os.getpid(), os.getpid())
    if state is None:
        return None
    passed = [one for one in state.descriptors if not int(one.flags, 8) & os.O_CLOEXEC]
    return state.model_copy(update={"descriptors": tuple(passed)})


def read_descriptors(thread: Path) -> Iterator[Descriptor]:
    """Yield the open descriptors of a thread's folder in /proc, by number."""
    for number in sorted(int(name) for name in os.listdir(thread / "fd")):  # noqa: PTH208 - names
        try:
            link = os.readlink(thread / "fd" / str(number))  # noqa: PTH115 - no path, at times
            facts = _pairs((thread / "fdinfo" / str(number)).read_text(errors="replace"))
        except OSError:
            continue  # closed in between
        yield Descriptor(
            number=number,
            link=printable(link),
            position=int(facts.get("pos", "0")),
            flags=facts.get("flags", "0"),
            gone=_read_gone(thread / "fd" / str(number)) if link.endswith(_GONE) else None,
        )


def _read_gone(link: Path) -> GoneFile | None:
    try:
        facts = link.stat()
    except OSError:
        return None  # closed in between
    if not stat.S_ISREG(facts.st_mode):
        return None
    return GoneFile(size=facts.st_size, inode=facts.st_ino)


def printable(text: str) -> str:
    """Return a name with bytes that are not UTF-8 as backslash escapes, as JSON can hold it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_at(pid: int, cwd: str, umask: str) -> ProcessState:
    """Return the state of a process that is known to have been somewhere; no mount is asked.

    What else it has it still has, or it has ended and nothing more is known of it.
    """
    folder = PROC / str(pid)
    words = root = table = ""
    with suppress(OSError):
        words = (folder / "cmdline").read_bytes().decode(errors="backslashreplace")
        root = printable(os.readlink(folder / "root"))  # noqa: PTH115 - as the kernel says it
        table = (folder / "mountinfo").read_bytes().decode(errors="backslashreplace")
    return ProcessState(
        pid=pid,
        process=pid,
        command=tuple(words.rstrip("\0").split("\0")),
        cwd=cwd,
        root=root or "/",
        umask=umask,
        descriptors=(),
        mountinfo=table,
        namespace=namespace_of(pid),
    )


def _read_thread(process: int, thread: int) -> ProcessState | None:
    folder = PROC / str(process) / "task" / str(thread)
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="backslashreplace")
        return ProcessState(
            pid=thread,
            process=process,
            command=tuple(words.rstrip("\0").split("\0")),
            cwd=printable(os.readlink(folder / "cwd")),  # noqa: PTH115 - as the kernel says it
            root=printable(os.readlink(folder / "root")),  # noqa: PTH115
            umask=_pairs((folder / "status").read_text(errors="replace")).get("Umask", ""),
            descriptors=tuple(read_descriptors(folder)),
            mountinfo=(folder / "mountinfo").read_bytes().decode(errors="backslashreplace"),
            namespace=namespace_of(process),
        )
    except OSError:
        return None


def _threads(process: int) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(PROC / str(process) / "task"))  # noqa: PTH208
    except OSError:
        return []


def _all() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - names only


def _status(pid: int) -> dict[str, str]:
    try:
        return _pairs((PROC / str(pid) / "status").read_text(errors="replace"))
    except OSError:
        return {}


def _pairs(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in lines}


_GROUPS = Path("/sys/fs/cgroup")
_LIST = "cgroup.procs"
_ASKING_S = 30


def processes_of_group(group: Path) -> list[int]:
    """Return the processes of a control group and of those below it.

    Raises:
        ReplayerError: It is no control group, or has no process.
    """
    if not (group / _LIST).is_file():
        message = f"{group}: is no control group: it has no {_LIST}"
        raise ReplayerError(message, hint=f"they are below {_GROUPS}")
    lists = (path.read_text().split() for path in sorted(group.rglob(_LIST)))
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
            words, capture_output=True, text=True, check=False, timeout=_ASKING_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReplayerError(f"--unit {unit}: {error}", hint="use --cgroup or -p") from error
    name = done.stdout.strip()
    if not name:
        raise ReplayerError(f"--unit {unit}: does not run", hint="list units with: systemctl")
    every = (_GROUPS / name.lstrip("/"), _GROUPS / "systemd" / name.lstrip("/"))
    return next((group for group in every if group.is_dir()), every[0])
