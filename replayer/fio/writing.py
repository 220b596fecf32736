"""Writing the job file that fio is given: what was checked, and what replayer measures with.

Every job is written whole, without a global section, so that what is run can be read in one place.
Files are named by fio in the folder that it is started in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from replayer.fio.jobfile import JobFile, Option, Section
from replayer.fio.options import FILE_CALLS

_SETTINGS = (
    # A job's processes are one entry; jobs do not share one.
    "group_reporting=1",
    "new_group=1",
    # From submission to completion, the same for each engine that submits.
    "lat_percentiles=1",
    "slat_percentiles=0",
)


_SEED_MASK = 2**63 - 1  # fio 3.33 reads it as a signed number


@dataclass(frozen=True)
class Scale:
    """What the command line changes in every job; None is left to the file."""

    size_bytes: int | None = None
    runtime_s: float | None = None
    """How long it runs; one that verifies what it wrote: at most."""
    seed: int = 1
    """Where random offsets come from: of 64 bits, of which fio takes 63."""


def scaled(file: JobFile, scale: Scale) -> JobFile:
    """Return the file with the sizes and times of the command line."""
    return JobFile(file.source, tuple(_scaled_section(section, scale) for section in file.sections))


def render_job_file(file: JobFile, device: Path | None) -> str:
    """Return the text that fio reads of a checked file; without a device, jobs make their files."""
    return "\n".join(line for section in file.sections for line in _lines(section, device))


def folders_of(file: JobFile) -> tuple[str, ...]:
    """Return the folders, relative, that must be there before fio starts."""
    found: dict[str, None] = {}
    for section in file.sections:
        inside = section.value("directory")
        if inside is not None:
            found[inside] = None
        for name in (section.value("filename") or "").split(":"):
            parent = str(Path(inside or ".", name).parent)
            if parent != ".":
                found[parent] = None
    return tuple(found)


def _scaled_section(section: Section, scale: Scale) -> Section:
    options, place = list(section.options), section.place
    if scale.size_bytes is not None:
        options = [found for found in options if found.name not in {"size", "filesize", "io_size"}]
        options.append(Option("size", str(scale.size_bytes), place))
    if scale.runtime_s is not None:
        options = [found for found in options if found.name not in {"runtime", "time_based"}]
        options.append(Option("runtime", f"{round(scale.runtime_s * 1000)}ms", place))
        # Without it a runtime is only an upper limit (fio's manual), and small files are soon done.
        # With it a job that reads back what it wrote would write to the end, and never read back.
        if section.value("verify") in {None, "0", "none"}:
            options.append(Option("time_based", None, place))
    if section.value("randseed") is None:
        options.append(Option("randseed", str(scale.seed & _SEED_MASK), place))
    return replace(section, options=tuple(options))


def _lines(section: Section, device: Path | None) -> Iterator[str]:
    yield f"[{section.name}]"
    for option in section.options:
        yield option.name if option.value is None else f"{option.name}={option.value}"
    if device is not None:
        yield f"filename={device}"
    yield from _SETTINGS
    yield f"clat_percentiles={int(section.engine in FILE_CALLS)}"
    yield ""
