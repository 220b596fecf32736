"""A program whose standard streams were closed before it began."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from replayer.errors import guard_streams

guard_streams()
inner = os.dup(0)
print("out", sys.stdin.read(), inner, flush=True)
print("err", file=sys.stderr)
sys.exit(0 if inner > 2 and all(map(os.get_inheritable, range(3))) else 1)
"""


@pytest.mark.parametrize(
    ("closed", "out", "err"),
    [
        ("<&-", "out  3\n", "err\n"),
        (">&-", "", "err\n"),
        ("2>&-", "out  3\n", ""),
        ("<&- >&- 2>&-", "", ""),
    ],
)
def test_closed_streams_lead_nowhere_and_their_places_stay_taken(
    closed: str, out: str, err: str
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", PROGRAM],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, out, err)
