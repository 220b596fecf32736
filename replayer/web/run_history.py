"""Past runs: the folders beside the one that a run from the page gets, and their comparison.

Folders are found by listing, never by a name that was sent. Reports, comparisons and the judgement
whether two runs did the same work are the report room's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from replayer.errors import ReplayerError
from replayer.measure import Run, RunRecord, load_run
from replayer.paths import UnaskablePathError, is_file, is_link
from replayer.report import Comparison, compare, plan_changes, render_html, same_work

__all__ = ["Beside", "PastRun", "compare_runs", "find_run", "list_runs", "render_comparison"]

MOST_RUNS = 200
"""Chosen: the newest ones; a longer list is for the command line."""
MOST_COMPARED = 8
"""Chosen: columns that a person can follow."""


class NoRunError(ReplayerError):
    """There is no run of that name here."""


@dataclass(frozen=True)
class PastRun:
    """A run folder, as far as run.json tells.

    Attributes:
        name: The folder's.
        run: run.json.
    """

    name: str
    run: Run


@dataclass(frozen=True)
class Beside:
    """Runs side by side.

    Attributes:
        comparison: As ``replayer compare`` makes it.
        notes: What stands against comparing them.
    """

    comparison: Comparison
    notes: tuple[str, ...]


def list_runs(folder: Path) -> list[PastRun]:
    """Return the runs in a folder, newest first; what is no run is left out."""
    names = sorted(_names(folder), reverse=True)
    found = (_load(folder / name) for name in names[:MOST_RUNS])
    return [run for run in found if run is not None]


def find_run(folder: Path, name: str) -> Path:
    """Return the folder of a run that is listed.

    Raises:
        NoRunError: None of that name is.
    """
    if name in _names(folder):
        return folder / name
    message = f"{name}: there is no such run in {folder}"
    raise NoRunError(message)


def compare_runs(folders: Sequence[Path]) -> Beside:
    """Compare the targets of several runs; other work is said, and not refused.

    Raises:
        ReplayerError: Too few or too many, or one cannot be read.
    """
    records = _records(folders)
    comparison = compare(records, _plans(records))
    return Beside(comparison, (*_other_work(records), *comparison.cautions))


def render_comparison(folders: Sequence[Path]) -> str:
    """Render the same as a page of its own.

    Raises:
        ReplayerError: See above.
    """
    records = _records(folders)
    return render_html(records, _plans(records))


def _records(folders: Sequence[Path]) -> list[RunRecord]:
    if not 2 <= len(folders) <= MOST_COMPARED:  # noqa: PLR2004 - one has nothing to compare with
        message = f"choose 2 to {MOST_COMPARED} runs to compare, got {len(folders)}"
        raise ReplayerError(message)
    return [load_run(folder) for folder in folders]


def _plans(records: Sequence[RunRecord]) -> Literal["same plan", "different plans"]:
    alike = all(same_work(records[0], other) for other in records[1:])
    return "same plan" if alike else "different plans"


def _other_work(records: Sequence[RunRecord]) -> Iterator[str]:
    """Say which runs did other work than the first."""
    first = records[0]
    for other in records[1:]:
        if not same_work(first, other):
            yield (
                f"{first.folder.name} and {other.folder.name} did different work: they "
                f"differ in {plan_changes(first, other)}; only what bears the same name is compared"
            )


def _names(folder: Path) -> list[str]:
    """Return the names of the runs in a folder; one that may not be listed shows none."""
    try:
        return [each.name for each in folder.iterdir() if _is_run(each)]
    except OSError:
        return []


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run's; those of others may not let themselves be looked into."""
    try:
        return not is_link(folder) and is_file(folder / "run.json")
    except UnaskablePathError:
        return False


def _load(folder: Path) -> PastRun | None:
    try:
        return PastRun(folder.name, Run.model_validate_json((folder / "run.json").read_bytes()))
    except (OSError, ValidationError):
        return None
