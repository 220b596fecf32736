"""Before anything is laid out: what on this machine keeps a run from deciding anything.

Other programs may use the CPUs, and the caches of a new mount are empty. On a terminal the person
is asked whether to run on a busy machine. In a pipe the run goes on, and its figures judge it.
"""

import os
import select
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from replayer._native import clock_ns
from replayer.errors import EXIT_INCONCLUSIVE, ReplayerError
from replayer.measure.cpus import read_cpu_time
from replayer.measure.health import SLOW_CLOCK_NS
from replayer.measure.run import Target
from replayer.measure.units import format_about, format_count, format_share, format_time_ns
from replayer.run.interruption import Interruption
from replayer.run.progress import ProgressDisplay

LOOK_S = 0.25  # chosen: 25 ticks of the kernel on each CPU, and nobody has to wait
HARDLY_ANY = 0.75
"""Chosen: with more than this in use by others, users wait for a CPU in most of their calls. One
busy core of two is below it."""
YOUNG_S = 60  # chosen: as long as NFS keeps the attributes of a folder (acdirmax of nfs(5))
MOST_NAMED = 3  # programs
LEAST_CPUS = 0.05  # chosen: less explains nothing
POLL_S = 0.1
_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


class BusyMachineError(ReplayerError):
    """The person does not want to measure on a busy machine."""

    exit_code = EXIT_INCONCLUSIVE


@dataclass(frozen=True)
class CpuUse:
    """What the CPUs that this process may use were used for, while it looked."""

    cpus: int
    """How many CPUs it may use."""
    quota: float | None = None
    """How many CPUs' time a cgroup gives it; None: it sets no quota."""
    others: float = 0.0
    """The share of other programs, of all of these CPUs."""
    stolen: float = 0.0
    """That of other machines on the same host."""
    programs: Mapping[str, float] = field(default_factory=dict)
    """By name: how many CPUs' time a program used, the busiest first."""

    @property
    def leaves_hardly_any(self) -> bool:
        """Whether so little is left that what is measured would be the client's."""
        return self.others + self.stolen > HARDLY_ANY

    def __str__(self) -> str:
        named = ", ".join(
            f"{name} {format_share(used / self.cpus)}"
            for name, used in [*self.programs.items()][:MOST_NAMED]
        )
        cpus = f"{format_count(self.cpus)} CPU{'s' * (self.cpus != 1)}"
        said = f"other programs use {format_share(self.others)} of the {cpus}"
        said += f" ({named})" if named else ""
        if self.stolen > LEAST_CPUS:
            said += f", other machines on this host {format_share(self.stolen)}"
        return said


def look_at_cpus() -> CpuUse:
    """Watch the CPUs for a moment; what the kernel hides counts as free."""
    own, before = time.process_time_ns(), read_cpu_time()
    time.sleep(LOOK_S)
    used = read_cpu_time() - before
    others, stolen = used.shares_beside(time.process_time_ns() - own)
    use = CpuUse(len(os.sched_getaffinity(0)), read_quota(), others or 0.0, stolen or 0.0)
    return replace(use, programs=find_busiest()) if use.leaves_hardly_any else use


def find_busiest() -> dict[str, float]:
    """Return how many CPUs' time each other program uses, by its name, the busiest first."""
    before, begin_s = _used_s(), time.monotonic()
    time.sleep(LOOK_S)
    after, took_s = _used_s(), time.monotonic() - begin_s
    used: dict[str, float] = defaultdict(float)
    for key, seconds in after.items():
        used[key[1]] += (seconds - before.get(key, seconds)) / took_s
    busiest = sorted(used.items(), key=lambda item: -item[1])
    return {name: cpus for name, cpus in busiest if cpus > LEAST_CPUS}


def _used_s() -> dict[tuple[str, str], float]:
    """Return the CPU time of every other process, by its number and name: proc_pid_stat(5)."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            number, _, rest = os.fsdecode(file.read_bytes()).partition(" (")
            name, _, fields = rest.rpartition(") ")
            if number != str(os.getpid()):
                user, system = fields.split()[_USER:][:2]
                found[number, name] = (int(user) + int(system)) / _TICKS_PER_S
    return found


_USER = 11  # utime is the 14th field of all, and stime the next one
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def read_quota(group: Path = _GROUP, groups: Path = _GROUPS) -> float | None:
    """Return how many CPUs' time this process's cgroups (version 2) allow; None: as much as is."""
    try:
        path = group.read_text().strip().rpartition("::/")[2]
    except OSError:
        return None
    quotas = []
    for place in (groups / path, *(groups / path).parents):
        if not place.is_relative_to(groups):
            break
        try:
            quota, period = (place / "cpu.max").read_text().split()
            quotas.append(int(quota) / int(period))
        except (OSError, ValueError):  # no such controller, or "max"
            continue
    return min(quotas, default=None)


def check_clock(progress: ProgressDisplay) -> None:
    """Say where reading the clock takes a system call."""
    cost_ns = clock_ns()
    if cost_ns > SLOW_CLOCK_NS:
        progress.say(f"clock: one reading costs {format_time_ns(cost_ns)}: short calls look longer")


def check_caches(progress: ProgressDisplay, targets: Iterable[Target]) -> None:
    """Say which targets were mounted a moment ago."""
    for target in targets:
        ages = [mount.mounted_s for mount in target.mounts if mount.mounted_s is not None]
        if ages and min(ages) < YOUNG_S:
            progress.say(
                f"caches: {target.name} was mounted {format_about(min(ages))} ago: at first it "
                "asks its server for what later comes from its caches"
            )


def check_cpus(progress: ProgressDisplay, interruption: Interruption, *, asks: bool) -> None:
    """Look at the CPUs, and say what keeps this run from deciding anything; ask who is there.

    Raises:
        BusyMachineError: The person says so.
        InterruptedRunError: The user has had enough.
    """
    check_clock(progress)
    use = look_at_cpus()
    if use.quota is not None and use.quota < use.cpus:
        progress.say(f"CPUs: a cgroup allows the time of {use.quota:g} of {use.cpus}")
    if not use.leaves_hardly_any:
        return
    progress.say(f"busy: {use}: nothing can be decided now; figures will show the client")
    if asks and not _wants_to(interruption):
        message = f"the machine is busy: {use}"
        raise BusyMachineError(message, hint="stop these programs, or measure from another machine")


def _wants_to(interruption: Interruption) -> bool:
    """Ask whether to run all the same."""
    sys.stderr.write("Run all the same? [y/N] ")
    sys.stderr.flush()
    while not select.select([sys.stdin], [], [], POLL_S)[0]:
        interruption.check("asking whether to run on a busy machine")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
