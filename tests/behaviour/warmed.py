"""Commands started from one warmed process, which has imported the program and forks for each.

Most of what a short command costs is imports. A forked command runs the program from its first
line (``runpy``), in a process of its own with its own files, folder, arguments and environment.
Start a command for real where the start itself matters: the interpreter's options, a wrapper.
"""

import atexit
import faulthandler
import fcntl
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

__all__ = ["ForkedProcess"]

ROOT = Path(__file__).parents[2]
MESSAGE_BYTES = 1 << 20


class ForkedProcess:
    """``python -m replayer WORDS`` with its output in pipes; used as a ``subprocess.Popen``."""

    def __init__(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], pipe_bytes: int
    ) -> None:
        """Have the warmed process fork."""
        self.args = [sys.executable, "-m", "replayer", *words]
        self.returncode: int | Any = None  # as Popen declares it
        self._said, theirs = socket.socketpair()
        self.stdout, out = _pipe(pipe_bytes)
        self.stderr, err = _pipe(pipe_bytes)
        order = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)})
        warmed = _warmed("locust") if _needs_locust(words) else _warmed()
        socket.send_fds(warmed, [order.encode()], [out, err, theirs.fileno()])
        for file in (out, err, theirs.detach()):
            os.close(file)
        self.pid = int.from_bytes(self._said.recv(4))

    def poll(self) -> int | None:
        """Return the exit code, or None while the command works."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code."""
        if self.returncode is None:
            self._said.settimeout(timeout)
            try:
                said = self._said.recv(4)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._said.close()
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(said))
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return what the command prints until its end."""
        end_s = time.monotonic() + (timeout or threading.TIMEOUT_MAX)
        read: dict[str, str] = {}
        readers = [
            threading.Thread(target=_read, args=(stream, name, read), daemon=True)
            for name, stream in (("out", self.stdout), ("err", self.stderr))
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0, end_s - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(max(0, end_s - time.monotonic()))
        return read["out"], read["err"]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since, and its parent knows
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _pipe(size_bytes: int) -> tuple[IO[str], int]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, size_bytes)
    return os.fdopen(reading), writing


def _read(stream: IO[str], name: str, read: dict[str, str]) -> None:
    read[name] = "" if stream.closed else stream.read()
    stream.close()


def _needs_locust(words: Sequence[str]) -> bool:
    """Whether a command is Locust's; processes that Locust forks itself import it on their own."""
    return bool(words) and words[0] in {"run", "replay", "baseline"} and "--processes" not in words


@cache
def _warmed(*more: str) -> socket.socket:
    """Start a warmed process of these tests; it ends when its socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), *more],
            cwd=ROOT,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    atexit.register(_end, process, ours)
    return ours


def _end(process: "subprocess.Popen[bytes]", orders: socket.socket) -> None:
    orders.close()
    process.wait()


LATER = (
    "blinker", "charset_normalizer", "click.testing", "configargparse", "itsdangerous", "jinja2",
    "msgpack", "numpy.ma", "psutil", "werkzeug.debug", "werkzeug.serving", "werkzeug.test",
    "replayer.cluster.worker_process", "replayer.run.metrics", "replayer.run.results",
)  # fmt: skip
"""Of what a run imports after its fork, what no patch of gevent's changes, and no end of it."""


def _import_program() -> None:
    """Import what a command has imported before it does anything, and compile its models."""
    from pydantic import BaseModel  # noqa: PLC0415

    from replayer.cli._parsers import KNOWN, load_command  # noqa: PLC0415

    for name in KNOWN:
        load_command(name)
    for name in LATER:
        importlib.import_module(name)
    models = [BaseModel]
    for model in models:
        models += model.__subclasses__()
        if model.__module__.startswith("replayer."):
            model.model_rebuild()
    gc.collect()
    gc.freeze()


def _import_locust() -> None:
    """Import Locust, as a run does after its fork: its supervisor keeps what gevent patches."""
    from replayer.locust.launch import import_locust  # noqa: PLC0415

    import_locust()
    from gevent import get_hub  # noqa: PLC0415
    from gevent.monkey import get_original  # noqa: PLC0415

    get_hub().destroy(destroy_loop=True)  # each process makes its own
    for name in ("fork", "waitpid"):
        setattr(os, name, get_original("os", name))
    gc.collect()
    gc.freeze()


def _serve(orders: socket.socket, ready: selectors.BaseSelector) -> dict[str, Any] | None:
    """Fork a process for each order; return the order in that process, and None at the end."""
    ready.register(orders, selectors.EVENT_READ)
    children: dict[int, tuple[int, int]] = {}
    while True:
        for key, _ in ready.select():
            if key.fd in children:
                ready.unregister(key.fd)
                pid, said = children.pop(key.fd)
                os.close(key.fd)
                _say(said, os.waitpid(pid, 0)[1])
                os.close(said)
                continue
            message, files, _flags, _address = socket.recv_fds(orders, MESSAGE_BYTES, 3)
            if not message:
                return None
            pid = os.fork()
            if not pid:
                ready.close()
                orders.close()
                for file, (_, said) in children.items():
                    os.close(file)
                    os.close(said)
                return {**json.loads(message), "files": files}
            _say(files[2], pid)
            for file in files[:2]:
                os.close(file)
            told = os.pidfd_open(pid)
            children[told] = (pid, files[2])
            ready.register(told, selectors.EVENT_READ)


def _say(file: int, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits any more
        os.write(file, number.to_bytes(4))


def _become(order: dict[str, Any]) -> None:
    """Make this process what a started command is: its output, folder, words, environment."""
    out, err, said = order["files"]
    os.dup2(out, 1)
    os.dup2(err, 2)
    for file in (out, err, said):
        os.close(file)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for the process's life
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(order["cwd"])
    sys.path[0] = order["cwd"]
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = ["replayer", *order["words"]]
    faulthandler.enable()


if __name__ == "__main__":
    _orders, _ready = socket.socket(fileno=int(sys.argv[1])), selectors.DefaultSelector()
    _import_program()
    if "locust" in sys.argv:
        _import_locust()
    _order = _serve(_orders, _ready)
    if _order is not None:
        _become(_order)
        runpy.run_module("replayer", run_name="__main__", alter_sys=True)
