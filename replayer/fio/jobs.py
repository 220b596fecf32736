"""The job files of a baseline: found by name or path, parsed, checked and scaled.

Only job files are read here. What comes out is safe to hand to fio in a run's folder.
"""

import difflib
import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.fio.checking import check_job_file
from replayer.fio.clock import verifies_after
from replayer.fio.jobfile import JobFile, parse_job_file
from replayer.fio.promises import writes, writing_of
from replayer.fio.writing import render_job_file
from replayer.paths import is_file
from replayer.scenario.shipped import shipped_folder

DEFAULT_JOBS = ("latency-read-4k", "latency-write-4k", "rand-read-4k", "rand-write-4k", "upload")
"""Chosen: what one request waits, what many together get, and one stream."""


def shipped_jobs() -> dict[str, Path]:
    """Return the shipped job files by name, in alphabetical order."""
    return {path.stem: path for path in sorted((shipped_folder() / "fio").glob("*.fio"))}


def load_jobs(words: Sequence[str], device: Path | None = None) -> tuple[JobFile, ...]:
    """Load job files by shipped name or path, none: the default ones; check every option of them.

    Raises:
        ReplayerError: One is missing or not allowed, or two jobs bear one name.
    """
    files = tuple(_load(word, device) for word in words or DEFAULT_JOBS)
    known: dict[str, str] = {}
    for file in files:
        for section in file.sections:
            if section.name in known:
                hint = f"{known[section.name]} has this job too; run them one after the other"
                section.place.refuse(f"two jobs are named {section.name!r}", hint)
            known[section.name] = file.source
    return files


def document_of(files: Sequence[JobFile], version: str) -> bytes:
    """Return plan.json of a baseline: what is run, how each job writes, and by which fio.

    ``verified_after`` names those of which each direction has a time of its own.
    """
    jobs = [
        {
            "source": file.source,
            "text": render_job_file(file, None),
            "writing": {each.name: writing_of(each) for each in file.sections if writes(each)},
            "verified_after": [each.name for each in file.sections if verifies_after(each)],
        }
        for file in files
    ]
    return json.dumps({"engine": "fio", "version": version, "jobs": jobs}, indent=2).encode()


def fingerprint_of(files: Sequence[JobFile]) -> str:
    """Return the SHA-256 of what fio is given: the same jobs, the same fingerprint."""
    return sha256("\n".join(render_job_file(file, None) for file in files).encode()).hexdigest()


def _load(word: str, device: Path | None) -> JobFile:
    shipped = shipped_jobs()
    path = shipped.get(word, Path(word))
    if word not in shipped and not is_file(path):
        raise _unknown(word, shipped)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayerError(f"{word}: cannot be read: {error}") from error
    # A shipped one is named by its name: reports are read on other machines.
    return check_job_file(parse_job_file(text, word, os.environ), device)


def _unknown(word: str, shipped: dict[str, Path]) -> ReplayerError:
    near = difflib.get_close_matches(word, shipped, n=1)
    listed = ", ".join(shipped)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return ReplayerError(
        f"neither a job file nor a shipped job: {word}", hint=f"{meant}shipped jobs: {listed}"
    )
