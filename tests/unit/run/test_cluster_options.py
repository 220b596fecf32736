"""Numbers of processes that mean nothing are refused before Locust acts on them."""

import argparse

import pytest

from replayer.errors import ReplayerError
from replayer.run.roles import arrange_modes


def options(processes: int | None) -> argparse.Namespace:
    return argparse.Namespace(
        master=False, worker=False, processes=processes, master_bind_host="127.0.0.1"
    )


@pytest.mark.parametrize("count", [0, -2])
def test_no_processes_at_all_are_refused(count: int) -> None:
    with pytest.raises(ReplayerError, match=f"--processes must be at least 1, .*, got {count}$"):
        arrange_modes(options(count))


@pytest.mark.parametrize("count", [None, -1, 1, 2])
def test_one_or_more_or_one_for_each_cpu_are_taken(count: int | None) -> None:
    arrange_modes(options(count))
