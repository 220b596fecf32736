"""Ranking the targets of one run, by the standings from which comparisons are made.

So a figure has one verdict wherever it is shown.
"""

from collections.abc import Iterator

from replayer.analysis import read_distributions
from replayer.measure import RunRecord, Summary, latencies_of
from replayer.report.comparison import Standing
from replayer.report.document import Place, Ranked
from replayer.report.standings import Entrant, find_standings

__all__ = ["rank"]


def rank(record: RunRecord, summary: Summary) -> Iterator[Ranked]:
    """Yield each figure that at least two targets of a run have, transactions first."""
    if len(summary.targets) == 1:
        return
    distributions = read_distributions(record)
    entrants = [
        Entrant(
            label=target.name,
            summary=target,
            latencies=latencies_of(record, target.index),
            distributions=distributions,
            seed=0,
            order=record.run.load.order,
        )
        for target in summary.targets
    ]
    for found in find_standings(entrants):
        if found.kind != "all transactions":
            yield Ranked(
                subject=found.subject,
                kind=found.kind,
                figure=found.figure,
                unit=found.unit,
                better=found.better,
                places=tuple(map(_place, found.standings)),
            )


def _place(standing: Standing) -> Place:
    return Place(
        target=standing.label,
        value=standing.value,
        ratio=standing.ratio,
        low=standing.low,
        high=standing.high,
        claim=standing.claim,
    )
