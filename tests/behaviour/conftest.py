"""Fixtures of the tests that run the real command line."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.behaviour.browser import Page, open_page
from tests.behaviour.page import Server, serve
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A program that serves the page, with two targets."""
    shell = make_shell(tmp_path_factory.mktemp("served"))
    targets = [f"--target={name}={shell.target(name)}" for name in ("near", "far")]
    with serve(shell, "tiny.yaml", *targets) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of Chromium."""
    with open_page(tmp_path_factory.mktemp("profile")) as found:
        yield found
