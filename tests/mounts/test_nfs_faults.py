"""Faults of kernel NFS, of a disk below ext4 and of the clock, in the guest."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.mounts.fleet import WANTED
from tests.mounts.guest import boot
from tests.mounts.machine import CannotError
from tests.mounts.nfs_faults import FAULTS
from tests.mounts.scene import TABLE

pytestmark = [
    pytest.mark.mounts,
    pytest.mark.skipif(WANTED != "all", reason="minutes: just mounts all"),
    pytest.mark.timeout(1800),
]

LIMIT_S = 1500
CHOSEN = os.environ.get("REPLAYER_FAULTS", "").split() or list(FAULTS)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("guest")
    table = folder / "table"
    words = (sys.executable, "-m", "tests.mounts.nfs_faults", f"--output={folder}/found")
    try:
        boot(folder).run("env", f"REPLAYER_FAULT_TABLE={table}", *words, *CHOSEN, limit_s=LIMIT_S)
    except CannotError as error:
        pytest.skip(str(error))
    if TABLE is not None and table.exists():
        with Path(TABLE).open("a") as rows:
            rows.write(table.read_text())
    told: dict[str, str] = json.loads((folder / "found").read_text())
    return told


@pytest.mark.parametrize("fault", CHOSEN)
def test_a_fault_in_the_guest_ends_as_it_should(found: dict[str, str], fault: str) -> None:
    assert found[fault] == ""
