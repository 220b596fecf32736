"""Profiles of the property tests, and the file systems that they run on."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

# A fresh folder is made inside of every example, so that fixtures may be shared by all.
EVERY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("default", EVERY, max_examples=25, derandomize=True)
settings.register_profile("long", EVERY, max_examples=2000, print_blob=True)


def pytest_configure() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long run takes its time."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "long":
        for item in items:
            item.add_marker(pytest.mark.timeout(0))


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
