"""Profiles of the property tests, and the file systems that they run on."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

# A fresh folder is made inside of every example, so that fixtures may be shared by all.
SHARED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=60, derandomize=True, **SHARED)
settings.register_profile("long", max_examples=5000, print_blob=True, **SHARED)


def pytest_configure() -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session", params=["disk", "memory"])
def mount(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A folder on the disk's file system, and one in memory."""
    if request.param == "disk":
        yield tmp_path_factory.mktemp("mount")
    else:
        with TemporaryDirectory(dir="/dev/shm", prefix="replayer-property-") as folder:
            yield Path(folder)
