"""Where the program is started and with which words: looked at before anything else is done."""

import os
from collections.abc import Sequence

from replayer.errors import OutsideError, ReplayerError


def check_process(words: Sequence[str]) -> None:
    """Refuse a working directory that is gone, and names that no run folder or report could hold.

    Raises:
        OutsideError: The working directory was deleted.
        ReplayerError: Its name, or a word of the command line, is not UTF-8.
    """
    for name in (*words, _working_directory()):
        try:
            name.encode()
        except UnicodeEncodeError as error:
            shown = os.fsencode(name).decode(errors="backslashreplace")
            message = f"{shown}: is not UTF-8, but names must be"
            raise ReplayerError(message, hint="rename it, or use a path without it") from error


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - nothing is done with it as a path
    except FileNotFoundError as error:
        message = "the working directory is gone"
        raise OutsideError(message, hint="change to a folder that is there: cd") from error
