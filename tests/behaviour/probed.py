"""Captures with the probe in the kernel, for tests that need it."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.shell import Done, Shell, why_no_ebpf

WHY_NOT = why_no_ebpf()
needs_probe = pytest.mark.skipif(bool(WHY_NOT), reason=f"no eBPF here: {WHY_NOT}")


def capture(shell: Shell, *words: str | Path, trace: str = "trace") -> Done:
    (shell.home / "root").mkdir(exist_ok=True)
    return shell.run("capture", "--recorder", "ebpf", "-o", trace, "--root", "root", *words)


def load(shell: Shell, name: str = "trace/trace.json") -> Any:  # noqa: ANN401 - JSON
    return json.loads((shell.home / name).read_text())


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
