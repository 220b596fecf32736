"""An SSH server of its own on this machine, and a folder of it mounted twice: two clients."""

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.behaviour.parts import free_port
from tests.mounts.machine import (
    CannotError,
    call,
    need_root,
    needs,
    processes_with,
    unmount,
    wait_for,
)

__all__ = ["Server", "send_to", "serve", "sshfs"]

SSHD = "/usr/sbin/sshd"  # it wants to be called by its whole path
OPTIONS = {
    "ListenAddress": "127.0.0.1",
    "StrictModes": "no",  # its files lie where tests keep theirs
    "UsePAM": "no",
    "PasswordAuthentication": "no",
    "Subsystem": "sftp internal-sftp",
}


@dataclass(frozen=True)
class Server:
    """A running server and its files."""

    home: Path
    port: int
    export: Path
    inside: tuple[str, ...] = ()
    """What puts a command into the server's network namespace."""

    def mount(self, stack: ExitStack, name: str, *options: str) -> Path:
        """Mount the export with a client of its own."""
        path = self.home / name
        path.mkdir()
        known = self.home / "known_hosts"
        words = (
            *(f"-oport={self.port}", f"-oIdentityFile={self.home}/user", "-oBatchMode=yes"),
            *("-oStrictHostKeyChecking=no", f"-oUserKnownHostsFile={known}"),
            *("-oServerAliveInterval=0", *(f"-o{option}" for option in options)),
        )
        call(*self.inside, "sshfs", f"root@127.0.0.1:{self.export}", path, *words)
        stack.callback(unmount, path)
        return path

    def workers(self) -> list[int]:
        """The server's processes that answer file calls: those in its own session but the first."""
        tops = processes_with(f"{SSHD} -f {self.home / 'sshd_config'}")
        below = {each.pid for top in tops for each in top.children(recursive=True)}
        return sorted(below - {top.pid for top in tops})

    def clients(self) -> list[int]:
        """The processes that hand calls of this machine on to the server."""
        return [each.pid for each in processes_with(f"sshfs root@127.0.0.1:{self.export} ")]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process that answers file calls."""
        send_to(self.workers(), number)


def send_to(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def serve(stack: ExitStack, home: Path, inside: tuple[str, ...] = ()) -> Server:
    """Start a server that exports a folder below ``home``, in a network namespace if given."""
    need_root()
    needs("sshfs", "sshfs")
    needs("sshd", "openssh-server")
    home.mkdir(parents=True, exist_ok=True)
    if not Path("/dev/fuse").exists():
        raise CannotError("there is no /dev/fuse")
    export = home / "export"
    export.mkdir()
    for key in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / key)
    port = free_port()
    lines = {
        **OPTIONS,
        "Port": port,
        "HostKey": home / "host",
        "AuthorizedKeysFile": home / "user.pub",
        "PidFile": home / "pid",
    }
    config = home / "sshd_config"
    config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it has nothing to say
    process = subprocess.Popen(
        [*inside, SSHD, "-f", str(config), "-D", "-E", str(home / "log")],
        stdin=subprocess.DEVNULL,
    )
    server = Server(home, port, export, inside)
    stack.callback(_end, server, process)
    log = home / "log"
    wait_for(lambda: log.exists() and "listening" in log.read_text(), "sshd listens")
    return server


def sshfs(stack: ExitStack, home: Path) -> tuple[Path, ...]:
    """Mount one export twice."""
    server = serve(stack, home)
    return tuple(server.mount(stack, name) for name in ("one", "two"))


def _end(server: Server, process: "subprocess.Popen[bytes]") -> None:
    server.send(signal.SIGCONT)
    server.send(signal.SIGKILL)
    process.kill()
    process.wait()
