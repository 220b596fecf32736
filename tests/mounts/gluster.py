"""GlusterFS with one brick on this machine, mounted twice.

It refuses loopback addresses as a peer's, so that its server and its clients live in a network
namespace where an address of a private network is on the loopback device.
"""

import os
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.mounts.machine import (
    CannotError,
    call,
    need_root,
    needs,
    processes_with,
    unmount,
    wait_for,
)

__all__ = ["bricks", "gluster"]

SPACE = f"replayer-tests-{os.getpid()}"  # those of killed tests are in nobody's way
ADDRESS = "10.77.0.1"  # chosen: of a network that is on no other device of the namespace
VOLUME = "shared"
VOLFILE = """
volume management
    type mgmt/glusterd
    option working-directory {home}/state
    option transport-type socket
end-volume
"""


def gluster(stack: ExitStack, home: Path) -> tuple[Path, ...]:
    """Make a volume and mount it twice."""
    need_root()
    needs("ip", "iproute2")
    needs("glusterd", "glusterfs-server")
    needs("glusterfs", "glusterfs-client")
    home.mkdir(parents=True, exist_ok=True)
    (home / "brick").mkdir()
    # Not `ip netns exec`: that has its own view of mounts, and ours would be seen by nobody else.
    inside = ("nsenter", f"--net=/run/netns/{SPACE}")
    call("ip", "netns", "add", SPACE)
    stack.callback(_quietly, "ip", "netns", "delete", SPACE)
    call(*inside, "ip", "link", "set", "lo", "up")
    call(*inside, "ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
    # Of its own: what a killed test leaves in the machine's is in nobody's way.
    (home / "volfile").write_text(VOLFILE.format(home=home))
    options = (
        "--no-daemon",
        f"--volfile={home}/volfile",
        f"--log-file={home}/log",
        f"--pid-file={home}/pid",
    )
    daemon = subprocess.Popen([*inside, "glusterd", *options], stdin=subprocess.DEVNULL)
    stack.callback(_end, daemon)
    command = (*inside, "gluster", "--mode=script", "volume")
    wait_for(lambda: _works(*command, "list"), "glusterd answers")
    call(*command, "create", VOLUME, f"{ADDRESS}:{home}/brick", "force")
    stack.callback(_quietly, *command, "delete", VOLUME)
    call(*command, "start", VOLUME)
    stack.callback(_quietly, *command, "stop", VOLUME, "force")
    wait_for(lambda: _is_online(command), "the brick is online")
    mounts = []
    for name in ("one", "two"):
        path = home / name
        path.mkdir()
        client = (f"--volfile-server={ADDRESS}", f"--volfile-id=/{VOLUME}")
        fresh = ("--attribute-timeout=0", "--entry-timeout=0", "--negative-timeout=0")
        call(*inside, "glusterfs", *client, *fresh, f"--log-file={home}/{name}.log", path)
        stack.callback(unmount, path)
        wait_for(path.is_mount, "the volume is mounted")
        mounts.append(path)
    return tuple(mounts)


def bricks(home: Path) -> list[int]:
    """The processes that hold a volume's files."""
    return [each.pid for each in processes_with("glusterfsd", f"{home}/")]


def _is_online(command: tuple[str, ...]) -> bool:
    listed = call(*command, "status", VOLUME, "detail")
    return any(
        line.startswith("Online") and line.rstrip().endswith("Y") for line in listed.splitlines()
    )


def _works(*words: str) -> bool:
    with suppress(CannotError):
        call(*words)
        return True
    return False


def _quietly(*words: str) -> None:
    _works(*words)


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    daemon.wait()
