"""One kind of work (a transaction, or an op as one transaction makes it), and what its times show.

An op's calls in several transactions are no one kind: one opens files that are there, another makes
them, and of fio's jobs one may run with a queue of 32 and never beside the other. Groups and
outliers among such calls would tell of the transactions, not of the file system.

Two groups of times with a gap between them: what came from a cache, and what did not. The density
is taken on a logarithmic scale, smoothed, and searched for the deepest valley. The target's
guarantee says what lies behind the slow group.

Who made the slowest calls slow: histograms hold all calls; the events hold the slowest calls with
their paths. The engine does next to nothing between two calls of a plan. A transaction that loses
milliseconds there waited for a CPU. Such waits are rare, but they can make a high percentile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from replayer._native import Histogram
from replayer.analysis.finding import Between, Modes, Outliers, SlowPath, Tail, TailOp
from replayer.analysis.slots import LATENCY, SERVICE, TIMES, Kind
from replayer.analysis.steps import WORTH_SHARE
from replayer.measure.record import RunRecord
from replayer.measure.run import Target
from replayer.measure.summarise import OUTSIDE, Of, samples_of
from replayer.ops import STORING, names_where


def steps_by_transaction(record: RunRecord) -> dict[str, list[Mapping[str, Any]]]:
    """Return the steps of each transaction, however deep they lie; none of a plan of another kind.

    Whatever is a mapping counts as one: what reads them looks for keys that only steps have.
    """
    plan = record.plan or {}
    try:
        return {found["name"]: [*_mappings(found["steps"])] for found in plan["transactions"]}
    except (KeyError, TypeError, RecursionError):
        return {}


def steps_within(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the steps that lie in one, however deep: how often they are made is not known."""
    return [found for value in step.values() for found in _mappings(value)]


def _mappings(node: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(node, dict):
        yield node
    inside: Sequence[Any] = [*node.values()] if isinstance(node, dict) else node
    if isinstance(inside, list):
        for item in inside:
            yield from _mappings(item)


@dataclass(frozen=True, eq=False)
class Work:
    """One kind of work on one target: a transaction, or an op of one (None: of none).

    ``beside`` are the ops of the same transaction, ``histogram`` the times of what succeeded.
    """

    target: Target
    subject: str
    kind: Kind
    transaction: str | None
    beside: frozenset[str]
    histogram: Histogram


def find_works(record: RunRecord) -> Iterator[Work]:
    """Yield the transactions of each target, then the ops that take a part of its time.

    A job of fio with one kind of I/O is yielded once, as a transaction.
    """
    found = _by_transaction(record)
    for target in record.run.targets:
        own = {name: ops for (index, name), ops in found.items() if index == target.index}
        for name, ops in own.items():
            if LATENCY in ops:
                made = frozenset(ops) - TIMES
                yield Work(target, name, "transaction", None, made, ops[LATENCY])
        yield from _ops(record, target, own)


def _ops(
    record: RunRecord, target: Target, own: Mapping[str, Mapping[str, Histogram]]
) -> Iterator[Work]:
    spent = {
        (name, op): histogram.mean * histogram.count
        for name, ops in own.items()
        for op, histogram in ops.items()
        if op not in TIMES
    }
    worth = WORTH_SHARE * sum(spent.values())
    for (name, op), time_ns in spent.items():
        made = frozenset(own[name]) - TIMES
        whole = record.run.load.order == "in turn" and len(made) == 1
        if time_ns >= worth and not whole:
            transaction = None if name == OUTSIDE else name
            yield Work(target, op, "op", transaction, made, own[name][op])


def _by_transaction(record: RunRecord) -> Mapping[tuple[int, str], Mapping[str, Histogram]]:
    """Return the measured times of what succeeded, by target and transaction, and there by op."""
    parts: dict[tuple[int, str], dict[str, list[Histogram]]] = {}
    for key, histogram in sorted(record.log.histograms.items()):
        if key.segment.phase == "measured" and key.is_timed:
            ops = parts.setdefault((key.segment.target, key.transaction), {})
            ops.setdefault(key.op, []).append(histogram)
    return {
        place: {op: Histogram.merged(found) for op, found in ops.items()}
        for place, ops in parts.items()
    }


FEWEST = 100  # transactions: a p95 of fewer has too few above it; chosen
FEWEST_P99 = 1_000  # chosen
OUTLIER_FACTOR = 100.0  # chosen: an outlier takes 100 times the median
OUTLIER_SHARE = 0.02  # chosen: more calls than that are a group of their own (``find_modes``)
OUTLIER_TIME = 0.1  # chosen: outliers that take less than a tenth of the time do not matter
MOST_PATHS = 3  # chosen
FEWEST_OF_PATH = 3  # chosen: a path that is slow once or twice is chance


def find_outliers(works: Iterable[Work]) -> Iterator[Outliers]:
    """Yield the work in which few calls take much of the time."""
    for work in works:
        histogram = work.histogram
        if histogram.count < FEWEST:
            continue
        limit = OUTLIER_FACTOR * histogram.percentile(50)
        _, far = histogram.split(int(limit))
        share = _time(far) / max(_time(histogram), 1.0)
        few = 0 < far.count <= OUTLIER_SHARE * histogram.count
        if few and share >= OUTLIER_TIME:
            yield Outliers(
                target=work.target.name,
                subject=work.subject,
                kind=work.kind,
                transaction=work.transaction,
                limit_ns=limit,
                count=far.count,
                of=histogram.count,
                time_share=share,
                max_ns=histogram.max,
            )


def find_tails(record: RunRecord, works: Iterable[Work]) -> Iterator[Tail]:
    """Yield, for each transaction with samples enough, what made its slowest slow.

    A job of fio is no transaction that is made of calls: each of its I/Os is one, and a flush none.
    """
    if record.run.load.order == "in turn":
        return
    for work in works:
        if work.kind == "transaction" and work.histogram.count >= FEWEST:
            yield _tail(record, work)


def _tail(record: RunRecord, work: Work) -> Tail:
    latency, index, transaction = work.histogram, work.target.index, work.subject
    percentile: Literal["p95", "p99"] = "p99" if latency.count >= FEWEST_P99 else "p95"
    limit = latency.percentile(99 if percentile == "p99" else 95)
    slow = latency.split(limit)[1].count
    found = {
        op: samples_of(record, Of(index, transaction, op)).split(limit)[1].count
        for op in sorted(work.beside)
    }
    ops = [TailOp(op=op, calls=calls) for op, calls in found.items() if calls]
    return Tail(
        target=work.target.name,
        transaction=transaction,
        percentile=percentile,
        limit_ns=limit,
        slow=slow,
        ops=tuple(sorted(ops, key=lambda item: -item.calls)),
        explained=min(sum(found.values()) / slow, 1.0) if slow else 0.0,
        paths=tuple(_paths(record, index, transaction, limit)),
    )


def _paths(record: RunRecord, index: int, transaction: str, limit_ns: int) -> Iterator[SlowPath]:
    """Yield the paths that are among the kept slow calls above the limit more than once."""
    seen: dict[tuple[str, str], list[int]] = {}
    for event in record.events:
        time = event.get("service_ns")
        if (
            event.get("kind") == "slow"
            and event.get("target") == index
            and event.get("transaction") == transaction
            and isinstance(time, int)
            and time > limit_ns
        ):
            seen.setdefault((str(event.get("path")), str(event.get("op"))), []).append(time)
    often = [item for item in seen.items() if len(item[1]) >= FEWEST_OF_PATH]
    often.sort(key=lambda item: (-len(item[1]), -max(item[1])))
    for (path, op), times in often[:MOST_PATHS]:
        yield SlowPath(path=path, op=op, calls=len(times), max_ns=max(times))


def _time(histogram: Histogram) -> float:
    return histogram.mean * histogram.count


MARGIN = 4  # chosen: a transaction may make more calls than others, hardly as many times as many
_PAUSES = frozenset({"think", "replay", "choose"})
"""Steps that pass time between calls, or of which a few make many more calls than most."""


def find_between(record: RunRecord, works: Iterable[Work]) -> Iterator[Between]:
    """Yield the transactions whose p99 is more than their calls can have taken.

    Only of plans whose steps leave no time between calls, with 1,000 samples at least.
    """
    busy = {
        name
        for name, steps in steps_by_transaction(record).items()
        if _PAUSES.isdisjoint(str(step.get("do")) for step in steps)
    }
    for work in works:
        if work.kind == "transaction" and work.subject in busy:
            yield from _between(record, work)


def _between(record: RunRecord, work: Work) -> Iterator[Between]:
    place = (work.target.index, work.subject)
    service = samples_of(record, Of(*place, SERVICE))
    if service.count < FEWEST_P99:
        return
    ops = [samples_of(record, Of(*place, op)) for op in work.beside]
    most_ns = sum(-(-op.count // service.count) * op.max for op in ops)
    p99_ns = service.percentile(99)
    if most_ns and p99_ns > MARGIN * most_ns:
        yield Between(
            target=work.target.name, transaction=work.subject, p99_ns=p99_ns, calls_ns=most_ns
        )


Floats = NDArray[np.float64]

BINS_PER_OCTAVE = 8  # chosen: 9 % a bin
SMOOTH_BINS = 2.0  # chosen: standard deviation of the kernel, a quarter octave
LEAST_DISTANCE = 4.0  # chosen: between the two peaks; nearer ones are often sizes, not places
DEEPEST = 0.3  # chosen: the valley holds at most this part of the lower peak
LEAST_SHARE = 0.03  # chosen: of the smaller group
LEAST_SAMPLES = 50  # chosen: of the smaller group
CRITICAL = 8.0  # chosen: standard deviations between the lower peak and the valley


@dataclass(frozen=True)
class Split:
    """Two groups: the bottom of the valley, the median on each side, the share of the fast one."""

    gap_ns: float
    fast_ns: int
    slow_ns: int
    fast_share: float


def find_split(histogram: Histogram) -> Split | None:
    """Return the two groups of a histogram; None if it has one, or more samples are needed."""
    if histogram.count < 2 * LEAST_SAMPLES:
        return None
    values, counts = np.array(histogram.buckets(), np.float64).T
    bins = np.floor(np.log2(np.maximum(values, 1)) * BINS_PER_OCTAVE).astype(np.int64)
    low = int(bins.min())
    heights = np.bincount(bins - low, weights=counts).astype(np.float64)
    valley = _valley(_smoothed(heights))
    if valley is None:
        return None
    # The valley's middle bin belongs to the slow group.
    gap = 2.0 ** ((valley + low) / BINS_PER_OCTAVE)
    return _split(histogram, values, gap)


def _split(histogram: Histogram, values: Floats, gap: float) -> Split | None:
    parts = histogram.split(int(values[values < gap].max(initial=0)))
    counts = [part.count for part in parts]
    if min(counts) < max(LEAST_SAMPLES, LEAST_SHARE * histogram.count):
        return None
    middles = [part.percentile(50) for part in parts]
    if middles[1] < LEAST_DISTANCE * max(middles[0], 1):
        return None
    return Split(gap, middles[0], middles[1], counts[0] / histogram.count)


def _smoothed(heights: Floats) -> Floats:
    """Return the heights under a Gaussian kernel, with room for it on both sides kept out."""
    reach = np.arange(-4 * int(SMOOTH_BINS), 4 * int(SMOOTH_BINS) + 1)
    kernel = np.exp(-0.5 * (reach / SMOOTH_BINS) ** 2)
    padded = np.pad(heights, reach.size // 2)
    found: Floats = np.convolve(padded, kernel, mode="valid")
    return found


def _valley(heights: Floats) -> int | None:
    """Return the bottom of the valley between the two peaks that it parts most clearly."""
    before = np.maximum.accumulate(heights)
    after = np.maximum.accumulate(heights[::-1])[::-1]
    lower = np.minimum(before, after)
    deep = heights <= DEEPEST * lower
    certain = lower - heights >= CRITICAL * np.sqrt(np.maximum(lower + heights, 1.0))
    found = np.flatnonzero(deep & certain)
    if not found.size:
        return None
    # The most samples are told apart where the lower of the two peaks is highest.
    best = found[lower[found] >= lower[found].max()]
    bottom = best[heights[best] <= heights[best].min()]
    return int(bottom[bottom.size // 2])


MEMORY_NS = 20_000  # chosen: a call that the client's memory answers takes at most that long
CACHED_OPS = names_where(lambda op: "cached" in op.flags)
BEHIND = {"server": "the server", "device": "the device", "daemon": "the daemon"}


def find_modes(works: Iterable[Work]) -> Iterator[Modes]:
    """Yield the work whose times form two groups."""
    for work in works:
        split = find_split(work.histogram)
        if split is not None:
            found = {**vars(work), **vars(split), "target": work.target.name}
            yield Modes.made_of(found, reading=_reading(work, split))


def _reading(work: Work, split: Split) -> str | None:
    """Say what the groups usually are, where the op can be answered from a cache.

    An open of a transaction that writes may make its file, which no cache answers.
    """
    behind = BEHIND.get(work.target.guarantee.fsync)
    makes = work.subject == "open" and not work.beside.isdisjoint(STORING)
    if behind is None or work.subject not in CACHED_OPS or work.kind == "transaction" or makes:
        return None
    if split.fast_ns <= MEMORY_NS < split.slow_ns:
        return f"as fast as this client's memory, and as slow as {behind}"
    return None
