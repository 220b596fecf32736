"""Which processes are recorded when some that run are named, and which cannot be."""

import os
from collections.abc import Sequence

from replayer.capture.processes import ancestors_of, family_of, is_running, tracer_of
from replayer.capture.refusal import TracerError
from replayer.errors import ReplayerError

__all__ = ["family_to_attach"]


def family_to_attach(pids: Sequence[int]) -> list[int]:
    """Return processes and their descendants, each once.

    Raises:
        ReplayerError: There is no such process, or recording it would record this program.
        TracerError: One of them is traced by somebody else.
    """
    return list(dict.fromkeys(member for pid in pids for member in _family(pid)))


def _family(pid: int) -> list[int]:
    if not is_running(pid):
        raise ReplayerError(f"-p {pid}: no such process", hint="find it with pgrep -a NAME")
    if pid in ancestors_of(os.getpid()):
        message = f"-p {pid}: this program was started below it and would record itself"
        raise ReplayerError(message, hint="start the capture from another terminal")
    family = family_of(pid)
    for member in family:
        tracer = tracer_of(member)
        if tracer:
            message = f"-p {pid}: process {member} is traced by process {tracer} already"
            raise TracerError(message, hint="a process can be traced by one program at a time")
    return family
