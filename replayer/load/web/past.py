"""Past runs: the folders beside the one that a run from the page gets, and their ranking.

Folders are found by listing, never by a name that was sent. Reports and rankings are the report
room's; here runs become targets of one summary, so that they can be ranked as targets are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from replayer.errors import ReplayerError
from replayer.measure import Run, RunRecord, Summary, TargetSummary, load_run, summarise
from replayer.report import Ranked, rank

__all__ = ["Comparison", "PastRun", "compare_runs", "find_run", "list_runs"]

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
class Comparison:
    """Runs side by side.

    Attributes:
        names: What each run's targets are called here.
        ranking: Each figure that at least two have.
        notes: What stands against comparing them.
    """

    names: tuple[str, ...]
    ranking: tuple[Ranked, ...]
    notes: tuple[str, ...]


def list_runs(folder: Path) -> list[PastRun]:
    """Return the runs in a folder, newest first; what is no run is left out."""
    if not folder.is_dir():
        return []
    names = sorted((each.name for each in folder.iterdir() if _is_run(each)), reverse=True)
    found = (_load(folder / name) for name in names[:MOST_RUNS])
    return [run for run in found if run is not None]


def find_run(folder: Path, name: str) -> Path:
    """Return the folder of a run that is listed.

    Raises:
        NoRunError: None of that name is.
    """
    if folder.is_dir() and name in {each.name for each in folder.iterdir() if _is_run(each)}:
        return folder / name
    message = f"{name}: there is no such run in {folder}"
    raise NoRunError(message)


def compare_runs(folders: Sequence[Path]) -> Comparison:
    """Rank the targets of several runs together.

    Raises:
        ReplayerError: Too few or too many, or one cannot be read.
    """
    if not 2 <= len(folders) <= MOST_COMPARED:  # noqa: PLR2004 - one has nothing to compare with
        message = f"choose 2 to {MOST_COMPARED} runs to compare, got {len(folders)}"
        raise ReplayerError(message)
    records = [load_run(folder) for folder in folders]
    targets = [target for record in records for target in _targets(record)]
    numbered = tuple(
        target.model_copy(update={"index": index}) for index, target in enumerate(targets)
    )
    return Comparison(
        names=tuple(target.name for target in numbered),
        ranking=rank(Summary(targets=numbered)),
        notes=tuple(_notes([record.run for record in records])),
    )


def _targets(record: RunRecord) -> list[TargetSummary]:
    several = len(record.run.targets) > 1
    return [
        target.model_copy(
            update={
                "name": f"{record.folder.name} {target.name}" if several else record.folder.name
            }
        )
        for target in summarise(record).targets
    ]


def _notes(runs: Sequence[Run]) -> list[str]:
    facts: dict[str, set[object]] = {
        "different plans were run: compare only transactions that do the same": {
            run.plan.fingerprint for run in runs
        },
        "the caches were in different states": {run.cache.asked for run in runs},
        "the numbers of users differ": {run.load.users for run in runs},
        "the clients differ": {(run.machine.host, run.machine.kernel) for run in runs},
        "an acknowledged write is worth different things on these targets": {
            target.guarantee.says for run in runs for target in run.targets
        },
    }
    return [note for note, values in facts.items() if len(values) > 1]


def _is_run(folder: Path) -> bool:
    return not folder.is_symlink() and (folder / "run.json").is_file()


def _load(folder: Path) -> PastRun | None:
    try:
        return PastRun(folder.name, Run.model_validate_json((folder / "run.json").read_bytes()))
    except (OSError, ValidationError):
        return None
