"""Adding up what workers measured, second by second and without loss, on the master's clock.

Histograms are added bucket by bucket, so that a sum holds what one engine would have counted. A
second is handed on when every living worker's results reach beyond it; what comes later still is
handed on as well, as an interval of its own. A worker whose users rest tells no more seconds: they
count as users all the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from replayer.run.measured import MadeInterval, MadeRow, MeasuredInterval, MeasuredRow, Phase

__all__ = ["Merger"]

NS_PER_S = 1_000_000_000
SLACK_NS = 100_000_000
"""Chosen: workers begin a segment within milliseconds, and cut seconds from then on."""

NOBODY: Mapping[int, int] = {}

PhaseKey = tuple[int, int, Phase]
"""Target, round and phase."""
Key = tuple[PhaseKey, str, str, str, bool]


@dataclass
class _Second:
    """One second of one phase."""

    start_ns: int
    end_ns: int
    users: dict[int, int] = field(default_factory=dict)
    rows: dict[Key, MadeRow] = field(default_factory=dict)

    def take(self, worker: int, interval: MeasuredInterval) -> None:
        self.start_ns = min(self.start_ns, interval.start_ns)
        self.end_ns = max(self.end_ns, interval.end_ns)
        self.users[worker] = interval.users
        for row in interval.rows:
            key = (phase_of(row), row.transaction, row.op, row.outcome, row.expected)
            known = self.rows.get(key)
            if known is None:
                self.rows[key] = _copied(row, row.bytes)
            else:
                known.histogram.add(row.histogram)
                self.rows[key] = _with_bytes(known, known.bytes + row.bytes)

    def whole(self, resting: Mapping[int, int]) -> MadeInterval:
        users = sum({**resting, **self.users}.values())
        return MadeInterval(self.start_ns, self.end_ns, users, tuple(self.rows.values()))


@dataclass
class Merger:
    """The seconds that are not complete yet."""

    takers: list[Callable[[MeasuredInterval], None]] = field(default_factory=list)
    _anchors: dict[PhaseKey, int] = field(default_factory=dict)
    _open: dict[tuple[PhaseKey, int], _Second] = field(default_factory=dict)
    _latest: PhaseKey | None = None
    _reached: dict[PhaseKey, int] = field(default_factory=dict)

    def add(self, worker: int, interval: MeasuredInterval) -> None:
        """Add what a worker measured; times are the master's already."""
        phase = phase_of(interval.rows[0]) if interval.rows else self._latest
        if phase is None:
            return  # nothing has run yet, and nothing did in this interval
        self._latest = phase
        anchor_ns = self._anchors.setdefault(phase, interval.start_ns)
        middle_ns = (interval.start_ns + interval.end_ns) // 2
        place = (phase, (middle_ns - anchor_ns) // NS_PER_S)
        second = self._open.get(place)
        if second is None:
            second = self._open[place] = _Second(interval.start_ns, interval.end_ns)
        second.take(worker, interval)

    def hand_on(self, upto_ns: int, resting: Mapping[int, int] = NOBODY) -> None:
        """Hand on the seconds that end by then; ``resting`` are the users at rest, by worker."""
        for place in self._done(upto_ns + SLACK_NS):
            self._hand(place, resting)

    def hand_on_all(self) -> None:
        """Hand on what is left."""
        for place in sorted(self._open, key=lambda place: self._open[place].start_ns):
            self._hand(place, NOBODY)

    def _done(self, upto_ns: int) -> Iterator[tuple[PhaseKey, int]]:
        found = [
            (second.start_ns, place)
            for place, second in self._open.items()
            if max(second.end_ns, self._anchors[place[0]] + (place[1] + 1) * NS_PER_S) <= upto_ns
        ]
        yield from (place for _, place in sorted(found))

    def _hand(self, place: tuple[PhaseKey, int], resting: Mapping[int, int]) -> None:
        """Hand a second on, cut so that it follows the one before: reports cut time at its ends."""
        whole = self._open.pop(place).whole(resting)
        reached_ns = self._reached.get(place[0], whole.start_ns)
        if whole.start_ns < reached_ns < whole.end_ns:
            whole = replace(whole, start_ns=reached_ns)
        self._reached[place[0]] = max(reached_ns, whole.end_ns)
        for taker in self.takers:
            taker(whole)


def phase_of(row: MeasuredRow) -> PhaseKey:
    """Return the phase that a row belongs to."""
    return row.target, row.round, row.phase


def _copied(row: MeasuredRow, moved: int) -> MadeRow:
    return MadeRow(
        row.target,
        row.round,
        row.phase,
        row.transaction,
        row.op,
        row.outcome,
        row.expected,
        moved,
        row.histogram.copy(),
    )


def _with_bytes(row: MadeRow, moved: int) -> MadeRow:
    return MadeRow(**{**vars(row), "bytes": moved})
