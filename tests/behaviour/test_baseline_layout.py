"""When fio lays files out, and when its jobs work: a turn is patient with the first."""

import shutil
import time
from pathlib import Path

import pytest

from replayer.fio.process import FioProcess, Launch
from replayer.fio.program import find_fio

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

SIZE = 256 << 20
JOBS = f"""[reads]
ioengine=psync
rw=randread
bs=4k
size={SIZE}
fallocate=none
runtime=1
time_based
"""


@pytest.mark.parametrize("more", ["", "thread\n"], ids=["processes", "threads"])
def test_files_are_laid_out_before_jobs_are_at_work(tmp_path: Path, more: str) -> None:
    (tmp_path / "own.fio").write_text(JOBS + more)
    folder = tmp_path / "files"
    folder.mkdir()
    process = FioProcess(Launch(find_fio(), tmp_path / "own.fio", folder))
    seen: list[tuple[bool, int]] = []
    while process.ended() is None:
        seen.append((process.is_at_work(), process.written_bytes()))
        for _ in process.documents():
            pass
        time.sleep(0.005)
    assert process.ended() == 0
    before = [written for works, written in seen if not works]
    assert any(0 < written < SIZE for written in before)
    first = next(written for works, written in seen if works)
    assert first >= SIZE
