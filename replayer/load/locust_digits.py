"""The digits of times in Locust's statistics: a file call takes microseconds, no milliseconds."""

from locust import stats

__all__ = ["keep_digits"]

DIGITS = 3
"""Chosen: as many as the histograms hold."""


def keep_digits() -> None:
    """Have Locust round to three digits where it would to whole milliseconds, in its CSV too."""
    stats.bucket_response_time = _round_time  # type: ignore[assignment] # its manual says so
    # No variable of Locust's keeps its CSV from cutting percentiles off at the point.
    stats.StatsCSV._percentile_fields = _percentiles  # type: ignore[method-assign,assignment] # noqa: SLF001


def _round_time(milliseconds: float) -> float:
    return float(f"{milliseconds:.{DIGITS}g}")


def _percentiles(
    writer: stats.StatsCSV,
    entry: stats.StatsEntry,
    use_current: bool = False,  # noqa: FBT001, FBT002 - as Locust calls it
) -> list[float] | list[str]:
    """Return the percentile columns of an entry, in milliseconds."""
    if not entry.num_requests:
        return writer.percentiles_na
    is_current = use_current and entry.use_response_times_cache
    find = (
        entry.get_current_response_time_percentile
        if is_current
        else entry.get_response_time_percentile
    )
    return [float(find(percent) or 0) for percent in writer.percentiles_to_report]
