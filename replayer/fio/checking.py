"""Checks a job file: only options that stay inside the run's folder pass, with values fio accepts.

What passes is written anew (``writing``): fio never reads a line that was not understood here.
Refusals name file and line.
"""

import difflib
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from replayer.errors import OutsideError
from replayer.fio.amounts import read_seconds, read_size
from replayer.fio.jobfile import JobFile, Option, Section
from replayer.fio.options import ALIASES, ALLOWED, ENGINES, REASONS, Kind
from replayer.fio.program import ANSWER_S, Program
from replayer.fio.writing import render_job_file

MOST_PROCESSES = 4096  # fio's own bound, REAL_MAX_JOBS in os/os.h
DEEPEST = 65_536
"""The kernel's own default for all of a machine (aio-max-nr); fio makes memory for any number."""

_PLAIN = re.compile(r"[A-Za-z0-9_.,:%/+*() -]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9_.+ -]+")
_PATTERN = re.compile(r"(0x[0-9a-fA-F]+|-?[0-9]+|\"[A-Za-z0-9_. -]*\"|%o)+")
_MEMORIES = frozenset({"malloc", "shm", "shmhuge", "mmap", "mmaphuge", "mmapshared"})

_WHERE = "leave it out: --target sets the place, and jobs work on their own files there"
_WHICH = "leave it out: --device sets the device"


def check_job_file(file: JobFile, device: Path | None) -> JobFile:
    """Return the file with the options that fio is given, under fio's first names for them.

    Args:
        file: As it was parsed.
        device: The block device that the user named as the target, without links in its path;
            None for a folder.

    Raises:
        ReplayerError: An option, an engine or a file name that may lead outside, with its line.
    """
    return JobFile(file.source, tuple(_check_section(section, device) for section in file.sections))


def _check_section(section: Section, device: Path | None) -> Section:
    options = [
        replace(found, name=ALIASES.get(found.name, found.name)) for found in section.options
    ]
    kept = []
    for option in options:
        kind = ALLOWED.get(option.name)
        if kind is None:
            _refuse_option(option)
        if kind == "files" and device is not None:
            _check_device(option, device)
        elif kind == "folder" and device is not None:
            # fio would join the two to a name in the folder that it works in.
            option.place.refuse(f"{option.name}={option.value}: a device has no folders", _WHICH)
        elif kind != "ours":
            _CHECKS[kind](option)
            kept.append(option)
    checked = replace(section, options=tuple(kept))
    _check_numbers(checked)
    return checked


def _refuse_option(option: Option) -> NoReturn:
    name = option.name
    word = name.split()[0]
    if word in REASONS or name.startswith(("replay_", "merge_", "trigger")):
        why = REASONS.get(word, "it replays or merges traces")
        option.place.refuse(f"{word} is not supported: {why}", "remove it from the file")
    near = difflib.get_close_matches(name, [*ALLOWED, *ALIASES], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "remove it from the file"
    option.place.refuse(f"unknown option {name!r}", hint)


def _text(option: Option) -> str:
    return "1" if option.value is None else option.value


def _check_plain(option: Option) -> None:
    value = _text(option)
    if not _PLAIN.fullmatch(value):
        option.place.refuse(f"{option.name}={value}: unknown value")


def _check_time(option: Option) -> None:
    """Refuse what fio misreads without a word: 1.5s as 1 s, a unit it does not know as µs.

    Of a sum in parentheses, fio says itself whether it was built to read them.
    """
    _check_plain(option)
    value = _text(option)
    if "(" not in value and any(read_seconds(part) is None for part in value.split("-")):
        hint = "write a whole number with us, ms, s, m, h or d"
        option.place.refuse(f"{option.name}={value}: fio would misread this time", hint)


def _check_name(option: Option) -> None:
    value = _text(option)
    if not _FILE_NAME.fullmatch(value) or value.startswith("."):
        option.place.refuse(f"{option.name}={value}: must be a plain name", "leave the folder out")


def _check_files(option: Option) -> None:
    for name in _text(option).split(":"):
        _check_inside(option, name)


def _check_folder(option: Option) -> None:
    _check_files(option)
    if ":" in _text(option):
        option.place.refuse(f"{option.name}={option.value}: must be one folder at most", _WHERE)


def _check_inside(option: Option, name: str) -> None:
    if name.startswith("/dev/"):
        hint = f"to measure the device itself, use --device {name}; it is then only read"
        option.place.refuse(f"{option.name}={name} is a device, not a file of the target", hint)
    if name.startswith("/"):
        option.place.refuse(f"{option.name}={name} is outside the target", _WHERE)
    parts = name.split("/")
    if ".." in parts or not all(_FILE_NAME.fullmatch(part) for part in parts) or name == "-":
        option.place.refuse(f"{option.name}={name}: must be a plain name", _WHERE)
    if any(part.startswith(".") and part != "." for part in parts):
        problem = f"{option.name}={name}: names that start with a dot are reserved"
        option.place.refuse(problem, "choose another name")


def _check_device(option: Option, device: Path) -> None:
    if Path(_text(option)).resolve() != device:
        problem = f"filename={option.value} is not the target {device}"
        option.place.refuse(problem, _WHICH)


def _check_engine(option: Option) -> None:
    value = _text(option)
    if value not in ENGINES:
        hint = f"supported: {', '.join(sorted(ENGINES))}"
        option.place.refuse(f"ioengine={value} is not supported", hint)


def _check_memory(option: Option) -> None:
    if _text(option) not in _MEMORIES:
        problem = f"{option.name}={option.value} is not supported: it may name a file"
        option.place.refuse(problem, f"supported: {', '.join(sorted(_MEMORIES))}")


def _check_pattern(option: Option) -> None:
    if not _PATTERN.fullmatch(_text(option)):
        problem = f"{option.name}={option.value} is not supported: it may name a file"
        option.place.refuse(problem, 'write a number, 0x… or "text"')


def _check_numbers(section: Section) -> None:
    jobs = section.value("numjobs") or "1"
    if not jobs.isdecimal() or not 1 <= int(jobs) <= MOST_PROCESSES:
        _refuse_number(section, "numjobs", MOST_PROCESSES)
    under_way = read_size(section.value("iodepth") or "1", None)
    if under_way is None or not 1 <= under_way <= DEEPEST:
        _refuse_number(section, "iodepth", DEEPEST)


def _refuse_number(section: Section, name: str, most: int) -> NoReturn:
    found = next(option for option in section.options if option.name == name)
    found.place.refuse(f"{name} must be from 1 to {most}, got {found.value}")


_CHECKS: dict[Kind, Callable[[Option], None]] = {
    "plain": _check_plain,
    "time": _check_time,
    "name": _check_name,
    "files": _check_files,
    "folder": _check_folder,
    "engine": _check_engine,
    "memory": _check_memory,
    "pattern": _check_pattern,
}


MOST_CHOICES = 24  # chosen: the I/O patterns are 11

_FAILED = re.compile(r"fio: failed parsing (?P<option>[^=]+)(=(?P<value>.*))?")
_CHOICE = re.compile(r"\s*(?:valid values)?\s*: (?P<choice>\S+)")


def check_values(program: Program, file: JobFile) -> None:
    """Refuse the first option whose value fio does not take.

    Raises:
        ReplayerError: With file and line, and what fio says of it.
        OutsideError: It does not answer.
    """
    words = [program.path, "--parse-only", "-"]
    try:
        done = subprocess.run(  # noqa: S603 - every word of it was made here
            words,
            input=render_job_file(file, None),
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            text=True,
            errors="replace",
            cwd="/",
            timeout=ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutsideError(f"{program.path}: cannot be executed: {error}") from error
    said = done.stderr.splitlines()
    for number, line in enumerate(said):
        failed = _FAILED.fullmatch(line.strip())
        if failed is not None:
            before = said[number - 1].strip() if number else ""
            _refuse(file, failed, before, done.stdout)


def _refuse(file: JobFile, failed: re.Match[str], reason: str, choices: str) -> NoReturn:
    name, value = failed["option"], failed["value"]
    because = f": {reason.removeprefix(f'{name}: ')}" if reason else ""
    found = [choice["choice"] for choice in map(_CHOICE.match, choices.splitlines()) if choice]
    hint = f"possible: {', '.join(found[:MOST_CHOICES])}" if found else "see fio(1)"
    written = name if value is None else f"{name}={value}"
    _option(file, name, value).place.refuse(f"fio rejects {written}{because}", hint)


def _option(file: JobFile, name: str, value: str | None) -> Option:
    """Return the option that fio means: one with this value, for fio may replace words in it."""
    named = [each for section in file.sections for each in section.options if each.name == name]
    return next((each for each in named if each.value == value), named[-1])
