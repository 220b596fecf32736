"""strace: found, its version read, its flags chosen, and tried out before anything depends on it.

The flags are those of strace(1) as of 6.1. Calls and qualifiers that an older one lacks are asked
for with ``?``, which makes it skip what it does not know.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from replayer.capture.refusal import TracerError, explain_refusal

__all__ = ["Strace", "attach_words", "find_strace", "launch_words", "probe_words", "try_strace"]

OLDEST = (5, 15)  # the first release with the form of ``-y`` and of resumed calls that is relied on
PROBE_SECONDS = 30
INSTALL = "install it: apt install strace (Debian, Ubuntu), dnf install strace (Fedora, RHEL)"

# Their data are neither needed nor ours to keep: only lengths and results are recorded.
DATA_CALLS = (
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
)
CALLS = (
    "%file",
    "%desc",
    "%process",
    *(
        f"?{call}"
        for call in (
            "close_range",  # in no class of strace 6.1
            "chroot",
            "umask",
            "sync",
            "syncfs",
            "io_uring_setup",
            "io_uring_enter",
            "io_setup",
            "io_submit",
            "accept",
            "accept4",
            "bind",
            "shutdown",
            "socketpair",
        )
    ),
)
DEADLY = (
    *("HUP", "INT", "QUIT", "ILL", "ABRT", "BUS", "FPE", "KILL", "SEGV", "PIPE", "ALRM", "TERM"),
    *("XFSZ", "SYS"),
)
"""Signals by which commands die: strace names no other as the end of a process. Those by which
programs talk to themselves many times a second (URG, PROF, USR1, CHLD) are not written down."""
COMMON = (
    "-f",
    "-q",
    "--absolute-timestamps=format:unix,precision:ns",
    "--syscall-times=ns",
    "-y",
    "--decode-pids=pidns",  # lines bear strace's numbers, and results those of the namespace
    "-s",
    "256",
    "-e",
    f"signal={','.join(DEADLY)}",
)
TRACED = ("-e", f"trace={','.join(CALLS)}")
TRACED_WITH_JOINS = ("-e", f"trace={','.join((*CALLS, '?futex'))}")
"""Who joins a thread waits in a futex for it (pthread_join of glibc and musl). A server that runs
joins hardly any, and may wait in futexes for locks too often to be stopped for each."""
RAW = ("-e", f"raw={','.join(f'?{call}' for call in DATA_CALLS)}")
FILTER = "--seccomp-bpf"

_VERSION = re.compile(r"version (\d+)\.(\d+)")


@dataclass(frozen=True)
class Strace:
    """A strace that can be used.

    Attributes:
        path: Its executable.
        version: Major and minor.
        launch_flags: What this one knows of the flags that only a launched command can have.
    """

    path: str
    version: tuple[int, int]
    launch_flags: tuple[str, ...]

    @property
    def text(self) -> str:
        """The version as it is written."""
        return ".".join(str(part) for part in self.version)


def find_strace() -> Strace:
    """Find strace and check its version.

    Raises:
        TracerError: There is none, it does not say what it is, or it is too old.
    """
    path = shutil.which("strace")
    if path is None:
        raise TracerError("strace was not found; a capture needs it", hint=INSTALL)
    version = _parse_version(_ask(path, "--version"), path)
    if version < OLDEST:
        message = f"{path}: version must be at least 5.15, got {version[0]}.{version[1]}"
        raise TracerError(message, hint=INSTALL)
    known = _ask(path, "--help")
    return Strace(path, version, (FILTER,) if FILTER in known else ())


def launch_words(strace: Strace, log: Path, command: Sequence[str]) -> list[str]:
    """Return the command line that records a command.

    -I4: nothing that a terminal sends stops strace, it ends with the last process that it records.
    """
    return [
        strace.path,
        *strace.launch_flags,
        "-I4",
        *COMMON,
        *TRACED_WITH_JOINS,
        *RAW,
        "-o",
        str(log),
        "--",
        *command,
    ]


def attach_words(strace: Strace, log: Path, pids: Sequence[int]) -> list[str]:
    """Return the command line that records running processes.

    Data calls are decoded here (``-y`` then names files that were opened before the recording),
    and seccomp's filter cannot be put onto a process that runs.
    """
    processes = [word for pid in pids for word in ("-p", str(pid))]
    return [*_attached(strace, log), *processes]


def probe_words(strace: Strace, log: Path, what: Literal["command", "attached"]) -> list[str]:
    """Return the command line of strace alone, with the flags that a recording of that kind has."""
    if what == "attached":
        return [*_attached(strace, log), "--"]
    return launch_words(strace, log, ())


def _attached(strace: Strace, log: Path) -> list[str]:
    return [strace.path, "-I2", *COMMON, *TRACED, "-o", str(log)]


def try_strace(strace: Strace, folder: Path) -> Strace:
    """Really record ``true``, and leave out the filter where it does not work.

    Raises:
        TracerError: strace may not trace here, or does not know its flags.
    """
    log = folder / "probe.strace"
    words = launch_words(strace, log, [shutil.which("true") or "/bin/true"])
    done = _run(words)
    text = log.read_text(errors="replace") if log.exists() else ""
    log.unlink(missing_ok=True)
    if done.returncode != 0 or "+++ exited with 0 +++" not in text:
        raise explain_refusal(done.stderr.strip())
    if strace.launch_flags and "seccomp" in done.stderr:
        return replace(strace, launch_flags=())
    return strace


def _parse_version(text: str, path: str) -> tuple[int, int]:
    found = _VERSION.search(text)
    if found is None:
        message = f"{path}: prints no version"
        raise TracerError(message, hint=INSTALL)
    return int(found[1]), int(found[2])


def _ask(path: str, question: str) -> str:
    return _run([path, question]).stdout


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the words are ours, and no shell reads them
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TracerError(f"{words[0]}: {error}", hint=INSTALL) from error
