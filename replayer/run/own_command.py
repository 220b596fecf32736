"""Other commands of this very program, each in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

from replayer.supervisor import follow


def start_ourselves(words: Sequence[str], stderr: int | None = None) -> subprocess.Popen[bytes]:
    """Start a command of this program, which is asked to end when this process is killed."""
    return subprocess.Popen(  # noqa: S603 - this very program
        # -P: a folder "replayer" where the user is, such as this project's, is not the program.
        [sys.executable, "-P", "-m", "replayer", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,  # Ctrl-C comes here first
        preexec_fn=partial(follow, os.getpid(), signal.SIGTERM),  # noqa: PLW1509 - system calls only
    )
