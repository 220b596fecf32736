"""Files that have no name: linked to one while they are recorded, or open before that began."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.behaviour.shell import Shell

LINKS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("root")
file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
os.write(file, b"content")
source = b"/proc/%s/fd/%d"
for owner, name in ((b"self", b"stage"), (b"%d" % os.getpid(), b"second")):
    assert libc.linkat(-100, source % (owner, file), -100, name, 0x400) == 0
assert libc.linkat(file, b"", -100, b"second", 0x1000) == -1
os.close(file)
os.rename("stage", "final")
assert open("final").read() == "content"
os.chmod("final", 0o600)
os.stat("final")
print(sorted(os.listdir()))
"""


def replayed(shell: Shell, *words: str) -> Any:  # noqa: ANN401 - JSON
    done = shell.run("replay", "trace", "--target", shell.target(), "--json", *words)
    return done.document()["replay"]["results"]


def trace_of(home: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((home / "trace/trace.json").read_text())


def test_a_file_that_is_written_without_a_name_and_linked_is_replayed(shell: Shell) -> None:
    (shell.home / "root").mkdir()
    words = ("capture", "-o", "trace", "--root", "root", "--", sys.executable, "-c", LINKS)
    done = shell.run(*words)
    assert done.out == "['final', 'second']\n"
    results = replayed(shell, "-u", "2", "--loops", "2", "--pace", "asap")
    assert results["examples"] == []
    assert results["matched"] == results["compared"] == results["events"] > 0
    trace = trace_of(shell.home)
    assert trace["counts"]["ops"]["link"] >= 2
    assert trace["blind_spots"] == {}
