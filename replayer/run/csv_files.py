"""Where Locust's own CSV files go: checked before anything runs, not found out by Locust later."""

import os
from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.paths import exists, is_folder

__all__ = ["CsvRefusedError", "csv_prefix"]

NAME = "locust"
"""What files in a folder begin with, as in ``locust_stats.csv``."""


class CsvRefusedError(ReplayerError):
    """A folder that takes no files."""

    exit_code = EXIT_ENVIRONMENT


def csv_prefix(word: str) -> str:
    """Return Locust's prefix for a word: in a folder, or what was given.

    Args:
        word: A folder, or one to be made if it ends with a slash; else a prefix.

    Raises:
        ReplayerError: The folder that it would be in does not exist.
        CsvRefusedError: It cannot be written.
    """
    path = Path(word)
    is_there = is_folder(path)
    names_folder = is_there or word.endswith("/")
    folder = path if is_there else path.absolute().parent
    if names_folder and not is_there and exists(path):
        message = f"--csv {word}: is a file and no folder"
        raise ReplayerError(message, hint="leave the slash out, or name another folder")
    if not is_folder(folder):
        message = f"--csv {word}: there is no folder {folder}"
        raise ReplayerError(message, hint="make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"--csv {word}: {folder} is not writable for this user"
        raise CsvRefusedError(message, hint="name a folder that you may write to")
    return str(path / NAME) if names_folder else word
