"""The real command line in subprocesses, on temporary folders, with a scenario of its own."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replayer.capture.ebpf import EbpfRecorder
from replayer.capture.refusal import TracerError
from tests.behaviour.warmed import ForkedProcess

TINY = """\
name: tiny
about: A few files that are read, and some that are written.
users: {count: 2, think_time: 2ms}
duration: 400ms
datasets:
  files: {files: 20, sizes: 1KiB}
  work: {directory: true, per: user}
mix: {look: 3, save: 1}
transactions:
  look:
    - open: {from: files, pick: uniform}
    - read: {size: 4KiB}
    - close
  save:
    - open: {in: work, name: "note_{seq}", flags: [create, wronly]}
    - write: {size: 2KiB}
    - close
"""

LOOK_ONLY = """\
name: look-only
about: A few files that are read.
users: {count: 2, think_time: 2ms}
duration: 400ms
datasets:
  files: {files: 20, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - open: {from: files, pick: uniform}
    - read: {size: 4KiB}
    - close
"""


HERE = Path(__file__).parent
BUSY = re.compile(
    r"^busy: other programs use .*?will show the\s+client\n", re.DOTALL | re.MULTILINE
)

Process = subprocess.Popen[str] | ForkedProcess
Until = Callable[[Callable[[], object]], None]


IS_ROOT = os.geteuid() == 0
ORDINARY = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    if IS_ROOT
    else ()
)
"""What takes from root the right to look into any folder; nobody else has it."""
needs_setpriv = pytest.mark.skipif(
    IS_ROOT and shutil.which("setpriv") is None, reason="setpriv (util-linux) is missing"
)
COMMAND = ("-m", "replayer")
PIPE_BYTES = 1 << 20
"""Room for what a page prints of all its runs: nobody reads it before the end; it would wait."""


@functools.cache
def why_no_ebpf() -> str:
    """Return why eBPF cannot be used here; nothing if it can.

    Raises:
        TracerError: The kernel does not accept the probe, which is no reason to skip a test.
    """
    try:
        EbpfRecorder(Path(os.devnull), limit_bytes=1).check()
    except TracerError as error:
        if "please report it" in (error.hint or ""):  # RecorderError::Rejected
            raise
        return str(error)
    return ""


@dataclass(frozen=True)
class Shell:
    """A folder to be in, and the program to run there."""

    home: Path

    def start(
        self,
        *words: str | Path,
        program: tuple[str, ...] = COMMAND,
        within: tuple[str, ...] = (),
    ) -> Process:
        """Start the program; for real where it is another one or has one in front of it."""
        env = {**os.environ, "COLUMNS": "120", "PYTHONFAULTHANDLER": "1"}
        if program == COMMAND and not within:
            return ForkedProcess([*map(str, words)], self.home, env, PIPE_BYTES)
        return subprocess.Popen(
            [*within, sys.executable, *program, *map(str, words)],
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            pipesize=PIPE_BYTES,
            text=True,
            env=env,
        )

    def run(self, *words: str | Path, program: tuple[str, ...] = COMMAND) -> "Done":
        """Run the program to its end."""
        process = self.start(*words, program=program)
        try:
            out, err = process.communicate(timeout=240)  # a machine may be very busy
        except BaseException:  # a test's own time limit is one too
            process.kill()
            process.communicate()
            raise
        # Other tests run beside this one: that the machine is busy is no news.
        return Done(process.returncode, out, BUSY.sub("", err))

    def target(self, name: str = "mount") -> Path:
        """Make a folder to run on."""
        path = self.home / name
        path.mkdir()
        return path


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    code: int
    out: str
    err: str

    @property
    def went_well(self) -> bool:
        """Whether it passed, or would have on a machine with nothing else to do."""
        busy = "the client was saturated" in self.out
        return self.code == 0 or (self.code == 4 and busy and self.out.count("because") <= 1)

    def document(self) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON on its stdout."""
        return json.loads(self.out)


def replay_in_order(shell: Shell, pace: str) -> Done:
    """Replay the trace in ``trace`` on a folder of its own, and check the order of its events."""
    words = ("--pace", pace, "--rounds", "1", "--check-order", "--json", "-o", f"run-{pace}")
    done = shell.run("replay", "trace", "--target", shell.target(f"for-{pace}"), *words)
    assert done.code in {0, 4}, done.err
    return done


def compile_program(source: str, program: Path, *flags: str) -> Path:
    """Make a program of a C file of this folder."""
    strict = ("-O1", "-Wall", "-Wextra", "-Werror")
    subprocess.run(("cc", *strict, *flags, "-o", program, HERE / source), check=True)
    return program


def forbidding(place: Path, call: str, error: str) -> Path:
    """Make a program that runs a command for which a system call ends with an error."""
    program = place / f"without-{call}"
    return compile_program("forbid.c", program, f"-DCALL=SYS_{call}", f"-DERROR={error}")


def make_shell(home: Path) -> Shell:
    """Return a shell in a folder with two scenarios."""
    (home / "tiny.yaml").write_text(TINY)
    (home / "look.yaml").write_text(LOOK_ONLY)
    return Shell(home)
