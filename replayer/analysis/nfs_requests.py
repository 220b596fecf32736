"""What the NFS mounts of a target were asked in a run, as its events tell. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from replayer.measure.mountstats import NFS_EVENT, RequestCounts, Requests
from replayer.measure.record import RunRecord

__all__ = ["Asked", "find_asked"]

_Kinds = TypeAdapter(dict[str, RequestCounts])


@dataclass(frozen=True)
class Asked:
    """What one mount was asked in a part of a measured phase, mostly a second."""

    end_s: float
    """Since the engine's begin."""
    length_s: float
    """Zero in run folders that tell no more than a phase's sum."""
    requests: Requests


def find_asked(record: RunRecord, target: int) -> Iterator[Asked]:
    """Yield what was asked in each part of the measured phases, once for each mount.

    Workers on one machine share its mounts, and each of them reads the counters of all: the first
    that tells of a phase tells of it alone.
    """
    places: dict[object, object] = {
        client.number: (client.machine.host, client.paths[target]) for client in record.run.clients
    }
    tellers: dict[object, object] = {}
    for event in record.events:
        if event.get("kind") != NFS_EVENT or event.get("target") != target:
            continue
        client, requests = event.get("client"), _read(event.get("requests"))
        phase = (event.get("round"), places.get(client))
        if requests is not None and tellers.setdefault(phase, client) == client:
            yield Asked(_number(event.get("t_s")), _number(event.get("length_s")), requests)


def _read(told: object) -> Requests | None:
    try:
        return _Kinds.validate_python(told)
    except ValidationError:
        return None


def _number(told: object) -> float:
    return float(told) if isinstance(told, int | float) else 0.0
