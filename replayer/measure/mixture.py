"""Several distributions as one, each with a given share: how long the transactions of a mix took.

Pure. With the shares that the distributions have by their counts, a percentile is that of all
samples together; with other shares it is what it would be if they came as often as that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replayer.measure.histogram import Histogram
from replayer.measure.summary import samples_needed

__all__ = ["Mixture"]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Distributions and the share of each; empty ones leave theirs to the others.

    Attributes:
        parts: The distributions.
        shares: As long as ``parts``, above 0; they need not add up to 1.
    """

    parts: Sequence[Histogram]
    shares: Sequence[float]

    @property
    def count(self) -> int:
        """How many equally weighted samples tell as much: Kish, 'Survey Sampling' (1965)."""
        found = self._filled()
        spread = sum(share**2 / part.count for part, share in found)
        return round(sum(share for _, share in found) ** 2 / spread) if found else 0

    def percentile(self, percent: float) -> int | None:
        """Return the value that so many of the mix do not exceed; None: too few samples."""
        found = self._filled()
        if not found or self.count < samples_needed(percent):
            return None
        values = np.concatenate([part.layout.highest(part.indices) for part, _ in found])
        weights = np.concatenate([share * part.counts / part.count for part, share in found])
        order = np.argsort(values, kind="stable")
        sums = np.cumsum(weights[order])
        # As in a histogram, one part in 10^12 is taken off, so that a float's last bit decides not.
        rank = percent / 100 * float(sums[-1]) * (1 - 1e-12)
        return int(values[order][min(int(np.searchsorted(sums, rank)), order.size - 1)])

    def _filled(self) -> list[tuple[Histogram, float]]:
        pairs = zip(self.parts, self.shares, strict=True)
        return [(part, share) for part, share in pairs if part.count]
