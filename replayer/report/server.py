"""What NFS mounts asked their servers, per transaction, and what mount options would save."""

from collections.abc import Iterator

from replayer.analysis.nfs_requests import find_asked
from replayer.measure.mountstats import RequestCounts, added_up
from replayer.measure.record import RunRecord
from replayer.measure.summary import Summary
from replayer.measure.units import format_count, format_number, format_share, format_time_ns
from replayer.report.document import RequestKind, ServerRequests
from replayer.report.style import Column, Style, lay_out_grid

_NAMES = frozenset({"GETATTR", "ACCESS", "LOOKUP"})
"""What caches of names and attributes save."""
_MANY = 0.5  # chosen: from this share on, nothing else would save as much
_MS = 1e6


def find_server_requests(record: RunRecord, summary: Summary) -> Iterator[ServerRequests]:
    """Yield what each NFS target's mounts asked, as the run folder tells."""
    for target in summary.targets:
        own = [each.requests for each in find_asked(record, target.index)]
        transactions = sum(found.count for found in target.overall.transactions)
        if own and transactions:
            yield _of_target(target.name, dict(added_up(own)), transactions)


def _of_target(name: str, kinds: dict[str, RequestCounts], transactions: int) -> ServerRequests:
    count = sum(each.count for each in kinds.values())
    ordered = sorted(kinds.items(), key=lambda item: (-item[1].count, item[0]))
    return ServerRequests(
        target=name,
        transactions=transactions,
        count=count,
        per_transaction=count / transactions,
        kinds=tuple(
            RequestKind(
                kind=kind,
                count=each.count,
                per_transaction=each.count / transactions,
                round_trip_ns=each.round_trip_ms * _MS / each.count,
                queue_ns=each.queue_ms * _MS / each.count,
                sent_again=each.transmissions - each.count,
            )
            for kind, each in ordered
        ),
        advice=_advice(kinds, count),
    )


def _advice(kinds: dict[str, RequestCounts], count: int) -> str | None:
    """Say what mount option would save most of the requests."""
    names = sum(each.count for kind, each in kinds.items() if kind in _NAMES)
    if names < _MANY * count:
        return None
    return (
        f"{format_share(names / count)} of them look up names and attributes: a longer actimeo "
        "would save most of these, where no other client changes the files (nfs(5))"
    )


def describe_server(found: ServerRequests) -> str:
    """Say in a sentence or two what a target's mounts asked."""
    first = found.kinds[0]
    again = sum(kind.sent_again for kind in found.kinds)
    said = (
        f"a transaction on {found.target} asked the server {format_number(found.per_transaction)} "
        f"times, {format_number(first.per_transaction)} of them {first.kind}"
    )
    said += f"; {format_count(again)} requests were sent again" if again else ""
    return f"{said}; {found.advice}" if found.advice else said


_COLUMNS = tuple(
    Column(title, need)
    for title, need in (
        ("request", 9),
        ("count", 5),
        ("per transaction", 8),
        ("round trip", 7),
        ("queued", 6),
        ("sent again", 4),
    )
)
SERVER_TITLES = tuple(column.title for column in _COLUMNS)


def server_rows(found: ServerRequests) -> list[tuple[str, ...]]:
    """Return a row for each kind of request, below ``SERVER_TITLES``."""
    return [
        (
            each.kind,
            format_count(each.count),
            format_number(each.per_transaction),
            format_time_ns(each.round_trip_ns),
            format_time_ns(each.queue_ns),
            format_count(each.sent_again),
        )
        for each in found.kinds
    ]


def lay_out_server(found: ServerRequests, style: Style) -> Iterator[str]:
    """Yield a table of the requests of a target."""
    yield from lay_out_grid(_COLUMNS, server_rows(found), style).lines
