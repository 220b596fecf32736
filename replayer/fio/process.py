"""One run of fio: started in its folder, listened to, stopped in two steps.

What it prints is cut into documents and messages here and understood elsewhere. Its output is read
by threads, so that a mount that hangs stops neither this program nor its clean-up.
"""

import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from replayer.errors import OutsideError
from replayer.fio.fence import Fence, fence_around
from replayer.fio.program import Program
from replayer.supervisor import follow

MOST_DOCUMENTS = 64  # waiting: one a second comes, twenty a second are taken
MOST_MESSAGES = 200  # chosen: what a person may want to read
OWN_THREADS = 2  # its first one, and the one that prints
MOST_LINES = 4_000_000  # of one document: 4,096 jobs of about 1,000 lines


@dataclass(frozen=True)
class Launch:
    """How fio is started."""

    program: Program
    jobs: Path
    folder: Path
    """Where it works: file names are relative."""
    may_write: bool = True
    """False adds --readonly, with which fio refuses every job that writes."""
    device: Path | None = None
    """The block device that it works on; None: on files of its folder."""

    @property
    def words(self) -> list[str]:
        """The command line."""
        settings = ["--output-format=json+", "--status-interval=1", "--eta=never"]
        guard = [] if self.may_write else ["--readonly"]
        return [self.program.path, *settings, *guard, str(self.jobs)]


class FioProcess:
    """A running fio."""

    def __init__(self, launch: Launch) -> None:
        # Once, before fio works: a path on a mount that hangs is not looked up again.
        folder = launch.folder.resolve()
        self._targets = (f"{folder}/", str(launch.device or folder))
        self._process = _start(launch)
        self._documents: queue.Queue[str] = queue.Queue(MOST_DOCUMENTS)
        self._messages: deque[str] = deque(maxlen=MOST_MESSAGES)
        self._threads = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_messages, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Its process, which leads a group of its own."""
        return self._process.pid

    @property
    def messages(self) -> tuple[str, ...]:
        """What it said beside the results, the last of it."""
        return tuple(self._messages)

    def documents(self) -> Iterator[str]:
        """Yield the documents that have come since the last call."""
        with suppress(queue.Empty):
            for _ in range(MOST_DOCUMENTS):
                yield self._documents.get_nowait()

    def ended(self) -> int | None:
        """Return its exit code once all it printed was read; None while it runs."""
        code = self._process.poll()
        if code is None or any(thread.is_alive() for thread in self._threads):
            return None
        return code

    def is_at_work(self) -> bool:
        """Whether its jobs have begun: before that it lays their files out itself.

        Jobs are its processes, or further threads (run_threads() of fio's backend.c). Threads that
        run before any file is open test the clock (fio_monotonic_clocktest() of its gettime.c).
        """
        if children_of(self.pid):
            return True
        return len(tasks_of(self.pid)) > OWN_THREADS and self._has_opened_a_target()

    def _has_opened_a_target(self) -> bool:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{self.pid}/fd").iterdir():
                with suppress(OSError):  # closed since
                    if str(descriptor.readlink()).startswith(self._targets):
                        return True
        return False

    def written_bytes(self) -> int:
        """Return how much it has written itself, without its jobs, see proc_pid_io(5)."""
        with suppress(OSError, StopIteration, ValueError):
            lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
            return int(next(line for line in lines if line.startswith("wchar:")).split()[1])
        return 0

    def stop(self) -> None:
        """Ask it to end its jobs and print what they did, as Ctrl-C would."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> int:
        """End it and its jobs at once; return how many processes did its I/Os, at least."""
        # Its jobs lead sessions of their own (setsid in fio's thread_main), or are its threads.
        jobs = children_of(self.pid)
        for pid in (self.pid, *jobs):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return max(len(jobs), 1)

    def _read_output(self) -> None:
        lines: list[str] = []
        for line in _lines_of(self._process.stdout):
            if lines or line == "{\n":
                lines.append(line)
                if line == "}\n" or len(lines) > MOST_LINES:
                    self._documents.put("".join(lines))
                    lines.clear()
            elif line.strip():
                self._messages.append(line.strip())

    def _read_messages(self) -> None:
        for line in _lines_of(self._process.stderr):
            if line.strip():
                self._messages.append(line.strip())


def _lines_of(stream: IO[str] | None) -> Iterator[str]:
    """Yield what is printed until nothing more can come, and close the pipe."""
    if stream is not None:
        with stream:
            yield from stream


def _start(launch: Launch) -> subprocess.Popen[str]:
    devices = [launch.device] if launch.device is not None and launch.may_write else []
    try:
        with fence_around(launch.folder, devices) as fence:
            return _start_within(launch, fence)
    except (OSError, subprocess.SubprocessError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise OutsideError(
            f"{launch.program.path}: cannot be started: {reason or error}"
        ) from error


def _start_within(launch: Launch, fence: Fence) -> subprocess.Popen[str]:
    parent = os.getpid()

    def begin() -> None:
        follow(parent, signal.SIGTERM)  # fio must not go on writing alone
        fence.enter()

    return subprocess.Popen(  # noqa: S603 - every word of it was made here
        launch.words,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C comes here first
        # SIGPIPE stays ignored: when this program is killed, fio must live to end its jobs.
        restore_signals=False,
        preexec_fn=begin,  # noqa: PLW1509 - it makes a few system calls and nothing else
    )


def tasks_of(pid: int) -> list[Path]:
    """Return the folders of a process's threads, see proc_pid_task(5)."""
    try:
        return sorted(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def children_of(pid: int) -> tuple[int, ...]:
    """Return the processes that a process has started, see proc_pid_task_children(5)."""
    try:
        return tuple(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return ()
