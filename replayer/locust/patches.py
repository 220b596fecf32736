"""What of Locust is replaced: its figures, its CSV files on a full disk, its keys in a terminal.

Times keep the digits of microseconds. A percentile that too few samples support is shown as a dash.
A key that adds or removes users would change the plan under its report, so keys have no effect.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any, Protocol

from locust import html, main, runners, stats
from locust.env import Environment

from replayer.errors import OutsideError
from replayer.measure.summary import samples_needed

DIGITS = 4
"""Chosen: one more than the histograms hold, so that nothing is rounded twice."""
GAP = "-"
"""Where Locust's charts (ECharts) leave a gap; they draw null as 0."""
ROUNDED = re.compile(r'(title:[`"](?:Median|Average) \(ms\)[`"]),round:2')
"""Columns of a script of Locust's that show whole hundredths of a millisecond."""
DASHES = "<style>td:not(:first-child):empty::before{content:'\N{EN DASH}'}</style></head>"
_REPORT = "report.html"

_Entry = stats.StatsEntry
_Times = Mapping[float, int]
_find_current: Callable[[_Entry, float], float | None] = _Entry.get_current_response_time_percentile
_describe: Callable[[_Entry], dict[str, Any]] = _Entry.to_dict
_render: Callable[..., str] = html.render_template_from


class _RowWriter(Protocol):
    """What takes rows of CSV."""

    def writerow(self, row: Iterable[object], /) -> object:
        """Take one."""


def correct_figures() -> None:
    """Have Locust show times as reports have them; a second time changes nothing."""
    stats.bucket_response_time = round_figure  # type: ignore[assignment] # its manual says so
    stats.calculate_response_time_percentile = _percentile  # type: ignore[assignment]
    _Entry.get_current_response_time_percentile = _current_percentile  # type: ignore[method-assign,assignment]
    _Entry.to_dict = _to_dict  # type: ignore[method-assign,assignment]
    _Entry.percentile = _percentile_line  # type: ignore[method-assign,assignment]
    stats.StatsCSV._percentile_fields = _percentile_fields  # type: ignore[method-assign,assignment] # noqa: SLF001 - no option of Locust's does it
    stats.StatsCSV._requests_data_rows = _write_rows  # type: ignore[method-assign,assignment] # noqa: SLF001 - nor this
    html.render_template_from = _render_page


def round_figure(value: float) -> float:
    """Round to some digits, and never before the point."""
    short = float(f"{value:.{DIGITS}g}")
    return round(value) if abs(short) >= 10 ** (DIGITS - 1) else short


def show_digits(script: str) -> str:
    """Have a script of Locust's show times as they are sent."""
    return ROUNDED.sub(r"\1", script)


def _percentile(times: _Times, _requests: int, share: float) -> float | None:
    """Return the time at a percentile, by nearest rank; None: too few samples."""
    samples = sum(times.values())
    if samples < samples_needed(share * 100):
        return None
    # As in histograms, so that a float's last bit does not decide.
    rank, ended = ceil(share * samples * (1 - 1e-12)), 0
    for time in sorted(times):
        ended += times[time]
        if ended >= rank:
            return time
    return max(times)


def _current_percentile(entry: _Entry, share: float) -> float | str:
    """Return the percentile of the last ten seconds, as charts draw it."""
    found = _find_current(entry, share)
    return GAP if found is None else found


def _times(entry: _Entry) -> dict[str, float | None]:
    """Return what is known without percentiles, in milliseconds."""
    names = ("median", "avg", "min", "max")
    if not entry.response_times:
        return dict.fromkeys(f"{name}_response_time" for name in names)
    found = ((f"{name}_response_time", getattr(entry, f"{name}_response_time")) for name in names)
    return {name: round_figure(value) for name, value in found}


def _to_dict(entry: _Entry, escape_string_values: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - as Locust calls it
    del escape_string_values
    return {**_describe(entry), **_times(entry)}


def _percentile_line(entry: _Entry) -> str:
    """Return a line of the table that Locust prints at its end."""
    found = map(entry.get_response_time_percentile, stats.PERCENTILES_TO_REPORT)
    first, *others = (_put(time) for time in found)
    name = f"{entry.method or '':<{stats.STATS_TYPE_WIDTH}} {entry.name:<{stats.STATS_NAME_WIDTH}}"
    cells = (f"{cell:>6}" for cell in (*others, entry.num_requests))
    return " ".join([name, f"{first:>8}", *cells])


def _percentile_fields(
    writer: stats.StatsCSV,
    entry: _Entry,
    use_current: bool = False,  # noqa: FBT001, FBT002 - as Locust calls it
) -> list[float | str]:
    """Return the percentile columns of an entry, in milliseconds."""
    is_current = use_current and entry.use_response_times_cache
    find = (
        entry.get_current_response_time_percentile
        if is_current
        else entry.get_response_time_percentile
    )
    return [_put(find(share)) for share in writer.percentiles_to_report]


def _put(time: float | str | None) -> float | str:
    """Return a time as a CSV file of Locust's has it."""
    return "N/A" if time is None or time == GAP else time


def _write_rows(writer: stats.StatsCSV, rows: _RowWriter) -> None:
    """Write a row for each entry, and one for all together."""
    recorded = writer.environment.stats
    for entry in (*stats.sort_stats(recorded.entries), recorded.total):
        counts = (entry.num_requests, entry.num_failures)
        rates = (entry.avg_content_length, entry.total_rps, entry.total_fail_per_sec)
        times = map(_put, _times(entry).values())
        percentiles = _percentile_fields(writer, entry)
        rows.writerow([entry.method, entry.name, *counts, *times, *rates, *percentiles])


def _render_page(file: str, *where: Any, **arguments: Any) -> str:  # noqa: ANN401 - Locust's
    """Render a page of Locust's, its report with all digits."""
    page = _render(file, *where, **arguments)
    return show_digits(page).replace("</head>", DASHES, 1) if file == _REPORT else page


def stop_at_once() -> None:
    """Have Locust not find out which line stops a run: it would look through all source files."""
    if not runners.logger.isEnabledFor(logging.DEBUG):
        runners.inspect = None  # type: ignore[assignment,attr-defined] # only its log would say so


def leave_keys_alone() -> None:
    """Have Locust not listen to keys; to be called before its main begins to."""
    main.input_listener = _listen_to_nothing  # type: ignore[attr-defined,assignment] # its main looks it up


def _listen_to_nothing(_actions: Mapping[str, Callable[[], object]]) -> Callable[[], None]:
    return lambda: None


_Files = stats.StatsCSVFileWriter
_writers: "dict[Environment, _CheckedCsvWriter]" = {}


def watch_csv_files() -> None:
    """Have Locust write its CSV files so that they cost a run nothing else."""
    stats.StatsCSVFileWriter = _CheckedCsvWriter  # type: ignore[assignment,misc] # Locust looks it up when it begins


def find_refusal(environment: Environment) -> OutsideError | None:
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

    def find_refusal(self) -> OutsideError | None:
        """Write out what is held back; return what refused by now."""
        for file in self._handles():
            try:
                file.flush()
            except OSError as error:
                self._error = self._error or error
        if self._error is None:
            return None
        reason = self._error.strerror or self._error
        message = f"--csv {self.base_filepath}: Locust's CSV files are incomplete: {reason}"
        return OutsideError(message, hint="free some space there, or give another folder")

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
