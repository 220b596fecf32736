"""The neighbour of a run: another load on the same targets, while one of two settings is measured.

Each turn beside it is a process of its own, a run of this program. The files of the neighbour are
laid out on each target by a first, short run, before anything is measured. Later turns take them
over. What it did stands in run folders below the measured run's, and is added up at the end.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import gevent

from replayer._native import Histogram
from replayer.errors import EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE, ReplayerError
from replayer.measure.neighbour import Done, Neighbour, Pair, why_not_as_asked
from replayer.measure.record import RunRecord, read_events
from replayer.measure.summarise import latencies_of, summarise
from replayer.measure.summary import samples_needed
from replayer.run.interruption import Interruption, Level
from replayer.run.neighbour import CheckedNeighbour
from replayer.run.own_run import OwnRun, kept_of, place_words, remove_kept, start_run
from replayer.run.progress import ProgressDisplay
from replayer.run.schedule import ScheduledSegment
from replayer.run.targets import NamedTarget

POLL_S = 0.05
FOREVER_S = 7 * 24 * 3600  # chosen: longer than any turn
TRIED_S = 1  # chosen: enough to lay out, and to see whether it runs
P95 = 95.0


class NeighbourError(ReplayerError):
    """The neighbour did not run: what was measured beside it says nothing."""

    def __init__(self, message: str, code: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.exit_code = code


@dataclass(frozen=True)
class NeighbourTerms:
    """What the processes of a neighbour need to know of the run beside them."""

    folder: Path
    """Where its own run folders are made."""
    progress: ProgressDisplay
    interruption: Interruption
    stop_timeout_s: float


@dataclass
class _Setting:
    """What is known of a neighbour in one setting."""

    index: int
    target: NamedTarget
    pair: Pair
    kept: str | None = None
    """Its own folders on the target, laid out."""
    records: list[RunRecord] = field(default_factory=list)


@dataclass(frozen=True)
class _Turn:
    """A run that is under way."""

    run: OwnRun
    setting: _Setting


class NeighbourProcess:
    """Runs beside each second setting of a run."""

    def __init__(
        self, asked: CheckedNeighbour, targets: tuple[NamedTarget, ...], terms: NeighbourTerms
    ) -> None:
        self._asked = asked
        self._terms = terms
        self._settings = [
            _Setting(index, target, Pair(alone=index - 1, beside=index))
            for index, target in enumerate(targets)
            if target.is_beside
        ]
        self._turn: _Turn | None = None
        self.left: tuple[str, ...] = ()
        """What could not be removed, each in a line."""

    @property
    def facts(self) -> Neighbour:
        """What the run's record says of it by now."""
        order = self._asked.order
        return Neighbour(
            name=order.name,
            scenario=order.scenario,
            rate_per_s=self._asked.rate_per_s,
            pairs=tuple(setting.pair for setting in self._settings),
            done=tuple(
                _add_up(setting.index, setting.records)
                for setting in self._settings
                if setting.records
            ),
        )

    def why_not_as_asked(self, target: int) -> str | None:
        """Say why it was not the one that was asked for in the last turn of a setting, if so."""
        setting = next((each for each in self._settings if each.index == target), None)
        if setting is None:
            return None
        if not setting.records:
            return "it had no turn"
        return why_not_as_asked(_add_up(target, setting.records[-1:]))

    def lay_out(self) -> None:
        """Have its files laid out on each target, and see whether it runs there.

        Raises:
            NeighbourError: It does not.
            InterruptedRunError: The run shall end.
        """
        for setting in self._settings:
            with self._terms.progress.work(f"laying out {self._name} on {setting.target.name}"):
                turn = self._start(setting, "laid-out", TRIED_S)
                record = self._wait(turn)
            self._terms.interruption.check(f"laying out {self._name}")
            if record is None or not turn.run.counts(record):
                raise self._failure(turn)

    @contextmanager
    def beside(self, segment: ScheduledSegment) -> Iterator[None]:
        """Run beside a turn, if it is one of a second setting; it is measuring when that begins.

        Raises:
            NeighbourError: It did not run until the turn was over.
        """
        setting = next((each for each in self._settings if each.index == segment.target), None)
        if setting is None:
            yield
            return
        self._turn = turn = self._start(setting, f"round-{segment.round + 1}", FOREVER_S)
        try:
            self._wait_until_it_measures(turn)
            yield
            self.check()
        finally:
            self._turn = None
            self._end(turn)

    def check(self) -> None:
        """Raise if a neighbour that shall run does not.

        Raises:
            NeighbourError: It has ended.
        """
        if self._turn is not None and self._turn.run.process.poll() is not None:
            raise self._failure(self._turn)

    def remove(self) -> None:
        """Remove its files on the targets; Ctrl-C once more leaves them."""
        terms = self._terms
        left = remove_kept(
            (setting.kept for setting in self._settings),
            lambda: terms.interruption.abandons_removal(terms.progress.say),
        )
        self.left = () if left is None else (left,)

    @property
    def _name(self) -> str:
        return self._asked.order.name

    def _start(self, setting: _Setting, what: str, seconds: int) -> _Turn:
        """Start a run in a setting; ``what`` names its folder."""
        # By number: a name may hold what no file's name can.
        folder = self._terms.folder / f"{setting.index}-{what}"
        return _Turn(start_run(self._words(setting, seconds), folder), setting)

    def _words(self, setting: _Setting, seconds: int) -> list[str]:
        # Its own name for the target has no part in anything.
        written = ",".join(map(str, setting.target.paths))
        return [
            *("run", self._asked.order.scenario),
            *(word for change in self._asked.order.changes for word in ("--set", change)),
            *("-u", str(self._asked.users), "-t", f"{seconds}s", "--rounds", "1"),
            # The caches are the measured load's: nothing is dropped or read for the neighbour.
            *("--cache", "as-is", *place_words("neighbour", written, setting.kept)),
            *("-s", f"{self._terms.stop_timeout_s:g}"),
        ]

    def _wait_until_it_measures(self, turn: _Turn) -> None:
        with self._terms.progress.work(f"starting {self._name}"):
            while not _measures(turn.run.folder):
                self._terms.interruption.check(f"starting {self._name}")
                self.check()
                gevent.sleep(POLL_S)

    def _end(self, turn: _Turn) -> None:
        """End a turn, and keep what it did: it lays its files out anew."""
        if turn.run.process.poll() is None:
            turn.run.process.terminate()
        with self._terms.progress.work(f"ending {self._name}"):
            record = self._wait(turn)
        if record is not None:
            turn.setting.records.append(record)

    def _wait(self, turn: _Turn) -> RunRecord | None:
        """Wait until a process has ended, in its own bounded time; each Ctrl-C is handed on."""
        interruption = self._terms.interruption
        told = 0
        while turn.run.process.poll() is None:
            if interruption.presses > told:
                told = interruption.presses
                at_once = interruption.level is Level.AT_ONCE
                turn.run.process.send_signal(signal.SIGINT if at_once else signal.SIGTERM)
            gevent.sleep(POLL_S)
        record = turn.run.record
        if record is not None and turn.setting.kept is None:
            turn.setting.kept = kept_of(turn.setting.target, record)
        return record

    def _failure(self, turn: _Turn) -> NeighbourError:
        """Return why a process ended that should not have."""
        why, hint = turn.run.failure
        code = turn.run.process.returncode
        name = turn.setting.target.name
        known = code if code in {ReplayerError.exit_code, EXIT_ENVIRONMENT} else EXIT_INCONCLUSIVE
        why = why or f"it ended with exit code {code}"
        return NeighbourError(f"the neighbour of {name} did not run on: {why}", known, hint)


def _measures(folder: Path) -> bool:
    """Whether a run has begun to measure."""
    events, _ = read_events(folder / "events.jsonl")
    return any(
        event.get("kind") == "phase" and event.get("phase") == "measured" for event in events
    )


def _add_up(target: int, records: Sequence[RunRecord]) -> Done:
    """Return what was done in some turns of a setting."""
    found = [summarise(record).targets[0].overall for record in records]
    counted = [each for overall in found for each in overall.transactions]
    seconds = sum(overall.measured_s for overall in found)
    count = sum(each.count for each in counted)
    times = Histogram.merged(
        times for record in records for times in latencies_of(record, 0).values()
    )
    is_known = times.count >= samples_needed(P95)
    return Done(
        target=target,
        turns=len(records),
        seconds=seconds,
        transactions=count,
        errors=sum(each.errors for each in counted),
        unbegun=sum(overall.unbegun for overall in found),
        rate_per_s=count / seconds if seconds > 0 else None,
        p95_ns=times.percentile(P95) if is_known else None,
    )
