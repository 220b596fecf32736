"""Which targets have files that can be written past the page cache: each is asked.

Not all file systems have O_DIRECT (tmpfs has it since Linux 6.6). A job that needs it can then be
run on the others alone.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress

from replayer.errors import ReplayerError
from replayer.fio import JobFile
from replayer.fio.places import FolderPlace
from replayer.fio.promises import is_direct
from replayer.fio.run_record import marker_note
from replayer.run.bounded_call import ask
from replayer.run.interruption import Interruption
from replayer.run.targets import parse_targets

__all__ = ["without_direct"]


def without_direct(files: Sequence[JobFile], targets: Sequence[str]) -> tuple[str, ...]:
    """Return those targets that have no O_DIRECT, if the jobs need it.

    A target that cannot be asked is not among them: who runs the jobs there says why.
    """
    if not any(is_direct(section) for file in files for section in file.sections):
        return ()
    return tuple(word for word in targets if _lacks_direct(word, files))


def _lacks_direct(word: str, files: Sequence[JobFile]) -> bool:
    run = f"direct-{secrets.token_hex(4)}"
    try:
        (target,) = parse_targets([word])
        place = FolderPlace(target)
        place.create(run, marker_note(run, files))
    except ReplayerError:
        return False
    try:
        return not ask(place.path, place.has_direct)
    except ReplayerError:
        return False
    finally:
        with suppress(ReplayerError):
            place.remove(Interruption())
