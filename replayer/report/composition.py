"""Composing the document of a run from its folder: summarise, judge, rank, analyse, pick.

Reads nothing but the record; prints nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from replayer.analysis.composition import analyse
from replayer.analysis.works import steps_by_transaction
from replayer.measure.health import RunWarning
from replayer.measure.mix import has_think_time
from replayer.measure.pacing import pacing_warnings
from replayer.measure.record import Event, RunRecord
from replayer.measure.run import Headline
from replayer.measure.summarise import summarise
from replayer.measure.summary import Summary
from replayer.ops import TO_THE_END
from replayer.report.answer import answer
from replayer.report.decision import say_ended
from replayer.report.document import Document, Incident
from replayer.report.duet import with_duet
from replayer.report.findings import cliff_warnings
from replayer.report.loss import say_losses
from replayer.report.ranking import ALL, RunRanking, rank, rank_pairs
from replayer.report.replay import pause_warnings, schedule_warnings
from replayer.report.server import find_server_requests
from replayer.verdict.judgement import Verdict, judge
from replayer.verdict.threshold import parse_threshold

_MOST_INCIDENTS = 10  # of each kind and target: chosen, what a person reads


def compose(record: RunRecord) -> Document:
    """Compose the document of a run.

    Raises:
        ReplayerError: A threshold in run.json is not one.
    """
    record = with_duet(record)
    run = record.run
    summary = summarise(record)
    ranking, verdict = rank(record, summary), judge(record, summary)
    pairs = rank_pairs(record, summary)
    analysis = analyse(record, summary)
    thresholds = (parse_threshold(each.text, each.source) for each in run.thresholds)
    return Document.made_of(
        dict(run),
        verdict=verdict,
        answer=tuple(answer_of(record, summary, verdict, ranking, pairs)),
        folder=str(record.folder),
        status=record.status,
        think_time=has_think_time(record.plan),
        ended_by=say_ended(run, pairs or [ranking], proves=not verdict.reasons),
        warnings=(
            *pause_warnings(run.replay, summary.targets),
            *run.warnings,
            *pacing_warnings(run.load, summary, run.health),
            *schedule_warnings(run.replay, summary),
            *_recorded_warnings(record),
            *cliff_warnings(analysis.steps, thresholds),
        ),
        lost=record.losses,
        summary=summary,
        pooled=ranking.pooled,
        finds_ends=tuple(_finds_ends(record, summary)),
        ranking=ranking.figures,
        unranked=ranking.unranked,
        analysis=analysis,
        server=tuple(find_server_requests(record, summary)),
        incidents=tuple(_chosen(record)),
    )


def answer_of(
    record: RunRecord,
    summary: Summary,
    verdict: Verdict,
    ranking: RunRanking,
    pairs: Sequence[RunRanking],
) -> Iterator[str]:
    """Yield what a run says: which target to use or, with a neighbour, what is lost beside it."""
    run = record.run
    if run.neighbour is not None and not verdict.reasons:
        yield from say_losses(run.neighbour, pairs, [target.name for target in run.targets])
    else:
        yield from answer(ranking, verdict, summary, run)


def headlines_of(document: Document) -> tuple[Headline, ...]:
    """Return what users of each target waited, in a figure or two."""
    if document.pooled:
        return tuple(
            Headline(target=each.target, what=ALL, p50_ns=each.p50_ns, p95_ns=each.p95_ns)
            for each in document.pooled
        )
    return tuple(
        Headline(
            target=target.name,
            what=target.overall.transactions[0].name,
            p50_ns=target.overall.transactions[0].latency.p50_ns,
            p95_ns=target.overall.transactions[0].latency.p95_ns,
        )
        for target in document.summary.targets
        if target.overall.transactions
    )


def _finds_ends(record: RunRecord, summary: Summary) -> Iterator[str]:
    """Yield the ops that were measured and copy or send a file until a call finds its end."""
    measured = {
        f"{found.name}/{op.op}"
        for target in summary.targets
        for found in target.overall.transactions
        for op in found.ops
    }
    for name, steps in steps_by_transaction(record).items():
        for op in sorted(TO_THE_END):
            if f"{name}/{op}" in measured and any(step.get("op") == op for step in steps):
                yield f"{name}/{op}"


def _recorded_warnings(record: RunRecord) -> Iterator[RunWarning]:
    """Yield warnings that stand in events.jsonl only: a killed run has no others.

    Once a run has ended, run.json names lost workers in other words.
    """
    known = {warning.message for warning in record.run.warnings}
    for event in record.events:
        message, hint = event.get("message"), event.get("hint", "")
        if record.run.ended and "client" in event and "what" in event:
            continue
        if event.get("kind") == "warning" and isinstance(message, str) and message not in known:
            known.add(message)
            yield RunWarning(kind="other", message=message, hint=str(hint))


def _chosen(record: RunRecord) -> Iterator[Incident]:
    """Yield the first errors and stalls, then the slowest calls, of each target."""
    found = [incident for event in record.events if (incident := _incident(event, record))]
    slow = [incident for incident in found if incident.kind == "slow"]
    slow.sort(key=lambda incident: incident.time_ns or 0, reverse=True)
    taken: Counter[tuple[str, str]] = Counter()
    for incident in (*(item for item in found if item.kind != "slow"), *slow):
        taken[incident.kind, incident.target] += 1
        if taken[incident.kind, incident.target] <= _MOST_INCIDENTS:
            yield incident


def _incident(event: Event, record: RunRecord) -> Incident | None:
    """Return an event as an incident; None for other kinds and for lines of another make."""
    kind, target = event.get("kind"), event.get("target")
    names = {found.index: found.name for found in record.run.targets}
    if kind not in _TIMES or target not in names:
        return None
    time_ns = event.get(_TIMES[kind])
    try:
        return Incident(
            kind=kind,
            at_s=event.get("t_s", 0.0),
            target=names[target],
            transaction=event.get("transaction"),
            op=event.get("op", "?"),
            path=event.get("path", "?"),
            outcome=event.get("outcome"),
            time_ns=time_ns,
        )
    except ValueError:
        return None


_TIMES = {"error": "", "slow": "service_ns", "stall": "age_ns", "abandoned": "age_ns"}
