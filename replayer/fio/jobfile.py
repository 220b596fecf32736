"""Parsing fio's job files: sections and their options, each with the line it stands in.

Text in, values out: no option is judged here (``checking`` does that) and no fio is asked. Form:
fio(1), 'Job file format'; comments end lines as in fio's strip_blank_end().
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from replayer.errors import ReplayerError

MOST_BYTES = 1 << 20  # chosen: a job file is written by hand
MOST_SECTIONS = 500  # chosen: fio itself ends at 4,096 jobs
GLOBAL = "global"

_HEAD = re.compile(r"\[(?P<name>.*)\]$")
_NAME = re.compile(r"[A-Za-z0-9_+ -][A-Za-z0-9_.+ -]{0,99}")
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class JobFileLine:
    """A line of a file, for messages."""

    file: str
    line: int

    def refuse(self, problem: str, hint: str = "") -> NoReturn:
        """Raise the refusal of what stands there.

        Raises:
            ReplayerError: Always.
        """
        raise ReplayerError(f"{self.file}:{self.line}: {problem}", hint=hint)


@dataclass(frozen=True)
class Option:
    """One option: its name, its value (None: it stands alone, which switches it on), its place."""

    name: str
    value: str | None
    place: JobFileLine


@dataclass(frozen=True)
class Section:
    """A job: its own options behind those of the global sections before it."""

    name: str
    options: tuple[Option, ...]
    place: JobFileLine

    def value(self, *names: str) -> str | None:
        """Return the value of an option under any of its names; the last one counts, as in fio."""
        found = [option for option in self.options if option.name in names]
        return None if not found else ("1" if found[-1].value is None else found[-1].value)

    @property
    def engine(self) -> str:
        """Its engine; on Linux fio takes psync unless it is told otherwise."""
        return self.value("ioengine") or "psync"

    @property
    def pattern(self) -> str:
        """The kind of its I/Os, without how many lie in a row (``randread:8``)."""
        return (self.value("rw") or "read").partition(":")[0]

    def switched_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.value(name) not in {None, "0"}


@dataclass(frozen=True)
class JobFile:
    """The jobs of a file, in order."""

    source: str
    sections: tuple[Section, ...]


def groups(sections: Sequence[Section]) -> Iterator[Sequence[Section]]:
    """Yield the jobs between one stonewall and the next: a group begins when all before ended."""
    walls = [at for at, section in enumerate(sections) if at and section.switched_on("stonewall")]
    for begin, end in pairwise([0, *walls, len(sections)]):
        yield sections[begin:end]


def parse_job_file(text: str, source: str, environment: Mapping[str, str]) -> JobFile:
    """Parse a job file, with ``${NAME}`` replaced from the environment as fio does.

    Raises:
        ReplayerError: With file and line.
    """
    if len(text) > MOST_BYTES:
        JobFileLine(source, 1).refuse(
            f"a job file must have at most {MOST_BYTES:,} bytes, got {len(text):,}"
        )
    shared: list[Option] = []
    sections: list[tuple[str, list[Option], JobFileLine]] = []
    current: list[Option] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        place, line = JobFileLine(source, number), re.split("[;#]", raw, maxsplit=1)[0].strip()
        if not line:
            continue
        if line.startswith("["):
            name = _parse_head(line, place)
            current = shared if name == GLOBAL else list(shared)
            if name != GLOBAL:
                sections.append((name, current, place))
        elif current is None:
            place.refuse(f"{line!r} is before the first section", "start the file with [global]")
        else:
            option = _parse_option(line, place, environment)
            # What a global section calls itself is no job's name to fio.
            if current is not shared or option.name != "name":
                current.append(option)
    return JobFile(source, _checked(sections, source))


def _checked(
    sections: list[tuple[str, list[Option], JobFileLine]], source: str
) -> tuple[Section, ...]:
    if not 0 < len(sections) <= MOST_SECTIONS:
        message = f"a job file must have 1 to {MOST_SECTIONS} jobs, got {len(sections)}"
        JobFileLine(source, 1).refuse(message, "each section other than [global] is a job")
    names: set[str] = set()
    for name, _, place in sections:
        if name in names:
            place.refuse(f"two jobs are named {name!r}", "rename one: figures are stored by name")
        names.add(name)
    return tuple(Section(name, tuple(options), place) for name, options, place in sections)


def _parse_head(line: str, place: JobFileLine) -> str:
    found = _HEAD.match(line)
    if found is None:
        place.refuse(f"{line!r}: a section must end with ]")
    name = found["name"].strip()
    if name.startswith(GLOBAL) and name != GLOBAL:
        place.refuse(f"[{name}] is a global section for fio", "rename the job")
    if not _NAME.fullmatch(name):
        hint = "a job name has letters, digits, blanks and _ . + - (it becomes a file name)"
        place.refuse(f"invalid job name {name!r}", hint)
    return name


def _parse_option(line: str, place: JobFileLine, environment: Mapping[str, str]) -> Option:
    name, equals, value = (part.strip() for part in line.partition("="))
    if not equals:
        return Option(name, None, place)

    def replaced(found: re.Match[str]) -> str:
        known = environment.get(found["name"])
        if known is None:
            hint = f"set it: {found['name']}=… replayer baseline …"
            place.refuse(f"the environment variable {found[0]} is not set", hint)
        return known

    return Option(name, _VARIABLE.sub(replaced, value), place)
