"""Finding the command to record, before anything else is done for it."""

import shutil

from replayer.errors import ReplayerError

__all__ = ["check_command"]


def check_command(name: str) -> None:
    """Make sure that a command would be found as a shell finds it.

    Raises:
        ReplayerError: There is none, or it cannot be executed.
    """
    if shutil.which(name) is not None:
        return
    message = f"{name}: command not found, or not executable"
    raise ReplayerError(message, hint="write the command behind --, as in: -- tar xf a.tar")
