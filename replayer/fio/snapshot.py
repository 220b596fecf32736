"""Parsing what fio prints as ``json+``: the state of every job, each second and at the end.

Counts are sums since the job began (or since its ramp_time ended). Histogram buckets are fio's own:
64 for each power of two, so a time is known to 1.6 %; fio names the middle of each. Form: fio(1),
'JSON+ output'.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WAYS = {"read": "read", "write": "write", "trim": "trim", "sync": "fsync"}
"""fio's key of each direction, and the op it is kept as."""


@dataclass(frozen=True)
class Share:
    """What a job has done in one direction."""

    total: int = 0
    bytes: int = 0
    times: Mapping[int, int] = field(default_factory=dict)
    """How many took how long: nanoseconds from submission to completion, or in the call."""
    runtime_ms: int = 0
    """How long it has been doing so; 0 of fsyncs, of which fio does not say."""

    @property
    def count(self) -> int:
        """How many have a time."""
        return sum(self.times.values())


@dataclass(frozen=True)
class JobState:
    """One job."""

    name: str
    shares: Mapping[str, Share]
    error: int
    """The errno that ended it, or 0."""
    errors: int
    """I/Os that failed, where it was told to go on."""
    steady: Mapping[str, Any] | None
    """What fio says of the steady state, if it was asked for."""

    @property
    def runtime_ms(self) -> int:
        """How long it has been working, all directions at once; 0 before it begins."""
        return max((share.runtime_ms for share in self.shares.values()), default=0)

    @property
    def has_times(self) -> bool:
        """Whether an I/O has ended that counts: fio times none of a ramp_time."""
        return any(share.times for op, share in self.shares.items() if op != WAYS["sync"])


@dataclass(frozen=True)
class Snapshot:
    """All jobs at one moment."""

    jobs: tuple[JobState, ...]


def parse_snapshot(text: str) -> Snapshot:
    """Parse one document.

    Raises:
        ValueError: It is none of fio's.
    """
    try:
        return Snapshot(tuple(_parse_job(job) for job in json.loads(text)["jobs"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the json+ output of fio: {error!r}") from error


def _parse_job(job: Mapping[str, Any]) -> JobState:
    return JobState(
        name=str(job["jobname"]),
        shares={op: _parse_share(job.get(way, {})) for way, op in WAYS.items()},
        error=int(job["error"]) or int(job.get("first_error", 0)),
        errors=int(job.get("total_err", 0)),
        steady=job.get("steadystate"),
    )


def _parse_share(found: Mapping[str, Any]) -> Share:
    # Engines that make one call a file have no lat; those that submit are told to print no clat.
    bins = found.get("lat_ns", {}).get("bins") or found.get("clat_ns", {}).get("bins", {})
    return Share(
        total=int(found.get("total_ios", 0)),
        bytes=int(found.get("io_bytes", 0)),
        times={int(value): int(count) for value, count in bins.items()},
        runtime_ms=int(found.get("runtime", 0)),
    )
