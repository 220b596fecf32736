"""What a page is made from: a run's document with its distributions, drawn from its record.

Reads records and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replayer.analysis import Distribution, Subject, read_distributions
from replayer.measure import Histogram, Of, RunRecord, samples_of
from replayer.report.composition import compose
from replayer.report.document import Document

__all__ = ["Material", "collect_material", "together"]


@dataclass(frozen=True, eq=False)
class Material:
    """One run.

    Attributes:
        record: The record.
        document: Its report.
        distributions: By subject, in time.
    """

    record: RunRecord
    document: Document
    distributions: dict[Subject, Distribution]

    @property
    def transactions(self) -> list[str]:
        """Names of the transactions, as the summary has them."""
        return list(
            dict.fromkeys(
                found.name
                for target in self.document.summary.targets
                for found in target.overall.transactions
            )
        )

    def histogram(self, target: int, transaction: str) -> Histogram:
        """Return the latencies of a transaction on a target, exactly as recorded."""
        return samples_of(self.record, Of(target, transaction, "transaction"))

    def whole(self, target: int) -> Distribution | None:
        """Return everything that a user waits for on a target: transactions, else ops."""
        for kind in ("transaction", "op"):
            own = [
                found
                for subject, found in self.distributions.items()
                if subject[:2] == (target, kind)
            ]
            if own:
                return together(own)
        return None


def collect_material(record: RunRecord) -> Material:
    """Work out everything that a page shows of a run."""
    return Material(record, compose(record), read_distributions(record))


def together(parts: Sequence[Distribution]) -> Distribution:
    """Add distributions of the same slots."""
    bins = np.unique(np.concatenate([part.bins_ns for part in parts]))
    table = np.zeros((parts[0].table.shape[0], bins.size))
    for part in parts:
        table[:, np.searchsorted(bins, part.bins_ns)] += part.table
    own_s = np.maximum.reduce([part.own_s for part in parts])
    return Distribution(parts[0].slots, own_s, bins, table)
