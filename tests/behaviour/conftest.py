"""Fixtures of the tests that run the real command line."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.behaviour.shell import Shell, Until, make_shell, why_no_ebpf


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return make_shell(tmp_path)


@pytest.fixture(params=["ebpf", "strace"])
def recorder(request: pytest.FixtureRequest) -> str:
    """Name each recorder that can be used here."""
    name: str = request.param
    if name == "ebpf" and why_no_ebpf():
        pytest.skip(f"no eBPF here: {why_no_ebpf()}")
    return name


@pytest.fixture
def until() -> Until:
    """Wait until something is so."""

    def wait(is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, "it has not come to be so within 60 s"
            time.sleep(0.02)

    return wait
