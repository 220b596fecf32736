"""The run's own folder on a target, laid out before the clock starts.

The engine makes every call on the mount. This module waits for it without blocking the hub, and
turns failures into refusals. The folder goes on to the engine as sandboxes.
"""

import ctypes
import errno
import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import gevent
from gevent.hub import get_hub

from replayer._native import Engine, Finding, Plan, Sandbox, evict_machine_caches
from replayer.errors import OutsideError, ReplayerError
from replayer.measure.units import NS_PER_S
from replayer.run.interruption import InterruptedRunError, Interruption
from replayer.run.marker import Identity, Loss, find_loss, hand_on, identify, take_over
from replayer.run.progress import ProgressDisplay
from replayer.run.targets import MountError, NamedTarget, explain, explain_reading
from replayer.run.threads import call_within
from replayer.run.watchdog import REFUSED, MountTask, Watchdog, refusal_of

if TYPE_CHECKING:
    from gevent.event import AsyncResult

SWITCH = "/proc/sys/vm/drop_caches"


def may_evict_machine() -> bool:
    """Whether this process may drop the machine's caches: root may, outside of most containers."""
    with suppress(OSError):
        os.close(os.open(SWITCH, os.O_WRONLY | os.O_CLOEXEC))
        return True
    return False


class Flush:
    """A call that writes out what is dirty, under way in a thread."""

    done_entries = total_entries = done_bytes = 0

    def __init__(self, call: Callable[[], int], op: str, place: str) -> None:
        self._op = op
        self._place = place
        self._began_ns = time.monotonic_ns()
        self._answer: AsyncResult[int] = get_hub().threadpool.spawn(call)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return bool(self._answer.ready())

    def cancel(self) -> None:
        """Nothing ends a sync: whoever waits for it leaves it behind."""

    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        """Return the call, what it is made on, and for how long, if that is longer than a limit."""
        age_ns = time.monotonic_ns() - self._began_ns
        return [(self._op, self._place, age_ns)] if age_ns > after_ns else []


class MachineEviction(Flush):
    """One sync of all mounts and dropping of all caches."""

    def __init__(self) -> None:
        super().__init__(evict_machine_caches, "sync", "all mounts of this machine")

    def result(self) -> None:
        """Refuse to go on with caches that are not cold.

        Raises:
            ReplayerError: They could not be dropped.
        """
        if not self._answer.get():
            message = f"{SWITCH}: the machine's caches could not be dropped"
            raise OutsideError(message, hint="run it with --cache as-is or warm")


class MountFlush(Flush):
    """One sync of the file system that a folder is on."""

    def __init__(self, folder: str) -> None:
        super().__init__(partial(_sync_mount, folder), "syncfs", folder)
        self._folder = folder

    def result(self) -> None:
        """Refuse to go on with what could not be written.

        Raises:
            OSError: What the kernel says.
        """
        number = self._answer.get()
        if number:
            raise OSError(number, os.strerror(number), self._folder)


def _sync_mount(path: str) -> int:
    """Sync the file system of a folder; return why not, or 0.

    Not raised: gevent prints what a thread raises.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return error.errno or errno.EIO
    try:
        return ctypes.get_errno() if _LIBC.syncfs(folder) else 0
    finally:
        os.close(folder)


_LIBC = ctypes.CDLL(None, use_errno=True)

R = TypeVar("R")

POLL_S = 0.05
ANSWER_S = 20.0  # chosen: a mount that takes longer for one call is taken for dead
HUNG_S = 120.0  # chosen: NFS gives up on a dead server after about as long
SHOWN_S = 10.0  # chosen: longer than the 3 to 6 s that NFS clients keep a directory's attributes
LEAST_PATIENCE_S = 3.0  # chosen: a mount that is well answers by then, whatever its users may take
Explain = Callable[[Path, OSError], ReplayerError]
"""Turns a failed call into a refusal."""
HANGING, AWAY = "calls on it hang", "its mount is gone"
"""Why a folder is left where it is."""
THREADS = 8  # chosen: hides a millisecond of latency, and does not drown one disk


@dataclass(frozen=True)
class DirContext:
    """What the run's folders on all targets have in common."""

    progress: ProgressDisplay
    interruption: Interruption
    stop_timeout_s: float

    @property
    def patience_s(self) -> float:
        """How long work that was cancelled, or that ends a run, may take to end."""
        return max(self.stop_timeout_s, LEAST_PATIENCE_S)


@dataclass(frozen=True)
class LayoutContext(DirContext):
    """The same where a plan says what is laid out."""

    plan: Plan


@dataclass
class RunDir:
    """The run's own folder on one target: made, found, wiped, removed."""

    target: NamedTarget
    works: DirContext
    sandboxes: list[Sandbox] = field(default_factory=list)
    """The folder through each mount point; empty while the mount is taken away."""
    place: str | None = None
    """Where the folder is, through the first mount point; None: there is none."""
    made_here: bool = False
    """Whether this process made the folder, or stands in for a lost one that did."""
    is_hanging: bool = False
    """Whether a call on it was given up on: nothing more is asked of it."""
    _made: Identity | None = None

    def create(self, run: str, note: str) -> None:
        """Make the folder, and find it through the other mount points.

        Raises:
            ReplayerError: It cannot be made, or another mount point does not show it.
        """
        first, *others = self.target.paths
        self.sandboxes = [self.ask(first, lambda: Sandbox.create(str(first), run, note))]
        self.made_here = True
        self._remember()
        for path in others:
            folder = path / Path(self.sandboxes[0].path).name
            self.sandboxes.append(self._find(folder, str(first)))

    def open(self, folders: Sequence[Path]) -> None:
        """Open a folder that is there already, through each mount point.

        Raises:
            ReplayerError: It is not there, or no run made it.
        """
        self.sandboxes = [self.ask(path, partial(Sandbox.open, str(path))) for path in folders]
        self._remember()

    def release(self) -> list[Path]:
        """Let go of the folder for as long as its mount is taken away; returns where it was."""
        folders = [Path(sandbox.path) for sandbox in self.sandboxes]
        self.sandboxes.clear()
        return folders

    def forget(self) -> None:
        """Let go of the folder for good: somebody else has taken it away."""
        self.sandboxes.clear()
        self.place = None

    def require(self, size_bytes: int, inodes: int) -> None:
        """Refuse a target without room for what the plan lays out and is known to write.

        Raises:
            MountError: Bytes or inodes are missing.
        """
        where = self.target.paths[0]
        space = self.ask(where, self.sandboxes[0].space)
        hint = "free some space, or use another target; --set makes a scenario smaller"
        if size_bytes > space.bytes_free:
            need, have = f"{size_bytes:,} bytes", f"{space.bytes_free:,}"
        elif space.inodes_total and inodes > space.inodes_free:
            need, have = f"{inodes:,} inodes", f"{space.inodes_free:,}"
        else:
            return
        raise MountError(f"{where}: this run needs {need}, but only {have} are free", hint=hint)

    def wipe(self) -> None:
        """Remove what is in the folder, but for its marker; that is not interrupted.

        Raises:
            ReplayerError: The mount refuses, or hangs.
        """
        self._finish("wiping", self.sandboxes[0].wipe(THREADS), lambda: False)

    def remove(self) -> None:
        """Remove the folder and everything in it; a second signal that comes now ends that.

        Raises:
            ReplayerError: It could not be removed, or not to the end.
        """
        abandoned = partial(self.works.interruption.abandons_removal, self.works.progress.say)
        self._finish("removing", self.sandboxes[0].remove(THREADS), abandoned)
        self.forget()

    def say_left(self, reason: str) -> list[str]:
        """Return the line that names the folder to who must remove it; none where there is none."""
        if self.place is None:
            return []
        command = f"replayer clean {shlex.quote(self.place)}"
        return [f"left behind ({reason}); remove it with: {command}"]

    def find_loss(self) -> Loss | None:
        """Tell whether the folder, or its marker, was taken away; None: it is as it was made.

        Nothing is claimed of a mount that does not answer.
        """
        if not self.sandboxes or self._made is None or self.is_hanging:
            return None
        look = partial(find_loss, self.target.name, self.sandboxes[0], self._made)
        try:
            return call_within(self.works.patience_s, look, self.sandboxes[0].path)
        except OSError as error:
            self.is_hanging |= isinstance(error, TimeoutError)
            return None

    def _remember(self) -> None:
        """Keep what tells the folder from another one of its name."""
        self.place = path = self.sandboxes[0].path
        self._made = self.ask(Path(path), partial(identify, path))

    def _find(self, folder: Path, made_in: str) -> Sandbox:
        """Wait until another mount point shows the folder."""
        waited = 0.0
        while True:
            try:
                return self.ask(folder, lambda: Sandbox.open(str(folder)))
            except ReplayerError as error:
                if waited >= SHOWN_S:
                    message = f"{folder.parent}: does not show what was created in {made_in}"
                    hint = "the paths of one target are mount points of the same export"
                    raise MountError(message, hint=hint) from error
            gevent.sleep(POLL_S)
            waited += POLL_S

    def ask(self, path: Path, call: Callable[[], R]) -> R:
        """Make one call on the mount, and turn its failure into a refusal."""
        try:
            return call_within(ANSWER_S, call, str(path))
        except REFUSED as error:
            self.is_hanging |= isinstance(error, TimeoutError)
            raise refusal_of(path, error) from error

    def _work(self, doing: str, start: Callable[[], MountTask[R]], say: Explain = explain) -> R:
        """Start a task, wait for it while others run, and return what it found."""
        self.works.interruption.check(f"{doing} {self.target.name}")
        task = start()
        watchdog = Watchdog(HUNG_S, self.works.patience_s)
        interruption, what = self.works.interruption, f"{doing} {self.target.name}"
        try:
            found = self._poll((task, watchdog), doing, lambda: bool(interruption.level), say)
        except InterruptedRunError:
            interruption.check(what)  # and says what was interrupted
            raise
        interruption.check(what)
        return found

    def _finish(
        self, doing: str, task: MountTask[Finding], cancelled: Callable[[], bool]
    ) -> Finding:
        """Do the same at a run's end, whatever has ended it."""
        watchdog = Watchdog(self.works.patience_s, self.works.patience_s)
        return self._poll((task, watchdog), doing, cancelled)

    def _poll(
        self,
        work: tuple[MountTask[R], Watchdog],
        doing: str,
        cancelled: Callable[[], bool],
        say: Explain = explain,
    ) -> R:
        """Wait for a task, saying what hangs, and return what it found.

        Raises:
            MountError: A call has hung for too long, or does not end though it is cancelled.
            InterruptedRunError: It was cancelled.
        """
        task, watchdog = work
        with self.works.progress.work(f"{doing} {self.target.name}") as report:
            while not task.finished:
                if cancelled():
                    task.cancel()
                    watchdog.end()
                self._look(task, watchdog)
                report(task.done_entries, task.total_entries, task.done_bytes)
                gevent.sleep(POLL_S)
            report(task.done_entries, task.total_entries, task.done_bytes)
            return self._result(task, say)

    def _look(self, task: MountTask[object], watchdog: Watchdog) -> None:
        for hang in watchdog.look(task):
            self.works.progress.alarm(hang)
        if watchdog.is_over:
            self.is_hanging = True
            raise watchdog.give_up(self.target.name, str(self.target.paths[0]))

    def _result(self, task: MountTask[R], say: Explain) -> R:
        try:
            return task.result()
        except OSError as error:
            place = error.filename or self.target.paths[0]
            raise say(Path(os.fsdecode(place)), error) from error


@dataclass
class TargetDir(RunDir):
    """A run's folder with the files that its plan lays out."""

    works: LayoutContext
    fresh: bool = False
    """Whether it holds what the plan lays out, and nothing else."""
    _used: bool = False

    def join(self, name: str) -> None:
        """Find a folder that another worker made on the same target.

        Raises:
            ReplayerError: A mount point of this machine does not show it.
        """
        where = "another worker uses the same target"
        self.sandboxes = [self._find(path / name, where) for path in self.target.paths]
        self._remember()
        self._used = True  # whoever lays it out from here wipes it first

    def take_over(self, note: str) -> None:
        """Make a folder that an earlier run kept that of this one, and open it.

        Raises:
            ReplayerError: It is not there, no run made it, or another run is at work in it.
        """
        first = self.target.paths[0]
        self.ask(first, partial(take_over, str(first), note))
        self.open(self.target.paths)

    def hand_on(self) -> None:
        """Say in the folder, which is kept, that its run has ended.

        Raises:
            ReplayerError: The mount refuses.
        """
        sandbox = self.sandboxes[0]
        self.ask(Path(sandbox.path), partial(hand_on, sandbox.path, sandbox.note))

    def lay_out(self) -> None:
        """Make the datasets, after wiping what an earlier segment left.

        Raises:
            ReplayerError: No space, or the mount refuses.
        """
        if self.fresh:
            return
        if self._used:
            self._work("wiping", lambda: self.sandboxes[0].wipe(THREADS))
        self._used = True
        self._work("laying out", lambda: self.sandboxes[0].lay_out(self.works.plan, THREADS))
        self.fresh = True

    def write_out(self) -> None:
        """Have all written out that is dirty on its file system, through every mount point."""
        for sandbox in self.sandboxes:
            self._work("writing out", partial(MountFlush, sandbox.path))

    def verify(self) -> None:
        """Refuse a folder that does not hold what the plan lays out.

        Raises:
            ReplayerError: Names the first entry that differs.
        """
        found = self._work(
            "checking",
            lambda: self.sandboxes[0].verify(self.works.plan, THREADS),
            explain_reading,
        )
        if found.mismatches:
            message = (
                f"{self.sandboxes[0].path}: {found.mismatches:,} entries differ from the scenario; "
                f"the first: {found.first_mismatch}"
            )
            raise ReplayerError(message, hint="run without --reuse to lay them out again")
        self.fresh = self._used = True

    def warm(self) -> None:
        """Read everything once through every mount point."""
        for sandbox in self.sandboxes:
            self._work("reading", partial(sandbox.warm, self.works.plan, THREADS), explain_reading)

    def evict(self) -> None:
        """Have the pages of every file dropped, through every mount point."""
        for sandbox in self.sandboxes:
            self._work(
                "evicting", partial(sandbox.evict, self.works.plan, THREADS), explain_reading
            )

    def evict_machine(self) -> None:
        """Have all mounts of the machine synced, and all its caches dropped.

        Raises:
            ReplayerError: A call hangs, or the kernel refuses.
        """
        self._work("dropping caches for", MachineEviction)

    def read_back(self, engine: Engine, target: int, budget_s: float) -> None:
        """Have the engine read what its users wrote here, and judge it; a signal ends that.

        Raises:
            ReplayerError: A call hangs: nothing more is asked of the target.
        """
        budget_ns, presses = int(budget_s * NS_PER_S), self.works.interruption.presses
        self._finish(
            "reading back",
            engine.read_back(target, THREADS, budget_ns=budget_ns),
            lambda: self.works.interruption.presses > presses,
        )

    def restore(self) -> None:
        """Lay out anew what users have changed, at a run's end; a signal that comes then ends that.

        Raises:
            ReplayerError: The mount refuses or hangs, or a signal came: what is there is a part.
        """
        self.fresh, cancelled = False, self.works.interruption.ends_restoring
        folder, patience_s = self.sandboxes[0], self.works.patience_s
        wiping = (folder.wipe(THREADS), Watchdog(HUNG_S, patience_s))
        self._poll(wiping, "wiping", cancelled)
        laying = (folder.lay_out(self.works.plan, THREADS), Watchdog(HUNG_S, patience_s))
        self._poll(laying, "laying out", cancelled)
        self.fresh = True
