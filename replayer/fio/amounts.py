"""Amounts in job files, read as fio reads them: sizes in bytes, times in nanoseconds.

Used to say beforehand how much room and time a file needs; fio reads the file's own words. Rules:
fio(1), 'Parameter types' (kb_base) and 'time'.
"""

import re
from collections.abc import Sequence

from replayer.fio.jobfile import JobFile, Section, groups

_AMOUNT = re.compile(r"(?P<number>0x[0-9a-f]+|[0-9]+)(?P<unit>[a-z]*)")
_POWERS = {"": 0, "b": 0, **{unit: power for power, unit in enumerate("kmgtp", start=1)}}
_SECONDS = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "": 1.0,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
"""Any other unit is microseconds to fio, ``sec`` and ``min`` among them."""
_QUEUEING = frozenset({"libaio", "io_uring", "posixaio", "null"})
"""Engines without FIO_SYNCIO in fio's engines/*.c."""


def read_size(text: str, base: str | None) -> int | None:
    """Return a size in bytes; None for a share of a device or another form.

    Args:
        text: Such as ``4k`` or ``100MiB``.
        base: ``kb_base``: with 1024, the default, k is 1,024 and KiB, by fio's rule, 1,000.
    """
    found = _AMOUNT.fullmatch(text.strip().lower())
    if found is None:
        return None
    letter, rest = found["unit"][:1], found["unit"][1:]
    if letter not in _POWERS or rest not in {"", "b", "i", "ib"}:
        return None
    # Only with the whole of KiB does fio 3.33 count the other way round; Ki is k to it.
    factor = 1024 if (base == "1000") == (rest == "ib") else 1000
    scale: int = factor ** _POWERS[letter]
    return int(found["number"], 0) * scale


def read_seconds(text: str) -> float | None:
    """Return a time in seconds; None for another form."""
    found = _AMOUNT.fullmatch(text.lower().replace(" ", ""))
    if found is None or found["unit"] not in _SECONDS:
        return None
    return int(found["number"], 0) * _SECONDS[found["unit"]]


def processes(section: Section) -> int:
    """Return how many processes a job has."""
    return int(section.value("numjobs") or "1")


def processes_at_once(file: JobFile) -> int:
    """Return how many processes of a job file work at the same time, at most.

    Jobs never run beside those behind the next stonewall, nor beside one that they wait for.
    """
    return max(map(_at_once, groups(file.sections)), default=0)


def _at_once(group: Sequence[Section]) -> int:
    names = {section.name for section in group}

    def most(section: Section) -> int:
        """Return how many a job has at once, or all together that wait for its end."""
        waiting = (each for each in group if each.value("wait_for") == section.name)
        return max(processes(section), sum(map(most, waiting)))

    return sum(most(each) for each in group if each.value("wait_for") not in names)


def depth(section: Section) -> int:
    """Return how many I/Os each process of a job has under way.

    Of an engine that makes one call after the other fio takes 1, whatever the file says.
    """
    if section.engine not in _QUEUEING and section.value("io_submit_mode") != "offload":
        return 1
    return read_size(section.value("iodepth") or "1", None) or 1


def bytes_needed(file: JobFile) -> int:
    """Return what the files of a job file may take at most, as far as it says so."""
    return sum(_section_bytes(section) for section in file.sections)


def seconds_needed(file: JobFile) -> float | None:
    """Return how long a job file runs at least; None where it ends with its work.

    Jobs behind a stonewall begin when all before them have ended, and with wait_for when that one
    has.
    """
    begin = end = 0.0
    ends: dict[str, float] = {}
    for group in groups(file.sections):
        begin = end
        for section in group:
            own = _section_seconds(section)
            if own is None:
                return None
            awaited = ends.get(section.value("wait_for") or "", begin)
            ends[section.name] = max(begin, awaited) + own
            end = max(end, ends[section.name])
    return end


def _section_seconds(section: Section) -> float | None:
    """Return how long a job runs from its begin; None where its work or an unknown form says.

    A run time of 0 is none to fio (backend.c, runtime_exceeded), as a job may say against [global].
    """
    runtime = section.value("runtime")
    if runtime is None or read_seconds(runtime) == 0:
        return None
    texts = [section.value(name) for name in ("runtime", "ramp_time", "startdelay")]
    known = [read_seconds(text) for text in texts if text is not None]
    return None if None in known else sum(filter(None, known))


def _section_bytes(section: Section) -> int:
    base = section.value("kb_base")
    size = read_size(section.value("size") or "0", base) or 0
    each = read_size(section.value("filesize") or "0", base) or 0
    own = max(size, each * (read_size(section.value("nrfiles") or "1", None) or 1))
    # Processes that name their files share them.
    return own * (1 if section.value("filename") is not None else processes(section))
