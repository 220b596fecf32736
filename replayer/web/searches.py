"""Searches for capacities, and raw baselines: each in a process of its own, one at a time.

What a search knows so far stands in its folder, as a document and as a page. A baseline is a run
among the others.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent

from replayer.errors import EXIT_INCONCLUSIVE, ReplayerError
from replayer.measure.history import names_with
from replayer.measure.runfolder import PARENT
from replayer.run.own_command import split_failure
from replayer.run.own_run import OwnRun, said_beside, start_heard
from replayer.web.form import RunForm

DOCUMENT = "capacity.json"
PAGE = "capacity.html"
MOST_SEARCHES = 100
"""Chosen: the newest ones; nobody reads a longer list."""
MOST_SAID_BYTES = 4000
MOST_DOCUMENT_BYTES = 4 << 20
POLL_S = 0.1
LEAVE_S = 20.0  # chosen: what ends a run in bounded time and removes its files
ENDED = frozenset({0, EXIT_INCONCLUSIVE})


def folder_of(form: RunForm) -> Path:
    """Return where the searches of a page are."""
    return Path("replayer-capacities") if form.runs == PARENT else form.runs / "capacities"


@dataclass
class Search:
    """A search or a baseline that goes on, or has ended."""

    run: OwnRun
    about: str
    """What it looks for."""
    asked_to_end: int = 0
    """How often somebody has."""

    @property
    def code(self) -> int | None:
        """Its exit code; None while it goes on."""
        return self.run.process.poll()

    def said(self) -> str:
        """Return the end of what it has said."""
        with suppress(OSError), said_beside(self.run.folder).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - MOST_SAID_BYTES, 0))
            return file.read().decode(errors="replace")
        return ""

    def end(self) -> None:
        """Ask it to end, as Ctrl-C does: twice ends it at once."""
        if self.code is None:
            self.asked_to_end += 1
            self.run.process.send_signal(signal.SIGINT)

    def describe(self) -> dict[str, Any]:
        """Return how it stands, as JSON."""
        code, said = self.code, self.said()
        failure, hint = ("", "") if code is None or code in ENDED else split_failure(said)
        return {
            "name": self.run.folder.name,
            "about": self.about,
            "is_run": (self.run.folder / "run.json").exists(),
            "goes_on": code is None,
            "is_ending": self.asked_to_end > 0,
            "failure": failure if code in ENDED or code is None else failure or f"exit code {code}",
            "hint": hint,
            "said": [line for line in said.splitlines() if line][-8:],
            "document": read_document(self.run.folder),
        }


class Searches:
    """Starts and ends searches and baselines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.latest: Search | None = None

    @property
    def goes_on(self) -> bool:
        """Whether one does."""
        return self.latest is not None and self.latest.code is None

    def refuse(self) -> None:
        """Refuse what would disturb the one that goes on.

        Raises:
            ReplayerError: One does.
        """
        if self.latest is not None and self.goes_on:
            message = f"{self.latest.about} is being measured, and this would disturb it"
            raise ReplayerError(message, hint="stop it first")

    def start(self, words: Sequence[str], about: str, home: Path | None = None) -> None:
        """Start a command with a folder among the searches, or in another place.

        Raises:
            ReplayerError: One goes on, or its folder cannot be made.
        """
        self.refuse()
        name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{words[0]}"
        folder = (home or self.folder) / name
        try:
            run = start_heard(words, folder)
        except OSError as error:
            message = f"{folder}: cannot be written: {error.strerror or error}"
            raise ReplayerError(message) from error
        self.latest = Search(run, about)

    def stop(self) -> None:
        """Ask the one that goes on to end; what is known so far is kept."""
        if self.latest is not None:
            self.latest.end()

    def leave(self) -> None:
        """End the one that goes on, in bounded time, when this process ends."""
        for _ in range(2):
            self.stop()
            until_s = time.monotonic() + LEAVE_S
            while self.goes_on and time.monotonic() < until_s:
                gevent.sleep(POLL_S)


def list_searches(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the searches in a folder with what they have found, newest first."""
    found = ((name, read_document(folder / name)) for name in search_names(folder)[:MOST_SEARCHES])
    return [(name, document) for name, document in found if document is not None]


def search_names(folder: Path) -> list[str]:
    """Return the names of the searches in a folder, newest first; none if it cannot be listed."""
    return names_with(folder, DOCUMENT)


def read_document(folder: Path) -> dict[str, Any] | None:
    """Return what a search has found so far; None where nothing is known that can be read."""
    try:
        with (folder / DOCUMENT).open("rb") as file:
            found = json.loads(file.read(MOST_DOCUMENT_BYTES))
        return found if isinstance(found, dict) and "targets" in found else None
    except (OSError, ValueError):
        return None
