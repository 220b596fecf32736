"""Asking fio itself whether it takes the values of a job file, before anything is made.

Which options there may be is decided next door (``checking``); what their values may be, fio knows
best. It is asked with --parse-only, with which it starts no job and touches no file.
"""

import os
import re
import subprocess
from typing import NoReturn

from replayer.fio.jobfile import JobFile, Option
from replayer.fio.program import ANSWER_S, FioError, Program
from replayer.fio.writing import render_job_file

__all__ = ["check_values"]

MOST_CHOICES = 24  # chosen: the I/O patterns are 11

_FAILED = re.compile(r"fio: failed parsing (?P<option>[^=]+)(=(?P<value>.*))?")
_CHOICE = re.compile(r"\s*(?:valid values)?\s*: (?P<choice>\S+)")


def check_values(program: Program, file: JobFile) -> None:
    """Refuse the first option whose value fio does not take.

    Raises:
        JobFileError: With file and line, and what fio says of it.
        FioError: It does not answer.
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
        message = f"{program.path}: does not run: {error}"
        raise FioError(message) from error
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
    _option(file, name, value).place.refuse(f"fio does not take {written}{because}", hint)


def _option(file: JobFile, name: str, value: str | None) -> Option:
    """Return the option that fio means: one with this value, for fio may replace words in it."""
    named = [each for section in file.sections for each in section.options if each.name == name]
    return next((each for each in named if each.value == value), named[-1])
