"""The same pieces on kernel NFS 4.1, with a sync and an async export, two clients of each."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.mounts.fleet import WANTED
from tests.mounts.guest import MOUNTS, Guest, boot
from tests.mounts.machine import CannotError
from tests.mounts.pieces import PIECES, Piece
from tests.mounts.play import RUNS_WELL, Outcome
from tests.mounts.test_pieces import judge

pytestmark = [
    pytest.mark.mounts,
    pytest.mark.skipif(WANTED != "all", reason="minutes: just mounts all"),
    pytest.mark.timeout(3900),
]

REFERENCE = "memory"
LIMIT_S = 3500
CHOSEN = os.environ.get("REPLAYER_PIECES", "").split()


PLAYED = [piece for piece in PIECES if not CHOSEN or piece.name in CHOSEN]
GUESTS = min(os.cpu_count() or 1, len(PLAYED), 4)
"""Each is a single process: the pieces are dealt to as many guests as there are CPUs."""


def play_in_guest(guest: Guest, folder: Path, pieces: list[str]) -> dict[str, Any]:
    places = {REFERENCE: ("/dev/shm/reference",), **MOUNTS}  # noqa: S108 - the guest's own
    mounts = [f"--mount={name}={','.join(paths)}" for name, paths in places.items()]
    words = (sys.executable, "-m", "tests.mounts.play", f"--output={folder}/played", *mounts)
    guest.run(*words, *pieces, limit_s=LIMIT_S)
    found: dict[str, Any] = json.loads(Path(folder, "played").read_text())
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    names = [piece.name for piece in PLAYED]
    folders = [tmp_path_factory.mktemp("guest") for _ in range(GUESTS)]
    dealt = [names[number::GUESTS] for number in range(GUESTS)]
    try:
        guests = [boot(folder) for folder in folders]
        with ThreadPoolExecutor(GUESTS) as threads:
            parts = list(threads.map(play_in_guest, guests, folders, dealt))
    except CannotError as error:
        pytest.skip(str(error))
    return {name: outcome for part in parts for name, outcome in part.items()}


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("piece", PLAYED, ids=lambda piece: piece.name)
def test_a_piece_ends_on_nfs_as_in_memory(played: dict[str, Any], piece: Piece, mount: str) -> None:
    found = played[piece.name]
    assert found["code"] in RUNS_WELL, found["said"]
    outcome, reference = (Outcome(**found["mounts"][name]) for name in (mount, REFERENCE))
    judge(piece, mount, outcome, reference)
    assert outcome.requests > 0, "the kernel counts what its mounts ask"
    assert reference.requests == 0
