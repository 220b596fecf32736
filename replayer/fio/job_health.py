"""The client's own health while fio works: CPU time, and time that its jobs waited for a CPU."""

import os
import resource
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from replayer.fio.process import children_of, tasks_of
from replayer.fio.recorder import Gain
from replayer.measure.cpus import CpuTime, read_cpu_time
from replayer.measure.health import Health

MOST_TASKS = 64  # looked at, as in the engine: the rest is scaled up
LEAST_NS = 100_000_000
"""Chosen: a job waits for a CPU when it starts, too, for some slices of 3 ms; of less time in I/Os
than this they are a share that says nothing of them."""


class JobHealth:
    """Adds up what the runs of fio cost."""

    def __init__(self) -> None:
        self._wall_s = 0.0
        self._cpu_s = 0.0
        self._python_s = 0.0
        self._cpus = CpuTime()
        self._delay_ns = 0.0
        self._in_call_ns = 0.0
        self._delays: dict[str, int] = {}
        self._jobs: dict[str, tuple[float, float]] = {}
        self._scale = 1.0
        self._begin = (0.0, 0.0)
        self._beside = (0.0, CpuTime())

    def open(self) -> None:
        """A fio starts."""
        self._begin = (time.monotonic(), _cpu_s())
        self._beside = (time.process_time(), read_cpu_time())
        self._delays.clear()
        self._jobs.clear()

    def begin(self, pid: int) -> None:
        """Its jobs begin: what it took to lay their files out is no cost of theirs."""
        spent_ns = sum(_schedule_of(task)[0] for task in tasks_of(pid))
        self._begin = (time.monotonic(), _cpu_s() + spent_ns / 1e9)
        self._beside = (time.process_time(), read_cpu_time())

    def look(self, pid: int) -> None:
        """Read how long its jobs have waited for a CPU: their files are gone at the end.

        Jobs are processes or threads of fio; its first thread lays files out and does no I/O that
        is timed.
        """
        tasks = [
            task
            for process in (pid, *children_of(pid))
            for task in tasks_of(process)
            if task.name != str(pid)
        ]
        self._scale = max(len(tasks) / MOST_TASKS, 1.0)
        for task in tasks[:MOST_TASKS]:
            if delay_ns := _schedule_of(task)[1]:
                self._delays[task.name] = delay_ns

    def add(self, gains: Sequence[Gain], processes: Mapping[str, int]) -> None:
        """Count the time that I/Os took, and the time in which a job's processes ran."""
        for gain in gains:
            if gain.key.op == "transaction" and gain.key.expected:
                job, length_s = gain.key.transaction, gain.span.end_s - gain.span.start_s
                taken_ns, ran_ns = self._jobs.get(job, (0.0, 0.0))
                taken_ns += gain.histogram.mean * gain.histogram.count
                self._jobs[job] = (taken_ns, ran_ns + length_s * 1e9 * processes[job])

    def close(self) -> None:
        """It has ended and was waited for."""
        began, cpu_s = self._begin
        self._wall_s += time.monotonic() - began
        self._cpu_s += _cpu_s() - cpu_s
        python_s, cpus = self._beside
        self._python_s += time.process_time() - python_s
        self._cpus += read_cpu_time() - cpus
        self._delay_ns += sum(self._delays.values()) * self._scale
        # Of several I/Os under way at once a process waits for all in the same time.
        self._in_call_ns += sum(min(taken_ns, ran_ns) for taken_ns, ran_ns in self._jobs.values())

    def health(self, given_up: int) -> Health:
        """Return the sum as the run folder keeps it; ``given_up`` are processes that hung."""
        capacity_s = self._wall_s * len(os.sched_getaffinity(0))
        others_share, stolen_share = self._cpus.shares_beside((self._cpu_s + self._python_s) * 1e9)
        return Health(
            client_cpu_share=min(self._cpu_s / capacity_s, 1.0) if capacity_s else 0.0,
            others_cpu_share=others_share,
            stolen_cpu_share=stolen_share,
            run_queue_delay_ns=None if self._in_call_ns < LEAST_NS else round(self._delay_ns),
            in_call_ns=round(self._in_call_ns),
            overhead_ns=None,
            users_given_up=given_up,
        )


def _schedule_of(task: Path) -> tuple[int, int]:
    """Return a thread's time on a CPU and its time waiting for one, in ns; zeros once it is gone.

    Source: the kernel's Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat.
    """
    with suppress(OSError, ValueError):
        ran_ns, waited_ns, _ = map(int, (task / "schedstat").read_text().split())
        return ran_ns, waited_ns
    return 0, 0


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
