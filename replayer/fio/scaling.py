"""Sizes and times of the command line, laid over the job files."""

from collections.abc import Sequence

from replayer.fio import JobFile, Scale, processes, scaled
from replayer.fio.order import BaselineOrder, Size
from replayer.fio.places import JobPlace

__all__ = ["scale_jobs"]

STEP_BYTES = 1 << 20  # chosen: sizes stay multiples of every usual block size
LEAST_BYTES = STEP_BYTES


def scale_jobs(
    files: Sequence[JobFile], order: BaselineOrder, places: Sequence[JobPlace]
) -> tuple[JobFile, ...]:
    """Return the job files as they are run.

    Raises:
        ReplayerError: A target cannot be asked for its free space.
    """
    free_bytes = None
    if order.size is not None and order.size.share is not None:
        free_bytes = min(place.facts(0).mounts[0].space.bytes_free for place in places)
    return tuple(
        scaled(file, Scale(_size_bytes(file, order.size, free_bytes), order.runtime_s, order.seed))
        for file in files
    )


def _size_bytes(file: JobFile, size: Size | None, free_bytes: int | None) -> int | None:
    if size is None or size.share is None or free_bytes is None:
        return None if size is None else size.size_bytes
    own = free_bytes * size.share / sum(processes(section) for section in file.sections)
    return max(int(own) // STEP_BYTES * STEP_BYTES, LEAST_BYTES)
