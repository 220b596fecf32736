"""Fixtures of the tests on real mounts."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.mounts.fleet import Fleet, launch
from tests.mounts.sentinel import Guarded, make_guarded


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield launch(stack, tmp_path_factory.mktemp("fleet"))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Takes away, in reverse order, what a test has brought up."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def guarded(tmp_path: Path, home: Path) -> Iterator[Guarded]:
    guarded = make_guarded(tmp_path, home)
    yield guarded
    guarded.scene.kill()
