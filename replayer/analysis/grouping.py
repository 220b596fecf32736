"""Groups of times put in words: which of them are likely the client's cache.

The groups themselves are found next door (``modes``); here the run's targets say what lies behind
the slow one.
"""

from collections.abc import Iterable, Iterator

from replayer.analysis.finding import Modes
from replayer.analysis.modes import Split, find_split
from replayer.analysis.works import Work
from replayer.ops import STORING, names_where

__all__ = ["find_modes"]

MEMORY_NS = 20_000  # chosen: a call that the client's memory answers takes at most that long
CACHED_OPS = names_where(lambda op: "cached" in op.flags)
BEHIND = {"server": "the server", "device": "the device", "daemon": "the daemon"}


def find_modes(works: Iterable[Work]) -> Iterator[Modes]:
    """Yield the work whose times form two groups."""
    for work in works:
        split = find_split(work.histogram)
        if split is not None:
            yield Modes(
                target=work.target.name,
                subject=work.subject,
                kind=work.kind,
                transaction=work.transaction,
                fast_ns=split.fast_ns,
                slow_ns=split.slow_ns,
                gap_ns=split.gap_ns,
                fast_share=split.fast_share,
                reading=_reading(work, split),
            )


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
