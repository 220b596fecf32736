"""Reports that go to files: new ones, for nobody's work is overwritten."""

from dataclasses import dataclass
from pathlib import Path

from replayer.errors import ReplayerError

__all__ = ["ReportFiles", "refuse_second_file", "write_new"]

_HINT = "name a file that does not exist yet"


@dataclass(frozen=True)
class ReportFiles:
    """Where a run's report goes at its end, beside what is printed; None: not asked for.

    Attributes:
        html: The page.
        junit: The verdict for a pipeline.
    """

    html: Path | None = None
    junit: Path | None = None

    def check(self) -> None:
        """Refuse files that could not be made: before the run, not after an hour of it.

        Raises:
            ReplayerError: One exists, or its folder does not.
        """
        named = [path for path in (self.html, self.junit) if path is not None]
        for path in named:
            if path.exists() or path.is_symlink():
                message = f"{path}: File exists"
                raise ReplayerError(message, hint=_HINT)
            if not path.absolute().parent.is_dir():
                message = f"{path}: there is no folder {path.parent}"
                raise ReplayerError(message, hint="make it first")
        if len({path.absolute() for path in named}) < len(named):
            message = f"{named[0]}: is asked to hold two reports"
            raise ReplayerError(message, hint=_HINT)


def refuse_second_file(html: Path | None, output: Path | None) -> None:
    """Refuse a file for what is not printed where a page is written instead.

    Raises:
        ReplayerError: Both are named.
    """
    if html is not None and output is not None:
        message = f"-o {output} is without effect: --html {html} is written, and nothing else"
        raise ReplayerError(message, hint="ask for one of them at a time")


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
        raise ReplayerError(message, hint=_HINT) from error
