"""What may be claimed of a figure on two sides: one rule, for rankings, comparisons and studies.

A difference is claimed where the 95 % interval of the ratio leaves out 1, the rounds of both lie
apart, and both have samples, seconds and rounds enough. With fewer rounds the interval must also
stay clear of what another run might show. With fewer samples or seconds nothing is said. The more
contenders a figure ranks, and the more often a run may end early, the wider its intervals are.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist

import numpy as np

from replayer.analysis.resampling import (
    LEAST_SLOTS,
    Draw,
    Interval,
    Resampled,
    ratio_interval,
)
from replayer.report.document import Claim, Unranked

CLAIM_ROUNDS = 3
"""Chosen: with two rounds, chance alone keeps those of two equal targets apart 1 time in 3."""
FEW_ROUNDS_MARGIN = 1.25
"""Chosen: another run on a shared mount may well differ by a quarter."""
CLAIM_SAMPLES = 30
"""Chosen: below it one slow call more or less moves a median, and a rate, by some per cent."""
APART_CHANCE = 0.1
"""That chance lays the rounds of equal targets so far apart: three and three that do not overlap.
Not less, as the interval is the stricter condition with more rounds (chosen)."""
MOST_TOLD = 5  # chosen: names that are still read
CLAIM_BEYOND = 5
"""Chosen: so many samples lie above a percentile of which something is claimed."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a figure rests on: its value in each round with samples enough, and how many succeeded.

    ``place`` is its column in what was resampled; that is None where nothing can be drawn.
    ``looks`` is how often its run could have ended by what was measured until then.
    """

    rounds: Sequence[float]
    samples: int
    resampled: Resampled | None
    place: int = 0
    looks: int = 1
    draw: Draw = field(default_factory=lambda: Draw(0))


def has_samples(evidence: Evidence, percent: float | None) -> bool:
    """Whether there are samples enough to rank by a percentile, or by a rate or a mean (None)."""
    return evidence.samples >= samples_to_claim(percent) and bool(evidence.rounds)


def judge_difference(
    own: Evidence, best: Evidence, percent: float | None, ratio: float, contenders: int
) -> tuple[Claim, Interval | None]:
    """Say whether what was measured shows a difference from the best, and how sure the ratio is.

    ``percent`` is None of a rate or a mean. ``contenders`` are ranked, with these two.
    """
    fewest = min(len(own.rounds), len(best.rounds))
    if not (has_samples(own, percent) and has_samples(best, percent)):
        return "too few samples", None
    if own.resampled is None or best.resampled is None:
        return "too few seconds", None
    tries = comb(contenders, 2) * max(own.looks, best.looks)
    interval = ratio_interval(own.resampled, best.resampled, own.place, ratio, tries)
    if interval is None:
        return "too few seconds", None
    margin = 1.0 if fewest >= CLAIM_ROUNDS else FEW_ROUNDS_MARGIN
    beyond = interval.low > margin or interval.high < 1 / margin
    is_pair = own.draw.paired and own.draw == best.draw
    is_pair = is_pair and len(own.rounds) == len(best.rounds)  # else some had too few samples
    apart = lie_apart_in_pairs if is_pair else lie_apart
    if not (beyond and apart(own.rounds, best.rounds)):
        return "no difference shown", interval
    return ("differs" if fewest >= CLAIM_ROUNDS else "differs, few rounds"), interval


def lie_apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether rounds lie further apart than chance would have it: the test of Mann and Whitney.

    Fewer than three of each must not overlap at all: no test would ever tell them apart.
    """
    own, others = np.array(one)[:, None], np.array(other)
    above = int(np.count_nonzero(own >= others))  # ties count against a difference
    below = int(np.count_nonzero(own <= others))
    return min(above, below) <= _most_reversed(*sorted((own.size, others.size)))


def lie_apart_in_pairs(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether rounds that were measured at the same time differ the same way: the sign test.

    With fewer than five all must: no test would ever tell them apart.
    """
    pairs = list(zip(one, other, strict=True))
    above = sum(own >= beside for own, beside in pairs)  # ties count against a difference
    below = sum(own <= beside for own, beside in pairs)
    chances = [comb(len(pairs), each) / 2 ** len(pairs) for each in range(len(pairs))]
    most = [each for each in range(len(pairs)) if 2 * sum(chances[: each + 1]) <= APART_CHANCE]
    return min(above, below) <= max(most, default=0)


@lru_cache
def _most_reversed(fewer: int, more: int) -> int:
    """Return how many pairs of rounds may lie the other way round: of equal targets so few seldom.

    The chance to both sides is at most ``APART_CHANCE``. The number of orders with so many is a
    coefficient of the Gaussian binomial; beyond 20 rounds each the normal distribution is close
    (Mann and Whitney 1947, 'On a test of whether one of two random variables is stochastically
    larger than the other').
    """
    if fewer > _EXACT:
        spread = sqrt(fewer * more * (fewer + more + 1) / 12)
        return int(fewer * more / 2 - _NORMAL * spread - 0.5)
    orders = [1] + [0] * (fewer * more)
    for step in range(1, fewer + 1):
        for place in range(fewer * more, more + step - 1, -1):
            orders[place] -= orders[place - more - step]
        for place in range(step, fewer * more + 1):
            orders[place] += orders[place - step]
    most, seen = comb(fewer + more, fewer) * APART_CHANCE / 2, 0
    for found, count in enumerate(orders):
        seen += count
        if seen > most:
            return max(found - 1, 0)
    return 0


_EXACT = 20
_NORMAL = NormalDist().inv_cdf(1 - APART_CHANCE / 2)


def claim_notes(rounds: int, claims: AbstractSet[Claim]) -> Iterator[str]:
    """Yield what the claims of a ranking are worth that rests on so many rounds."""
    apart = (
        f"both have {_ENOUGH}, its rounds lie apart from those of the best (three and three must "
        "not overlap), and the 95 % interval of the ratio"
    )
    if "too few seconds" in claims:
        yield (
            f"too few seconds: a difference needs samples in {LEAST_SLOTS} seconds or more on both "
            "sides (measure longer)"
        )
    if "no ratio to 0" in claims:
        yield "no ratio to 0: the best value is 0, and nothing is a multiple of 0"
    if claims <= {"best", "too few seconds", "no ratio to 0"}:
        return
    if rounds >= CLAIM_ROUNDS or "differs" in claims:
        yield (
            f"differs: {apart} leaves out 1. If all targets were equal, a figure would wrongly "
            "say 'differs' at most 1 time in 20."
        )
    if rounds < CLAIM_ROUNDS or "differs, few rounds" in claims:
        yield (
            f"differs, few rounds: {apart} lies beyond \N{MULTIPLICATION SIGN}"
            f"{FEW_ROUNDS_MARGIN:g}. Fewer than {CLAIM_ROUNDS} rounds hardly show how much rounds "
            f"differ (use --rounds {CLAIM_ROUNDS} or more)"
        )


def say_unranked(unranked: Sequence[Unranked]) -> Iterator[str]:
    """Yield in one sentence which figures are not ranked, and where samples are missing."""
    subjects: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for item in unranked:
        subjects.setdefault((item.figure, item.labels), []).append(item.subject)
    figures: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (figure, labels), of in subjects.items():
        figures.setdefault((tuple(of), labels), []).append(figure)
    told = [
        f"{enumerated(sorted(which))} of {enumerated(of)} on {enumerated(labels)}"
        for (of, labels), which in figures.items()
    ]
    if told:
        yield f"not ranked, as {_ENOUGH} must have succeeded: {'; '.join(told)}"


def enumerated(words: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``; of many the first ones."""
    shown, more = [*words[:MOST_TOLD]], len(words) - MOST_TOLD
    last = f"{more} more" if more > 0 else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last


def samples_to_claim(percent: float | None) -> int:
    """Return how many samples a claim about a percentile, or a rate (None), needs on each side."""
    beyond = 0.0 if percent is None else CLAIM_BEYOND / (1 - percent / 100)
    return max(CLAIM_SAMPLES, round(beyond))


_ENOUGH = (
    f"{CLAIM_SAMPLES} samples or more (for p95 {samples_to_claim(95.0)}, for p99 "
    f"{samples_to_claim(99.0)})"
)
