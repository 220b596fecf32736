"""What workers read of what a master sends."""

import pytest

from replayer.cluster.wire import read_name
from replayer.errors import ReplayerError


def test_names_of_runs_and_of_their_folders_are_taken() -> None:
    for name in ("20261122T025808-1342", "replayer-20261122T025808-1342"):
        assert read_name(name) == name


@pytest.mark.parametrize("word", ["", ".", "..", "../other", "a/b", "/etc", "a\n", "a" * 300])
def test_no_path_is_taken_from_a_master(word: str) -> None:
    with pytest.raises(ReplayerError, match="not a plain name"):
        read_name(word)
