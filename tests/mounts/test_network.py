"""A network that delays and loses packets, between sshfs and its server."""

import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.mounts.fleet import long
from tests.mounts.machine import CannotError, call, need_root, needs
from tests.mounts.scene import Scene, make_scene
from tests.mounts.sshfs import serve

pytestmark = pytest.mark.mounts

SPACE = "replayer-lossy"
DELAY = ("rate", "8mbit", "burst", "16kb", "latency", "200ms")
"""Chosen: a link of 1 MB/s, whose queue holds up to 200 ms and drops what does not fit."""
LOST = "0.02"  # chosen: of all packets; from about one in a hundred on TCP is felt to be slow


def make_space(stack: ExitStack) -> tuple[str, ...]:
    """Make a network namespace with nothing but a loopback device; return how to be inside."""
    need_root()
    needs("ip", "iproute2")
    needs("iptables", "iptables")
    call("ip", "netns", "add", SPACE)
    stack.callback(subprocess.run, ["ip", "netns", "delete", SPACE], check=False)
    inside = ("nsenter", f"--net=/run/netns/{SPACE}")
    call(*inside, "ip", "link", "set", "lo", "mtu", "1500", "up")
    return inside


@pytest.fixture
def inside(stack: ExitStack) -> tuple[str, ...]:
    try:
        return make_space(stack)
    except CannotError as error:
        pytest.skip(str(error))


@pytest.fixture
def scene(stack: ExitStack, home: Path, inside: tuple[str, ...]) -> Scene:
    try:
        return make_scene(home / "shell", serve(stack, home / "place", inside).mount(stack, "one"))
    except CannotError as error:
        pytest.skip(str(error))


@long
def test_packets_that_are_delayed_and_lost_cost_time_and_no_call(
    scene: Scene, inside: tuple[str, ...]
) -> None:
    scene.begin("tiny.yaml", "-t", "8s", "-s", "30")
    scene.wait_until_measuring()
    scene.happens()
    try:
        call(*inside, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", *DELAY)
        lose = ("-m", "statistic", "--mode", "random", "--probability", LOST, "-j", "DROP")
        call(*inside, "iptables", "-A", "INPUT", "-i", "lo", *lose)
    except CannotError as error:
        pytest.skip(str(error))
    ending = scene.end()
    dropped = call(*inside, "iptables", "-L", "INPUT", "-v", "-x", "-n").splitlines()[2].split()
    assert int(dropped[0]) > 0
    assert ending.code in {0, 4}, ending.said
    assert ending.outcomes == frozenset()
    assert ending.ops > 0
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell(f"{dropped[0]} packets lost, a queue of up to 200 ms", "sshfs", ending)


@long
def test_a_network_that_is_gone_is_told_and_the_run_ends_in_time(
    scene: Scene, inside: tuple[str, ...]
) -> None:
    scene.begin("tiny.yaml", "-t", "9s", "-s", "2")
    scene.wait_until_measuring()
    scene.happens()
    call(*inside, "ip", "link", "set", "lo", "down")
    assert scene.wait_until_told("hangs: user") < 8
    ending = scene.end()
    assert ending.took_s < 9 + 2 + 5
    assert ending.code == 4, ending.said
    assert "left behind" in ending.said
    with suppress(CannotError):
        call(*inside, "ip", "link", "set", "lo", "up")
    scene.clean()
    scene.tell("network gone for ever", "sshfs", ending)
