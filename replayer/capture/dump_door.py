"""How ``replayer capture --dump`` finds a running flight recorder, asks it, and hears of the trace.

A recorder listens on a socket of Linux's abstract names, ``@replayer-flight-USER-PROCESS``: it is
seen in /proc/net/unix, is no file, and goes with its process. Both ends check whose the other is.
"""

import os
import re
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Self

from replayer.errors import OutsideError, ReplayerError

__all__ = ["DumpDoor", "ask_for_dump"]

_SOCKETS = Path("/proc/net/unix")
_NAME = "replayer-flight-{user}-{process}"
_PEER = struct.Struct("3i")  # struct ucred of unix(7): process, user, group
_MOST_BYTES = 4096
_WAITING = 16  # chosen: more that ask at the same time are refused
_DONE = "done: "


class DumpDoor:
    """Where a flight recorder is asked for what it keeps."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    def __enter__(self) -> Self:
        name = _NAME.format(user=os.geteuid(), process=os.getpid())
        self._socket.bind(f"\0{name}")
        self._socket.listen(_WAITING)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def take(self) -> "Asking | None":
        """Return somebody of this user, or root, who asks; None if nobody does."""
        with suppress(BlockingIOError):
            connection, _ = self._socket.accept()
            if _user_of(connection) in (os.geteuid(), 0):
                return Asking(connection)
            connection.close()
        return None


class Asking:
    """Somebody who asks, until it is answered."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def answer(self, text: str, *, is_done: bool) -> None:
        """Say what came of it; who has gone need not know."""
        with suppress(OSError), self._connection:
            self._connection.sendall(f"{_DONE if is_done else ''}{text}".encode()[:_MOST_BYTES])


def ask_for_dump(process: int | None) -> str:
    """Have a flight recorder write what it keeps, and return the trace's name.

    Args:
        process: Which one; None for the only one of this user.

    Raises:
        ReplayerError: There is none, or there are several.
        OutsideError: It could not write the trace.
    """
    running = _running()
    if process is None and len(running) > 1:
        numbers = ", ".join(map(str, running))
        message = f"--dump: {len(running)} flight recorders run (process {numbers})"
        raise ReplayerError(message, hint=f"name one, such as: --dump {running[0]}")
    if not running or (process is not None and process not in running):
        message = "--dump: no flight recorder of this user runs"
        if process is not None:
            message = f"--dump {process}: is no flight recorder of this user"
        raise ReplayerError(message, hint="start one with: replayer capture --ring 5m -p PID …")
    return _ask(process or running[0])


def _running() -> list[int]:
    name = _NAME.format(user=os.geteuid(), process="([0-9]+)")
    found = re.findall(f"@{name}$", _SOCKETS.read_text(), re.MULTILINE)
    return sorted(map(int, found))


def _ask(process: int) -> str:
    gone = f"--dump: the flight recorder (process {process}) has ended"
    name = _NAME.format(user=os.geteuid(), process=process)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(f"\0{name}")
            if _user_of(connection) != os.geteuid():
                raise OutsideError(f"--dump: process {process} belongs to another user")
            told = connection.recv(_MOST_BYTES).decode()
        except OSError as error:
            raise OutsideError(f"{gone}: {error.strerror}") from error
    if not told.startswith(_DONE):
        raise OutsideError(told or gone)
    return told.removeprefix(_DONE)


def _user_of(connection: socket.socket) -> int:
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    user: int = _PEER.unpack(told)[1]
    return user
