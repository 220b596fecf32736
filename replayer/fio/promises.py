"""What an acknowledged write of a job means on a target, and what its figures cannot tell.

From the job's options and the mount's guarantee alone. Sentences go into the run's warnings; how a
job writes goes into plan.json, from which reports and studies tell where its data is.
"""

from collections.abc import Iterator

from replayer.fio.jobfile import JobFile, Section
from replayer.fio.options import FILE_CALLS
from replayer.measure.guarantee import Writing, place_of
from replayer.measure.health import RunWarning
from replayer.measure.run import Target

_OFF = frozenset({None, "0", "none"})
_NEAR = frozenset({"client cache", "memory", "daemon"})


def writes(section: Section) -> bool:
    """Whether a job writes."""
    if section.engine in FILE_CALLS:
        return False
    return section.pattern not in {"read", "randread", "trim", "randtrim"}


def reads(section: Section) -> bool:
    """Whether a job reads."""
    if section.engine in FILE_CALLS:
        return False
    return section.pattern in {"read", "randread", "rw", "readwrite", "randrw"}


def is_direct(section: Section) -> bool:
    """Whether a job goes past the page cache."""
    return section.switched_on("direct") or section.value("buffered") == "0"


def writing_of(section: Section) -> Writing:
    """Return how a job that writes does it."""
    if section.value("sync") not in _OFF:
        return "synchronous"
    if section.switched_on("fsync") or section.switched_on("fdatasync"):
        return "flushed"
    return "direct" if is_direct(section) else "buffered"


def warnings_of(files: tuple[JobFile, ...], targets: tuple[Target, ...]) -> Iterator[RunWarning]:
    """Yield what a reader of the figures must know of the jobs, and of where they run."""
    if any(target.confinement == "checked" for target in targets):
        yield RunWarning(
            kind="other",
            message="this kernel or container has no Landlock. Only the checked job file keeps "
            "fio in its folder",
            hint="let nobody else write to the target: fio follows symlinks",
        )
    for file in files:
        for section in file.sections:
            yield from _of_writes(section, targets)
            yield from _of_reads(section)
            yield from _of_rates(section)


def _of_writes(section: Section, targets: tuple[Target, ...]) -> Iterator[RunWarning]:
    if not writes(section):
        return
    near = {
        target.name: place
        for target in targets
        if (place := place_of(target.guarantee, writing_of(section))) in _NEAR
    }
    if near:
        where = ", ".join(f"{name}: {place}" for name, place in near.items())
        yield RunWarning(
            kind="other",
            message=f"{section.name}: an acknowledged write is not stored yet ({where}). Its times "
            "and rates are first those of that memory",
            hint="with sync=1 or fsync=1 in the job, writes wait until they are stored; see "
            "write-1m-sync",
        )


def _of_reads(section: Section) -> Iterator[RunWarning]:
    if reads(section) and not is_direct(section):
        yield RunWarning(
            kind="other",
            message=f"{section.name}: buffered reads may come from this client's page cache",
            hint="direct=1 in the job bypasses it, as in latency-read-4k. Nothing bypasses the "
            "server's memory",
        )


def _of_rates(section: Section) -> Iterator[RunWarning]:
    rated = [name for name in ("rate", "rate_iops", "thinktime") if section.switched_on(name)]
    if rated:
        yield RunWarning(
            kind="other",
            message=f"{section.name}: with {rated[0]}, fio counts a time from the actual start of "
            "an I/O, not from its intended start. Waiting behind a stall is not included",
            hint="'replayer run' with arrivals counts from the intended start",
        )
