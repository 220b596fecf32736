"""Other commands of this very program, each in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

from replayer.supervisor import follow

ENDLESS = ("iterations=null", "warm_up=0s", "users.ramp_up=0s", "duration=60s")
"""Changes of a scenario that leave its length to whoever runs it; a load settles by itself."""
FIRST_THREADS = 64  # chosen: users that serve arrivals at first


def arriving(rate: str) -> tuple[str, ...]:
    """Return changes of a scenario that have its transactions arrive at a rate."""
    arrivals = f"arrivals={{rate: {rate}, process: poisson}}"
    return "users.think_time=null", "users.every=null", arrivals


def split_failure(said: str) -> tuple[str, str]:
    """Return why a command failed and what to do about it, of all that it has said."""
    told, _, hint = said.strip().removeprefix("replayer: ").partition("\nhint: ")
    return told, hint


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
