"""What NFS mounts asked their servers: the counters of /proc/self/mountstats, by kind of request.

Source: the kernel's net/sunrpc/stats.c and nfsstat(8), mountstats(8) of nfs-utils. A line of
``per-op statistics`` holds: requests, transmissions, timeouts, bytes sent, bytes received, and the
milliseconds that requests waited to be sent, were under way, and took in all.
"""

from collections.abc import Iterable, Mapping
from itertools import dropwhile
from pathlib import Path

from replayer.measure.facts import Frozen
from replayer.measure.mountinfo import MOUNTSTATS, load_mountstats

NFS_EVENT = "nfs requests"
"""The kind of the events in which a run folder keeps them, for each second of measured phases."""
_FIELDS = 8


class RequestCounts(Frozen):
    """Requests of one kind."""

    count: int = 0
    transmissions: int = 0
    """More than requests where some were sent again."""
    timeouts: int = 0
    queue_ms: int = 0
    """Waited on the client to be sent, of all together."""
    round_trip_ms: int = 0
    """From sending to the answer, of all together."""
    execute_ms: int = 0
    """From the call to its result, of all together."""

    def plus(self, other: "RequestCounts", sign: int = 1) -> "RequestCounts":
        """Return the sum; with a sign of -1 the difference."""
        own, others = self.model_dump(), other.model_dump()
        return RequestCounts(**{name: own[name] + sign * others[name] for name in own})


Requests = Mapping[str, RequestCounts]
"""By kind, such as ``GETATTR``."""


def read_requests(mount_points: Iterable[str], file: Path = MOUNTSTATS) -> Requests:
    """Return the requests of mounts since they were mounted; none where that is not told."""
    wanted = frozenset(mount_points)
    stats = load_mountstats(file) if wanted else {}
    return added_up(_counts(lines) for point, lines in stats.items() if point in wanted)


def _counts(lines: Iterable[str]) -> Requests:
    below_title = dropwhile(lambda line: line.split() != ["per-op", "statistics"], lines)
    rows = (line.split() for line in below_title)
    return {
        words[0].removesuffix(":"): _read(words[1:])
        for words in rows
        if len(words) > _FIELDS and words[0].endswith(":")
    }


def _read(words: list[str]) -> RequestCounts:
    count, sent, timeouts, _, _, queue, round_trip, execute = map(int, words[:_FIELDS])
    return RequestCounts(
        count=count,
        transmissions=sent,
        timeouts=timeouts,
        queue_ms=queue,
        round_trip_ms=round_trip,
        execute_ms=execute,
    )


def since(before: Requests, after: Requests) -> Requests:
    """Return the requests that were made between two readings; kinds without any are left out."""
    nothing = RequestCounts()
    made = {kind: own.plus(before.get(kind, nothing), -1) for kind, own in after.items()}
    return {kind: own for kind, own in made.items() if own.count > 0}


def added_up(parts: Iterable[Requests]) -> Requests:
    """Return the requests of several times together."""
    found: dict[str, RequestCounts] = {}
    for part in parts:
        for kind, own in part.items():
            found[kind] = found.get(kind, RequestCounts()).plus(own)
    return found
