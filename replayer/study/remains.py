"""What attempts at steps leave: folders on targets, and results that nobody has noted.

Nothing is removed here. A step is a process of its own, so that it may outlive its study by the
time that it takes to end.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.measure import RunRecord, load_run, summarise
from replayer.measure.run import is_alive, is_elsewhere
from replayer.run.targets import parse_targets
from replayer.run.watchdog import ask
from replayer.study.journal import Attempt, Journal
from replayer.verdict import judge

__all__ = ["SETTLED", "adopt", "find_left", "finished_code", "has_measured"]

SETTLED = frozenset({0, 1, 4})
"""Exit codes after which a step is not tried again: it ran, whatever it proved."""
ORPHAN_S = 120.0  # chosen: users end within their stop timeout, and folders are removed
POLL_S = 0.1


def adopt(journal: Journal, step: str, say: Callable[[str], None]) -> None:
    """Note the attempts at a step that its study was killed before; wait for one that still ends.

    Raises:
        ReplayerError: One does not end.
    """
    noted = {attempt.folder for attempt in journal.state.attempts.get(step, ())}
    for folder in sorted(journal.path.glob(f"{step}-*")):
        number = folder.name.removeprefix(f"{step}-")
        if folder.name in noted or not number.isdecimal():  # another step's, such as STEP-warm-1
            continue
        if not (folder / "run.json").exists():  # it was killed before there was a run
            continue
        _wait_for(load_run(folder), say)
        code = finished_code(folder)
        if code is not None:
            says = "it ended after its study was killed"
            done = code in SETTLED
            journal.note(step, Attempt(folder=folder.name, done=done, code=code, says=says))


def has_measured(folder: Path) -> bool:
    """Whether a step has kept its results: what it does from then on is show them and remove."""
    return _status(folder) not in {None, "running"}


def finished_code(folder: Path) -> int | None:
    """Return what the record of a run that finished comes to as an exit code; None of any other."""
    if _status(folder) != "finished":
        return None
    record = load_run(folder)
    return judge(record, summarise(record)).exit_code


def _status(folder: Path) -> str | None:
    with suppress(OSError, ValueError, KeyError):
        return str(json.loads((folder / "run.json").read_text())["status"])
    return None


def find_left(folder: Path, targets: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of a step that are still on its targets."""
    with suppress(OSError, ValueError, KeyError):
        run = json.loads((folder / "run.json").read_text())["id"]
        return tuple(_left(f"replayer-{run}", targets))
    return ()


def _left(name: str, targets: Sequence[str]) -> Iterator[str]:
    for target in parse_targets(targets):
        path = target.paths[0] / name
        try:
            is_there = ask(path, path.exists)
        except ReplayerError:
            is_there = True  # it hangs: nothing was removed there
        if is_there:
            yield str(path)


def _wait_for(record: RunRecord, say: Callable[[str], None]) -> None:
    process = record.run.process
    if record.status == "running" and is_elsewhere(process):
        # Mostly of a container that is gone with it; to refuse would keep a study from going on.
        say(
            f"{record.folder.name} was started in another PID namespace (a container?): if it goes "
            "on there, end it"
        )
    if is_alive(process):
        say(f"{record.folder.name} still ends (process {process.pid}): waiting for it")
    deadline = time.monotonic() + ORPHAN_S
    while is_alive(process):
        if time.monotonic() > deadline:
            message = f"{record.folder}: the step of the study that was killed still runs"
            raise ReplayerError(message, hint=f"end it first: kill {process.pid}")
        time.sleep(POLL_S)
