"""Ranking the targets of one run, by the standings from which comparisons are made.

So a figure has one verdict wherever it is shown.
"""

from replayer.analysis import read_distributions
from replayer.measure import RunRecord, Summary, latencies_of
from replayer.report.comparison import Standing, Unranked
from replayer.report.document import Place, Ranked
from replayer.report.standings import Entrant, find_standings

__all__ = ["rank"]


def rank(record: RunRecord, summary: Summary) -> tuple[tuple[Ranked, ...], tuple[Unranked, ...]]:
    """Return each figure that at least two targets of a run have, transactions first.

    Returns:
        Those that are ranked, and for which figures targets have too few samples to be ranked.
    """
    if len(summary.targets) == 1:
        return (), ()
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
    ranked: list[Ranked] = []
    unranked: list[Unranked] = []
    for found in find_standings(entrants):
        if found.kind == "all transactions":
            continue
        if isinstance(found, Unranked):
            unranked.append(found)
            continue
        ranked.append(
            Ranked(
                subject=found.subject,
                kind=found.kind,
                figure=found.figure,
                unit=found.unit,
                better=found.better,
                places=tuple(map(_place, found.standings)),
            )
        )
    return tuple(ranked), tuple(unranked)


def _place(standing: Standing) -> Place:
    return Place(
        target=standing.label,
        value=standing.value,
        ratio=standing.ratio,
        low=standing.low,
        high=standing.high,
        claim=standing.claim,
    )
