"""What could not be looked for, since there are too few data: said instead of guessed.

Each search has a least number of intervals or samples, and says nothing below it. Here that silence
is put into words, so that it is not taken for a finding.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from replayer.analysis import attribution, beginnings, drift, modes, steps
from replayer.analysis.series import Series
from replayer.measure import RunRecord

__all__ = ["find_shortages"]

MOST_NAMED = 4  # chosen: of subjects in one sentence

_OVER_ALL = (("cliffs and other steps", steps.FEWEST), ("drift", drift.SHORTEST))
_IN_A_ROUND = (("slow begins", beginnings.FEWEST_LATER + 1),)
_SAMPLED = (
    ("two groups of times", 2 * modes.LEAST_SAMPLES),
    ("outliers and what made the slowest slow", attribution.FEWEST),
)


def find_shortages(record: RunRecord, series: Sequence[Series]) -> Iterator[str]:
    """Yield a sentence for each number of data that searches need and subjects do not have."""
    names = {target.index: target.name for target in record.run.targets}
    subjects = {_name(one, names): one for one in _subjects(series) if one.counts.size}
    if not subjects:
        yield "not enough data to look for anything: nothing was measured"
        return
    intervals = {name: one.counts.size for name, one in subjects.items()}
    longest = {name: int(np.bincount(one.rounds).max()) for name, one in subjects.items()}
    samples = {name: int(one.counts.sum()) for name, one in subjects.items()}
    yield from _sentences(_OVER_ALL, intervals, "intervals with samples")
    yield from _sentences(_IN_A_ROUND, longest, "intervals in a round")
    yield from _sentences(_SAMPLED, samples, "samples")


def _subjects(series: Sequence[Series]) -> Iterator[Series]:
    """Yield the transactions; of a target without any, its ops."""
    led = {one.target for one in series if one.kind == "transaction"}
    yield from (one for one in series if one.kind == "transaction" or one.target not in led)


def _name(series: Series, names: Mapping[int, str]) -> str:
    target = names[series.target]
    return series.subject if len(names) == 1 else f"{series.subject} on {target}"


def _sentences(
    searches: Sequence[tuple[str, int]], counts: Mapping[str, int], unit: str
) -> Iterator[str]:
    """Yield a sentence for each set of subjects that lack data, with the searches it is for."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for search, needed in searches:
        short = tuple(name for name, count in counts.items() if count < needed)
        if short:
            lacking.setdefault(short, []).append(f"{search} ({needed} {unit})")
    for short, what in lacking.items():
        named = ", ".join(f"{name} has {counts[name]:,}" for name in short[:MOST_NAMED])
        more = f" and {len(short) - MOST_NAMED} more have too few" * (len(short) > MOST_NAMED)
        yield f"not enough data to look for {', '.join(what)}: {named}{more}"
