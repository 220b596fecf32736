"""One turn: a job file run once on one target, with progress, watched until its fio has ended.

Results go to the recorder as they come. A turn ends in bounded time: fio is asked to stop when it
is overdue or when the user wishes it, then killed, then left behind.
"""

import math
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from replayer.fio import (
    FioError,
    FioProcess,
    Gain,
    JobFile,
    Launch,
    Recorder,
    Section,
    Snapshot,
    bytes_needed,
    parse_snapshot,
    processes,
    processes_at_once,
    seconds_needed,
)
from replayer.fio.job_health import JobHealth
from replayer.fio.places import NO_ROOM
from replayer.measure import format_time_ns
from replayer.measure.runfolder import writing_to
from replayer.run.interruption import Interruption, Level
from replayer.run.ledger import Ledger
from replayer.run.progress import Tick, make_progress

__all__ = ["JobProgress", "TurnEnding", "TurnObserver", "TurnWatchdog", "play_turn"]


class JobProgress:
    """Tells a person how far it is."""

    def __init__(self, targets: Sequence[str], *, quiet: bool) -> None:
        self._targets = tuple(targets)
        self._progress = make_progress(quiet=quiet)
        self._ledger = Ledger()
        self._phase = ""
        self._target = 0
        self._users = 0

    def announce(self, name: str, expected_s: float | None) -> None:
        """Say what comes and how long it takes."""
        long = (
            "as long as the work takes"
            if expected_s is None
            else f"at least {format_time_ns(expected_s * 1e9)}, and the time to lay out files"
        )
        self._progress.say(f"fio: {name}: {long}")

    def begin(self, phase: str, target: int, file: JobFile) -> None:
        """A turn begins."""
        self._phase, self._target = phase, target
        self._users = processes_at_once(file)
        self._ledger.begin_turn()
        self.lay_out(0)

    def lay_out(self, size_bytes: int) -> None:
        """Show that files are laid out, and how much was written of them."""
        self._tick(None, size_bytes)

    def show(self, gains: list[Gain], left_s: float | None) -> None:
        """Show what has come."""
        for gain in gains:
            key = gain.key
            if key.op == "transaction":
                place, seconds = (
                    (self._target, key.transaction),
                    gain.span.end_s - gain.span.start_s,
                )
                self._ledger.take(place, gain.histogram, seconds, expected=key.expected)
        self._tick(left_s, None)

    def say(self, text: str) -> None:
        """Say what a person must know at once."""
        self._progress.say(text)

    def close(self) -> None:
        """End the display."""
        self._progress.close()

    def _tick(self, left_s: float | None, laid_out_bytes: int | None) -> None:
        tick = Tick(
            phase=self._phase,
            users=self._users,
            left_s=left_s,
            ledger=self._ledger,
            targets=self._targets,
            laid_out_bytes=laid_out_bytes,
            target=self._target,
        )
        self._progress.tick(tick)


POLL_S = 0.05
KILL_S = 5.0  # chosen: a process that is not gone by then hangs in the kernel
SLOWEST_BYTES_PER_S = 1_000_000  # chosen: a fifth of EFS without burst credits (5 MiB/s)
LATE_S = 120.0  # chosen: beside the run time, for the last fsync on a slow mount
STUCK_S = 5.0  # as the engine's: an I/O that takes longer is reported
SAID_AGAIN_S = 10.0  # chosen: seldom enough for a log
SILENT_S = 600.0  # chosen: a job without a run time that ends no I/O for so long hangs

_SIGNALLED = re.compile(r"fio: pid=\d+, got signal=(?P<signal>\d+)")
"""As reap_threads() of fio's backend.c puts it."""
_QUIET = re.compile(r"fio: terminating on signal|fio: pid=|^Starting |^Jobs: |^Laying out |^note: ")


@dataclass(frozen=True)
class TurnEnding:
    """How a turn ended.

    Attributes:
        messages: What fio complained of.
        errors: By job: the errno that ended it, or that it went on after.
        hung: Whether processes were left behind in the kernel.
        overdue: Whether it was ended for taking too long.
        given_up: Processes that took too long and did not end when they were asked to: their last
            I/Os are in no figure.
        steady: By job: what fio says of its steady state.
        failure: Why it could not run the jobs at all; None if it could.
    """

    messages: tuple[str, ...]
    errors: dict[str, int]
    steady: dict[str, Mapping[str, Any]]
    hung: bool
    overdue: bool
    given_up: int
    failure: FioError | None = None


@dataclass(frozen=True)
class TurnObserver:
    """Who looks on.

    Attributes:
        recorder: Keeps what comes.
        gauge: Measures what it costs.
        interruption: May end it.
        show: Is told what came, and the seconds left, if known.
        lay_out: Is told how many bytes fio has written of the files that it lays out first.
        say: Is told what a person must know at once.
        stop_timeout_s: How long fio may take to end after it was asked to: jobs finish the I/Os
            under way, and end_fsync.
    """

    recorder: Recorder
    health_meter: JobHealth
    interruption: Interruption
    show: Callable[[list[Gain], float | None], None]
    lay_out: Callable[[int], None]
    say: Callable[[str], None]
    stop_timeout_s: float


class TurnWatchdog:
    """Decides when fio has taken too long, and when that no I/O ends must be said."""

    def __init__(self, file: JobFile, seconds: float | None) -> None:
        self._begin = self._moved = time.monotonic()
        self._seconds = seconds
        # Until its jobs begin fio lays their files out; in a ramp_time no I/O tells that they have.
        working_s = SILENT_S if seconds is None else seconds
        self._layout_s = bytes_needed(file) / SLOWEST_BYTES_PER_S + working_s + LATE_S
        self._tells_late = any(_tells_late(section) for section in file.sections)
        self._started: float | None = None
        self._said = -math.inf

    @property
    def lays_out(self) -> bool:
        """Whether files are being laid out."""
        return self._started is None

    def begin(self) -> None:
        """The jobs seem to have begun; of some only their first I/O tells it."""
        if self._started is None and not self._tells_late:
            self._started = time.monotonic()

    def note(self, gains: list[Gain]) -> None:
        """Something came from fio."""
        if any(gain.histogram.count for gain in gains):
            self._moved = time.monotonic()
            self._started = self._started or self._moved

    @property
    def left_s(self) -> float | None:
        """Return how long it should still take."""
        if self._seconds is None or self._started is None:
            return self._seconds
        return self._started + self._seconds - time.monotonic()

    def complaint(self) -> str | None:
        """Return what must be said, now and then, while nothing ends; None if all goes on."""
        now = time.monotonic()
        silent_s = now - max(self._moved, self._started or now)
        if silent_s < STUCK_S or now - self._said < SAID_AGAIN_S:
            return None
        self._said = now
        return f"fio: no I/O has ended for {silent_s:.0f} s"

    def is_over(self) -> bool:
        """Whether it has taken too long."""
        now = time.monotonic()
        if self._started is None:
            return now - self._begin > self._layout_s
        if self._seconds is not None:
            return now - self._started > self._seconds + LATE_S
        return now - max(self._moved, self._started) > SILENT_S


def play_turn(launch: Launch, file: JobFile, watch: TurnObserver, kept: Path) -> TurnEnding:
    """Run fio, and return how it ended.

    Args:
        launch: How it is started.
        file: What it runs.
        watch: Who looks on.
        kept: Where fio's last document is kept, in the run folder.

    Raises:
        ReplayerError: What it prints cannot be read, or not be kept; it has ended then, too.
    """
    watch.health_meter.open()
    turn = _Turn(FioProcess(launch), file, watch)
    try:
        turn.follow()
        gone = turn.end()
        final = turn.finish(kept)
    except BaseException:
        turn.end()  # it must not go on where its files are removed next
        raise
    watch.health_meter.close()
    ending = _ending(turn, final, hung=not gone)
    if watch.interruption.level is Level.NONE and gone:
        events = kept.parent.parent / "events.jsonl"
        return replace(ending, failure=_failure(turn, final, ending, events))
    return ending


class _Turn:
    """A fio that runs, and the last that it printed."""

    def __init__(self, process: FioProcess, file: JobFile, watch: TurnObserver) -> None:
        self.process = process
        self.source = file.source
        self.watchdog = TurnWatchdog(file, seconds_needed(file))
        self._watch = watch
        self._processes = {section.name: processes(section) for section in file.sections}
        self._last: str | None = None
        self.overdue = False
        self.killed = 0

    def follow(self) -> None:
        """Record what comes until fio has ended, or has not in the time after being asked to."""
        asked_at: float | None = None
        presses = 0
        while self.process.ended() is None:
            if self.watchdog.lays_out:
                self._look_on()
            for text in self.process.documents():
                self._take(text)
            complaint = self.watchdog.complaint()
            if complaint is not None:
                self._watch.say(complaint)
            interruption = self._watch.interruption
            if asked_at is not None:
                waited_s = time.monotonic() - asked_at
                if interruption.presses > presses or waited_s > self._watch.stop_timeout_s:
                    return
            elif interruption.level > Level.NONE or self.watchdog.is_over():
                self.overdue = interruption.level is Level.NONE
                asked_at, presses = time.monotonic(), interruption.presses
                self.process.stop()
            time.sleep(POLL_S)

    def _look_on(self) -> None:
        """Show how far files are laid out, until the jobs have begun."""
        if self.process.is_at_work():
            self.watchdog.begin()
        if self.watchdog.lays_out:
            self._watch.lay_out(self.process.written_bytes())
        else:
            self._watch.health_meter.begin(self.process.pid)

    def end(self) -> bool:
        """Kill fio unless it has ended; return whether it is gone."""
        if self.process.ended() is not None:
            return True
        self.killed = self.process.kill()
        deadline = time.monotonic() + KILL_S
        while self.process.ended() is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return self.process.ended() is not None

    def finish(self, kept: Path) -> Snapshot | None:
        """Record and keep the last that fio printed; None if there is nothing."""
        for text in self.process.documents():
            self._last = text
        if self._last is None:
            return None
        final = self._parsed(self._last)
        self._tell(self._watch.recorder.finish(final), None)
        with writing_to(kept.parent.parent):
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(self._last, encoding="utf-8")
        return final

    def _take(self, text: str) -> None:
        self._last = text
        gains = self._watch.recorder.take(self._parsed(text))
        self.watchdog.note(gains)
        self._watch.health_meter.look(self.process.pid)
        if gains or not self.watchdog.lays_out:
            self._tell(gains, self.watchdog.left_s)

    def _parsed(self, text: str) -> Snapshot:
        try:
            return parse_snapshot(text)
        except ValueError as error:
            message = f"{self.source}: fio printed what no results are made of: {error}"
            hint = "is the fio of your PATH the real one? what it measured until then is kept"
            raise FioError(message, hint=hint) from error

    def _tell(self, gains: list[Gain], left_s: float | None) -> None:
        self._watch.health_meter.add(gains, self._processes)
        self._watch.show(gains, left_s)


def _tells_late(section: Section) -> bool:
    """Whether a job lays out its files itself, or fio keeps a clock in a thread like a job's."""
    return section.value("create_serialize") == "0" or section.value("gtod_cpu") is not None


def _ending(turn: _Turn, final: Snapshot | None, *, hung: bool) -> TurnEnding:
    jobs = () if final is None else final.jobs
    return TurnEnding(
        messages=tuple(text for text in turn.process.messages if not _QUIET.search(text)),
        errors={job.name: job.error for job in jobs if job.error or job.errors},
        steady={job.name: job.steady for job in jobs if job.steady},
        hung=hung,
        overdue=turn.overdue,
        # Whom a user's second Ctrl-C killed may only have been slow.
        given_up=turn.killed if hung or turn.overdue else 0,
    )


def _failure(
    turn: _Turn, final: Snapshot | None, ending: TurnEnding, events: Path
) -> FioError | None:
    """Return the refusal of a turn that was cut off, or in which nothing was done."""
    code = turn.process.ended()
    killed = None if ending.overdue else _killed_by(turn.process.messages, code)
    if killed is not None:
        message = f"{turn.source}: fio did not end by itself: it or a job of it got {killed}"
        hint = "what it measured until then is kept; dmesg says whether memory was short"
        return FioError(message, hint=hint)
    done = final is not None and any(
        share.total for job in final.jobs for share in job.shares.values()
    )
    if done or (not code and not ending.errors):
        return None
    ended = "it did not end, and was killed" if ending.overdue else f"exit code {code}"
    said = next((text for text in ending.messages if text), ended)
    message = f"{turn.source}: fio could not run it: {said}"
    everything = " ".join(ending.messages)
    known = (hint for words, hint in _HINTS if words in everything)
    return FioError(message, hint=next(known, f"what fio said stands in {events}"))


def _killed_by(messages: Sequence[str], code: int | None) -> str | None:
    """Return the signal that ended fio or one of its jobs; None if none did.

    Of a job that was killed fio says so, and nothing in its results.
    """
    found = (_SIGNALLED.search(text) for text in messages)
    number = next((int(match["signal"]) for match in found if match), -(code or 0))
    if number <= 0:
        return None
    known = number in {*signal.Signals}
    return signal.Signals(number).name if known else f"signal {number}"


_HINTS = (
    ("O_DIRECT", "this file system has no O_DIRECT: use a job file without direct=1"),
    ("not loadable", "this fio was built without that ioengine: use psync, or install another fio"),
    ("io_queue_init", "the kernel refuses more asynchronous I/O: see /proc/sys/fs/aio-max-nr"),
    ("Operation not permitted", "a container may forbid it: use ioengine=psync or libaio"),
    ("No space left", NO_ROOM),
)
