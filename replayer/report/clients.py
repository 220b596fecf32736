"""From how many clients each figure came, and how much of it from which: words and rows.

A run of one process has no clients, and nothing is said of it here.
"""

from collections.abc import Iterator

from replayer.measure import (
    Client,
    ClientLoss,
    differ_in_cpus,
    format_count,
    format_many,
    machines_of,
)
from replayer.report.document import Document

UNKNOWN = "{} clients began; how much came from each is written at the end, and none is there"
Figure = tuple[int, str]
"""A target and a transaction."""


def describe_clients(document: Document) -> Iterator[tuple[str, str]]:
    """Yield who measured, and how much of the figures is whose."""
    if not document.clients:
        return
    left = sum(client.status == "finished" for client in document.clients)
    end = f"{left} of {len(document.clients)} to the end"
    yield "clients", UNKNOWN.format(len(document.clients)) if _is_open(document) else end
    names = _names(document)
    for client in document.clients:
        shares = ", ".join(
            f"{names[target, name]} {format_count(count)}"
            for (target, name), count in _shares(client).items()
            if (target, name) in names
        )
        paths = ", ".join(path for paths in client.paths for path in paths)
        users = format_many(client.users, "user")
        who = f"{_process(document, client)}, {users} on {paths}"
        losses = "".join(f"; {text}" for text in _losses(client))
        told = shares or ("not told yet" if _is_open(document) else "nothing")
        yield f"  worker {client.number}", f"{who}: {told}{losses}"


def client_notes(document: Document) -> Iterator[str]:
    """Yield from how many clients the figures come, and which of them come from fewer."""
    total = len(document.clients)
    if not total:
        return
    if _is_open(document):
        yield UNKNOWN.format(total)
        return
    by_count: dict[int, list[str]] = {}
    for figure, name in _names(document).items():
        sources = sum(_shares(client).get(figure, 0) > 0 for client in document.clients)
        by_count.setdefault(sources, []).append(name)
    if set(by_count) <= {total} and any(map(_lacks_some, document.clients)):
        yield f"figures come from {total} of {total} clients, not from all of them all the time"
    elif set(by_count) <= {total}:
        yield f"every figure comes from {total} of {total} clients"
    else:
        parts = (f"{', '.join(by_count[n])} from {n}" for n in sorted(by_count, reverse=True))
        yield f"of {total} clients the figures come from: {'; '.join(parts)}"
    for client in document.clients:
        for loss, text in zip(client.losses, _losses(client), strict=True):
            yield f"worker {client.number} was {text}: {_missing(loss, total)}"


def _lacks_some(client: Client) -> bool:
    """Whether some of a client's figures may be missing."""
    return client.status == "lost" or any(loss.measuring for loss in client.losses)


def _missing(loss: ClientLoss, total: int) -> str:
    """Say which figures are not those of all clients."""
    if loss.measuring:
        when = "from then on" if loss.back_s is None else "of that time"
        return f"figures {when} come from {total - 1} of {total} clients or fewer"
    if loss.back_s is None:
        return "its last figures may be missing"
    return "nothing was measured meanwhile"


def client_titles(document: Document) -> tuple[str, ...]:
    """Return the titles of a table of the clients."""
    return ("client", "machine", "users", *_names(document).values(), "to the end")


def client_rows(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield a row for each client: how many transactions of each figure are its own."""
    if _is_open(document):
        return
    for client in document.clients:
        shares = _shares(client)
        counts = (format_count(shares.get(figure, 0)) for figure in _names(document))
        end = "; ".join(_losses(client)) or ("yes" if client.status == "finished" else "lost")
        machine = _process(document, client)
        yield (f"worker {client.number}", machine, format_count(client.users), *counts, end)


def _process(document: Document, client: Client) -> str:
    """Say which process it is, and on which CPUs where that is not the same for all."""
    machine = client.machine
    who = f"{machine.host}, process {client.pid}"
    if not differ_in_cpus(machines_of(document.clients, document.machine)):
        return who
    which = "" if machine.cpu_list is None else f" ({machine.cpu_list})"
    return f"{who}, {format_many(machine.cpus, 'CPU')}{which}"


def _is_open(document: Document) -> bool:
    """Whether the run goes on, or its master was killed."""
    return any(client.status == "working" for client in document.clients)


def _names(document: Document) -> dict[Figure, str]:
    """Return the figures, and what each is called here."""
    several = len(document.targets) > 1
    return {
        (target.index, found.name): f"{target.name}/{found.name}" if several else found.name
        for target in document.summary.targets
        for found in target.overall.transactions
    }


def _shares(client: Client) -> dict[Figure, int]:
    return {(share.target, share.transaction): share.count for share in client.shares}


def _losses(client: Client) -> Iterator[str]:
    for loss in client.losses:
        back = "" if loss.back_s is None else f", back at {loss.back_s:.1f} s"
        yield f"lost at {loss.at_s:.1f} s ({loss.why}){back}"
