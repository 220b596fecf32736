"""Groups of times put in words: which of them are likely the client's cache.

The groups themselves are found next door (``modes``); here the run's targets say what lies behind
the slow one.
"""

from collections.abc import Iterator, Sequence

from replayer.analysis.changes import worth
from replayer.analysis.finding import Modes
from replayer.analysis.modes import Split, find_split
from replayer.analysis.series import LATENCY, Series
from replayer.measure import Of, RunRecord, Target, samples_of

__all__ = ["find_modes"]

MEMORY_NS = 20_000  # chosen: a call that the client's memory answers takes at most that long
CACHED_OPS = frozenset(
    {"read", "pread", "mmap_read", "sendfile", "stat", "lstat", "access", "open", "getdents"}
)
BEHIND = {"server": "the server", "device": "the device", "daemon": "the daemon"}


def find_modes(record: RunRecord, series: Sequence[Series]) -> Iterator[Modes]:
    """Yield the subjects whose times form two groups."""
    targets = {target.index: target for target in record.run.targets}
    for one in worth(series):
        transaction = one.kind == "transaction"
        op = LATENCY if transaction else one.subject
        of = Of(one.target, one.subject if transaction else None, op)
        split = find_split(samples_of(record, of))
        if split is not None:
            target = targets[one.target]
            yield Modes(
                target=target.name,
                subject=one.subject,
                kind=one.kind,
                fast_ns=split.fast_ns,
                slow_ns=split.slow_ns,
                gap_ns=split.gap_ns,
                fast_share=split.fast_share,
                reading=_reading(target, op, split),
            )


def _reading(target: Target, op: str, split: Split) -> str | None:
    """Say what the groups usually are, where the op can be answered from a cache."""
    behind = BEHIND.get(target.guarantee.fsync)
    if behind is None or op not in CACHED_OPS:
        return None
    if split.fast_ns <= MEMORY_NS < split.slow_ns:
        return f"as fast as this client's memory, and as slow as {behind}"
    return None
