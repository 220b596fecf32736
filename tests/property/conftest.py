"""The file systems that the property tests run on."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="session")
def memory() -> Iterator[Path]:
    """A folder on a file system in memory."""
    with TemporaryDirectory(dir="/dev/shm", prefix="replayer-property-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session", params=["disk", "memory"])
def mount(
    request: pytest.FixtureRequest, memory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder on the disk's file system, and one in memory."""
    return memory if request.param == "memory" else tmp_path_factory.mktemp("mount")
