"""Every shell block of the documents runs, but for those that say why they do not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import PAGES, ROOT, Block, blocks, name_of

RAN = {0, 4}  # 4: inconclusive, as the machine that runs tests is busy
NOT_COPIED = (".git", ".venv", "target", "*.so", "__pycache__", "replayer-runs", "replayer-data")
NIGHTLY = "nightly: "


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


def _run_all(found: list[Block], folder: Path) -> None:
    """Run blocks in one folder, as a reader would."""
    (folder / "traces").symlink_to(ROOT / "traces")
    for block in found:
        done = _run(block.text, folder)
        assert done.returncode in RAN, block.text + done.stdout + done.stderr


OFTEN = frozenset({"README.md"})
"""Run in CI; the commands of all others are parsed there, and run at night."""
QUICK = [page for page in PAGES if any(not block.mark for block in blocks(page))]
LONG = [page for page in PAGES if any(block.mark.startswith(NIGHTLY) for block in blocks(page))]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=name_of(page),
            marks=[] if name_of(page) in OFTEN else [pytest.mark.nightly],
        )
        for page in QUICK
    ],
)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    _run_all([block for block in blocks(page) if not block.mark], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("page", LONG, ids=map(name_of, LONG))
def test_long_blocks_of_a_page_run_after_the_others(page: Path, tmp_path: Path) -> None:
    found = blocks(page)
    _run_all(
        [block for block in found if not block.mark or block.mark.startswith(NIGHTLY)], tmp_path
    )


def _copied(folder: Path) -> Path:
    """Return a fresh copy of the project, with nothing built."""
    copy = folder / "replayer"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copy


@pytest.mark.nightly
def test_the_site_is_built_by_one_command_and_needs_no_network_to_be_read(tmp_path: Path) -> None:
    copy = _copied(tmp_path)
    done = _run("just docs", copy)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.relative_to(copy / "site"): page for page in (copy / "site").rglob("*.html")}
    assert {Path("index.html"), Path("reference/command-line.html")} <= {*pages}
    assert (copy / "site/search/search_index.json").is_file()
    loaded = r"<(?:script|img|link)[^>]+(?:src|href)=.https?:"
    assert [name for name, page in pages.items() if re.search(loaded, page.read_text())] == []


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_first_command_sets_everything_up_and_runs(tmp_path: Path) -> None:
    (block,) = [block for block in blocks(ROOT / "README.md") if block.mark == "sets up"]
    copy = _copied(tmp_path)
    done = _run(block.text, copy)
    assert done.returncode in RAN, done.stdout + done.stderr
    assert (copy / "replayer-runs").is_dir()
