"""Every marked block of the documents runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "METHODOLOGY.md"]
RUNS = re.compile(r"<!-- runs -->\n```sh\n(.*?)```", re.DOTALL)
SETS_UP = re.compile(r"<!-- sets up -->\n```sh\n(.*?)```", re.DOTALL)
RAN = {0, 4}  # 4: inconclusive, as the machine that runs tests is busy
NOT_COPIED = (".git", ".venv", "target", "*.so", "__pycache__", "replayer-runs", "replayer-data")


def _run(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": search},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


BLOCKS = [block for document in DOCUMENTS for block in RUNS.findall(document.read_text())]


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_a_documented_block_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "traces").symlink_to(ROOT / "traces")
    done = _run(block, tmp_path)
    assert done.returncode in RAN, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_first_command_sets_everything_up_and_runs(tmp_path: Path) -> None:
    block = SETS_UP.search((ROOT / "README.md").read_text())
    assert block is not None
    copy = tmp_path / "replayer"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    done = _run(block[1], copy)
    assert done.returncode in RAN, done.stdout + done.stderr
    assert (copy / "replayer-runs").is_dir()
