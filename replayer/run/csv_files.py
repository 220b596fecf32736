"""Where Locust's own CSV files are written."""

import os
from pathlib import Path

from replayer.errors import OutsideError, ReplayerError
from replayer.paths import exists, is_folder

CSV_NAME = "locust"
"""What files in a folder begin with, as in ``locust_stats.csv``."""


def csv_prefix(word: str) -> str:
    """Return Locust's prefix for a word: in a folder (made, if it ends with a slash), or as given.

    Raises:
        ReplayerError: The folder that it would be in does not exist.
        OutsideError: It cannot be written.
    """
    path = Path(word)
    is_there = is_folder(path)
    names_folder = is_there or word.endswith("/")
    folder = path if is_there else path.absolute().parent
    if names_folder and not is_there and exists(path):
        message = f"--csv {word}: is a file, not a folder"
        raise ReplayerError(message, hint="leave the slash out, or give another folder")
    if not is_folder(folder):
        message = f"--csv {word}: the folder {folder} does not exist"
        raise ReplayerError(message, hint="create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"--csv {word}: {folder} is not writable for this user"
        raise OutsideError(message, hint="give a folder that you can write to")
    return str(path / CSV_NAME) if names_folder else word
