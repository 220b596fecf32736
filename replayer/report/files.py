"""A report that goes to a file: a new one, for nobody's work is overwritten."""

from pathlib import Path

from replayer.errors import ReplayerError

__all__ = ["write_new"]


def write_new(path: Path, text: str) -> None:
    """Write a text to a file that must not exist yet.

    Raises:
        ReplayerError: It exists, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        raise ReplayerError(message, hint="name a file that does not exist yet") from error
