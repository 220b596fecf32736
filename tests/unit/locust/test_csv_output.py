"""Locust's CSV files on a file system that takes no more."""

from pathlib import Path

import pytest
from locust import stats
from locust.env import Environment

from replayer.locust.patches import find_refusal, watch_csv_files
from tests.unit.limits import no_room


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> stats.StatsCSVFileWriter:
    """Locust's writer as it makes one itself, which writes one time only."""
    monkeypatch.setattr(stats, "StatsCSVFileWriter", stats.StatsCSVFileWriter)
    watch_csv_files()

    def end(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("locust.stats.gevent.sleep", end)
    return stats.StatsCSVFileWriter(Environment(), [0.5], str(tmp_path / "locust"))


def test_files_that_take_all_are_written_and_nothing_is_said(
    tmp_path: Path, writer: stats.StatsCSVFileWriter
) -> None:
    writer.stats_writer()
    assert find_refusal(writer.environment) is None
    writer.close_files()
    assert "Aggregated" in (tmp_path / "locust_stats.csv").read_text()


def test_files_that_take_no_more_are_a_refusal_at_the_end_and_raise_nothing(
    writer: stats.StatsCSVFileWriter,
) -> None:
    with no_room():
        writer.stats_writer()
    refusal = find_refusal(writer.environment)
    assert refusal is not None
    assert "CSV files are incomplete: File too large" in str(refusal)
    assert refusal.exit_code == 3
    writer.close_files()


def test_without_csv_files_nothing_is_said() -> None:
    assert find_refusal(Environment()) is None
