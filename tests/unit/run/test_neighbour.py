"""A neighbour as it is asked for: its words, its name, its users, and the settings beside it."""

import argparse
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.run.neighbour import check_neighbour, read_neighbour
from replayer.run.options import Settings
from replayer.run.prepared_run import chosen_targets
from replayer.run.targets import TargetError

SCENARIO = """
name: store
about: Files of their own.
users: {count: 3, think_time: 1s}
duration: 1s
iterations: 5
datasets:
  files: {files: 20, sizes: 1KiB}
mix: {look: 1}
transactions:
  look: [stat: {from: files, pick: own}]
"""


@pytest.mark.parametrize(
    ("text", "scenario", "rate", "name"),
    [
        ("uploads", "uploads", None, "uploads"),
        ("a/uploads.yaml@20/s", "a/uploads.yaml", "20/s", "uploads"),
        ("a@b/uploads.yaml", "a@b/uploads.yaml", None, "uploads"),
        ("a@b/uploads.yaml@1.5/min", "a@b/uploads.yaml", "1.5/min", "uploads"),
    ],
)
def test_what_follows_the_last_at_is_a_rate(
    text: str, scenario: str, rate: str | None, name: str
) -> None:
    order = read_neighbour(text)
    assert (order.scenario, order.rate, order.name) == (scenario, rate, name)


@pytest.mark.parametrize("text", ["", "@20/s", "uploads@20", "uploads@20/fortnight", "uploads@0/s"])
def test_what_is_no_neighbour_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        read_neighbour(text)


def test_arrivals_have_as_many_users_as_the_files_allow(tmp_path: Path) -> None:
    file = tmp_path / "store.yaml"
    file.write_text(SCENARIO)
    assert check_neighbour(read_neighbour(f"{file}@2/s")).users == 16  # 20 files, one for each
    paced = check_neighbour(read_neighbour(str(file)))
    assert (paced.users, paced.rate_per_s) == (3, None)


def test_users_that_wait_for_each_other_are_no_neighbour() -> None:
    with pytest.raises(ReplayerError, match="its users have roles"):
        check_neighbour(read_neighbour("visibility"))


def test_each_target_has_two_settings_in_turn() -> None:
    order = read_neighbour("uploads@20/s")
    settings = Settings(targets=("nfs=/mnt/nfs", "disk=/srv"), neighbour=order)
    found = chosen_targets(settings)
    assert [(each.name, str(each.paths[0]), each.is_beside) for each in found] == [
        ("nfs", "/mnt/nfs", False),
        ("nfs+uploads", "/mnt/nfs", True),
        ("disk", "/srv", False),
        ("disk+uploads", "/srv", True),
    ]
    assert len({each.folder_of("run") for each in found[:2]}) == 2


def test_a_target_cannot_have_the_name_of_a_setting() -> None:
    order = read_neighbour("uploads")
    with pytest.raises(TargetError, match=r"two targets are named 'a\+uploads'"):
        chosen_targets(Settings(targets=("a=/a", "a+uploads=/b"), neighbour=order))
