"""Whether the slowest transactions were slow between their calls: then it was the client's doing.

The engine does next to nothing between two calls of a plan, so whoever loses milliseconds there has
waited for a CPU. Few such waits make a high percentile though they are a small share of all time.
"""

from collections.abc import Iterable, Iterator

from replayer.analysis.attribution import FEWEST_P99
from replayer.analysis.finding import Between
from replayer.analysis.planned import steps_by_transaction
from replayer.analysis.series import SERVICE
from replayer.analysis.works import Work
from replayer.measure import Of, RunRecord, samples_of

__all__ = ["find_between"]

MARGIN = 4  # chosen: a transaction may make more calls than others, hardly as many times as many
_PAUSES = frozenset({"think", "replay", "choose"})
"""Steps that pass time between calls, or of which a few make many more calls than most."""


def find_between(record: RunRecord, works: Iterable[Work]) -> Iterator[Between]:
    """Yield the transactions whose p99 is more than their calls can have taken.

    Only of plans whose steps leave no time between calls, with 1,000 samples at least.
    """
    busy = _without_pauses(record)
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


def _without_pauses(record: RunRecord) -> frozenset[str]:
    return frozenset(
        name
        for name, steps in steps_by_transaction(record).items()
        if _PAUSES.isdisjoint(str(step.get("do")) for step in steps)
    )
