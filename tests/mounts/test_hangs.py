"""Servers that stop answering, for a while and for ever, and servers that die."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mounts.fleet import WANTED, long
from tests.mounts.machine import CannotError, call
from tests.mounts.scene import Scene, make_scene
from tests.mounts.sshfs import Server, serve

pytestmark = pytest.mark.mounts

STOP_S = 2
SLACK_S = 5  # how much later than its stop timeout a run may end
REPORT_S = 5  # after so long in the kernel a call is reported
SOON_S = 3  # how much later than that at most, on a busy machine


@dataclass
class Remote:
    """A scene on a mount of a server that can be frozen."""

    scene: Scene
    server: Server

    def freeze(self) -> None:
        self.server.send(signal.SIGSTOP)
        self.scene.happens()

    def thaw(self) -> None:
        self.server.send(signal.SIGCONT)


@pytest.fixture
def remote(stack: ExitStack, home: Path) -> Iterator[Remote]:
    try:
        server = serve(stack, home / "place")
        mount = server.mount(stack, "one")
    except CannotError as error:
        pytest.skip(str(error))
    remote = Remote(make_scene(home / "shell", mount), server)
    yield remote
    remote.thaw()
    remote.scene.kill()


@long
@pytest.mark.parametrize(
    "seconds", [6, pytest.param(60, marks=pytest.mark.skipif(WANTED != "all", reason="long"))]
)
def test_a_server_that_is_frozen_for_a_while_is_reported_and_the_run_goes_on(
    remote: Remote, seconds: int
) -> None:
    scene = remote.scene
    scene.begin("tiny.yaml", "-t", f"{seconds + 6}s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    remote.freeze()
    assert scene.wait_until_told("hangs: user") < REPORT_S + SOON_S
    time.sleep(seconds - REPORT_S - 0.5)
    remote.thaw()
    ending = scene.end(seconds + 60)
    assert ending.code in {0, 4}, ending.said
    assert ending.run["status"] == "finished"
    assert ending.outcomes == frozenset()
    assert list(scene.mount.glob("replayer-2*")) == []
    scene.check_foreign()
    scene.tell(f"server frozen for {seconds} s", "sshfs", ending)


def test_a_server_that_is_frozen_for_ever_lets_the_run_end_in_time(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("tiny.yaml", "-t", "9s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    remote.freeze()
    assert scene.wait_until_told("hangs: user") < REPORT_S + SOON_S
    ending = scene.end()
    assert ending.took_s < 9 + STOP_S + SLACK_S
    assert ending.code == 4, ending.said
    assert ending.ops > 0
    assert ending.run["health"]["users_given_up"] == 2
    assert "left behind" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("server frozen for ever", "sshfs", ending)


@long
def test_one_ctrl_c_ends_a_run_on_a_frozen_server_within_its_stop_timeout(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("tiny.yaml", "-t", "60s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    remote.freeze()
    time.sleep(1)
    scene.happens()
    assert scene.process is not None
    scene.process.send_signal(signal.SIGINT)
    ending = scene.end()
    assert ending.took_s < STOP_S + SLACK_S
    assert ending.code == 4, ending.said
    assert ending.run["status"] == "interrupted"
    remote.thaw()
    scene.clean()
    scene.tell("Ctrl-C on a frozen server", "sshfs", ending)


@long
def test_laying_out_on_a_frozen_server_is_reported_and_can_be_ended(remote: Remote) -> None:
    scene = remote.scene
    many = ("--set", "files.files=20000")
    scene.begin("look.yaml", "-s", str(STOP_S), *many)
    scene.wait_until_laying_out()
    remote.freeze()
    scene.wait(lambda: "hangs: create " in scene.said, "it says what hangs")
    scene.wait_until_told("/files/")
    scene.happens()
    assert scene.process is not None
    scene.process.send_signal(signal.SIGTERM)
    ending = scene.end()
    assert ending.took_s < STOP_S + SLACK_S
    assert ending.code == 3, ending.said
    assert ending.run["status"] == "failed"
    assert "left behind" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("server frozen while laying out, SIGTERM", "sshfs", ending)


@long
def test_a_server_that_freezes_before_the_removal_leaves_the_folder_to_clean(
    remote: Remote,
) -> None:
    scene = remote.scene
    scene.begin("look.yaml", "-t", "1s", "-s", str(STOP_S), "--set", "files.files=3000")
    scene.wait(lambda: len(list(scene.mount.glob("replayer-2*/files/*"))) == 3000, "it is laid out")
    scene.wait_until_measuring()
    removing = scene.folder / "files"
    before = len(list(removing.iterdir()))
    scene.wait(lambda: len(list(removing.iterdir())) < before, "it removes")
    remote.freeze()
    ending = scene.end()
    assert ending.took_s < STOP_S + SLACK_S + REPORT_S
    assert ending.code in {3, 4}, ending.said
    assert "left behind" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("server frozen while removing", "sshfs", ending)


@long
def test_a_server_that_dies_fails_its_calls_and_the_run_ends(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("tiny.yaml", "-t", "3s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    remote.server.send(signal.SIGKILL)
    ending = scene.end()
    assert ending.took_s < 3 + STOP_S + SLACK_S + 20  # what is asked of a mount may take 20 s
    assert ending.code in {1, 3, 4}, ending.said
    assert ending.outcomes <= {"EIO", "ENOTCONN", "ECONNABORTED", "ENOENT"}
    assert "left behind" in ending.said
    scene.tell("server killed", "sshfs", ending)


@long
def test_clean_on_a_frozen_server_ends_and_says_so(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("look.yaml", "-t", "30s", "--set", "files.files=300")
    scene.wait_until_measuring()
    scene.kill()
    remote.freeze()
    process = scene.shell.start("clean", scene.mount)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "did not answer" in said or "was given up on" in said
    remote.thaw()
    scene.clean()


@long
def test_a_target_whose_folder_is_deleted_under_the_run_fails_its_calls(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "mount").mkdir()
    scene = make_scene(home / "shell", tmp_path / "mount")
    scene.begin("tiny.yaml", "-t", "2s")
    scene.wait_until_measuring()
    call("rm", "-rf", scene.folder)
    scene.happens()
    ending = scene.end()
    assert ending.outcomes == {"ENOENT"}, ending.said
    assert ending.code in {1, 3, 4}
    scene.check_foreign()
    assert [path.name for path in scene.mount.iterdir()] == ["foreign"]
    scene.tell("folder deleted under the run", "local disk", ending)
