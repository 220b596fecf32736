"""Where Locust's own CSV files go: checked before anything runs, not found out by Locust later."""

import os
from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError

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
    is_folder = path.is_dir() or word.endswith("/")
    folder = path if path.is_dir() else path.absolute().parent
    if path.exists() and is_folder and not path.is_dir():
        message = f"--csv {word}: is a file and no folder"
        raise ReplayerError(message, hint="leave the slash out, or name another folder")
    if not folder.is_dir():
        message = f"--csv {word}: there is no folder {folder}"
        raise ReplayerError(message, hint="make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"--csv {word}: {folder} is not writable for this user"
        raise CsvRefusedError(message, hint="name a folder that you may write to")
    return str(path / NAME) if is_folder else word
