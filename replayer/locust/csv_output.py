"""Locust's CSV files where there is no room for them: a refusal at the end, no tracebacks."""

from typing import Any

from locust import stats
from locust.env import Environment

from replayer.run.csv_files import CsvRefusedError

__all__ = ["find_refusal", "watch_csv_files"]

_Files = stats.StatsCSVFileWriter
_writers: "dict[Environment, _CheckedCsvWriter]" = {}


def watch_csv_files() -> None:
    """Have Locust write its CSV files so that they cost a run nothing else."""
    stats.StatsCSVFileWriter = _CheckedCsvWriter  # type: ignore[assignment,misc] # Locust looks it up when it begins


def find_refusal(environment: Environment) -> CsvRefusedError | None:
    """Return why CSV files are not whole; None when they are, or when none were asked for."""
    writer = _writers.pop(environment, None)
    return None if writer is None else writer.find_refusal()


class _CheckedCsvWriter(_Files):
    """Locust's own, which remembers the first file that took no more."""

    def __init__(self, environment: Environment, *how: Any) -> None:  # noqa: ANN401 - as Locust's
        super().__init__(environment, *how)
        self._error: OSError | None = None
        _writers[environment] = self

    def stats_writer(self) -> None:
        """Write until a file takes no more."""
        try:
            super().stats_writer()
        except OSError as error:
            self._error = self._error or error

    def find_refusal(self) -> CsvRefusedError | None:
        """Write out what is held back; return what refused by now."""
        for file in self._handles():
            try:
                file.flush()
            except OSError as error:
                self._error = self._error or error
        if self._error is None:
            return None
        reason = self._error.strerror or self._error
        message = f"--csv {self.base_filepath}: Locust's CSV files are not whole: {reason}"
        return CsvRefusedError(message, hint="make room there, or name another folder")

    def close_files(self) -> None:
        """Close the files; what they do not take has been told."""
        for file in self._handles():
            try:
                file.close()
            except OSError as error:
                self._error = self._error or error

    def _handles(self) -> tuple[Any, ...]:
        return (
            self.requests_csv_filehandle,
            self.stats_history_csv_filehandle,
            self.failures_csv_filehandle,
            self.exceptions_csv_filehandle,
        )
