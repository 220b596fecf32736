"""The committed object of the probe is what its source builds to."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BPF = Path(__file__).parents[3] / "replayer/native/recorder/bpf"
JUST = Path(sys.executable).parent / "just"
CLANG = shutil.which("clang-14")


def version() -> str:
    if CLANG is None:
        return ""
    return subprocess.run([CLANG, "--version"], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(
    "14.0.6" not in version() or shutil.which("llvm-strip") is None,
    reason="clang 14.0.6 and llvm-strip are not installed",
)
def test_the_committed_object_is_built_from_its_source(tmp_path: Path) -> None:
    built = tmp_path / "probe.bpf.o"
    built.touch()
    subprocess.run([JUST, "bpf", built], cwd=BPF.parents[3], check=True, capture_output=True)
    assert built.read_bytes() == (BPF / "probe.bpf.o").read_bytes()
