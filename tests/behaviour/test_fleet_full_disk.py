"""No space under the run folder, for a while or for good: a master ends as one process does."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from replayer.measure.record import load_run
from tests.behaviour.parts import COUNTED, Meeting, counts, wait_for, workers
from tests.behaviour.shell import Shell

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
]

ROOM = "2m"


@pytest.fixture
def small(shell: Shell) -> Iterator[Path]:
    """A file system that is soon full."""
    path = shell.home / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(path: Path) -> None:
    """Write until not a byte more fits."""
    for size in (1 << 16, 1):
        with suppress(OSError), path.open("ab", buffering=0) as file:
            while True:
                file.write(b"x" * size)


def whole_lines(path: Path) -> list[str]:
    """Return the lines that were written to their end."""
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("for_good", [False, True], ids=["for 3 s", "for good"])
@pytest.mark.parametrize("parts", [(), ("part0", "part1")], ids=["one process", "a master"])
def test_no_space_under_the_run_folder_fails_a_run_and_spoils_nothing_that_is_there(
    shell: Shell, small: Path, parts: Sequence[str], *, for_good: bool
) -> None:
    (shell.home / "counted.yaml").write_text(COUNTED.replace("iterations: 60", "duration: 12s"))
    folder, timeline = small / "out", small / "out" / "timeline.csv"
    run, target = ("run", "counted.yaml"), ("--target", f"here={shell.target()}")
    meeting = Meeting()
    leads = ("--master", "--expect-workers", "2", *meeting.of_master)
    with workers(shell, meeting, [(*run, *target, "--quiet", "-o", part) for part in parts]):
        process = shell.start(*run, "-o", folder, *(leads if parts else target))
        wait_for(lambda: timeline.exists() and len(timeline.read_text().splitlines()) > 10)
        fill(small / "filler")
        time.sleep(3)
        if not for_good:
            (small / "filler").unlink()
        _, err = process.communicate(timeout=120)
    assert process.returncode == 3, err
    assert "Traceback" not in err
    assert "bug in replayer" not in err
    assert f"{folder}/histograms.hlog: no space left" in err
    assert ("the run folder cannot be written" in err) is for_good
    assert json.loads((folder / "run.json").read_text())["status"] == "failed"
    events = [json.loads(line) for line in whole_lines(folder / "events.jsonl")]
    if not for_good:
        assert any("the record is incomplete" in str(event.get("message")) for event in events)
        assert (folder / "events.jsonl").read_text().endswith("\n")
    if parts:
        told, held = (
            counts(load_run(folder)),
            [counts(load_run(shell.home / part)) for part in parts],
        )
        sums = {name: sum(part[name] for part in held) for name in told}
        assert told
        assert all(told[name] <= count for name, count in sums.items())
        assert for_good or told == sums, "all that came while it was full was written later"
    assert list((shell.home / "mount").iterdir()) == []
