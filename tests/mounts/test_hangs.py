"""Servers that stop answering, for a while and for ever, and servers that die."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.behaviour.test_verify import WRITES
from tests.mounts.fleet import long, with_fio
from tests.mounts.gluster import bricks, gluster
from tests.mounts.machine import CannotError, call
from tests.mounts.scene import Scene, make_scene
from tests.mounts.sshfs import Server, send_to, serve

pytestmark = pytest.mark.mounts

STOP_S = 2
SLACK_S = 5  # how much later than its stop timeout a run may end
REPORT_S = 5  # after so long in the kernel a call is reported
REMOVAL_S = 20  # how long a removal of a baseline may hang
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
        send_to(self.server.clients(), signal.SIGCONT)


@dataclass
class Frozen:
    """A scene on a mount, and the processes that are frozen."""

    scene: Scene
    kind: str
    who: Callable[[], list[int]]

    def freeze(self) -> None:
        send_to(self.who(), signal.SIGSTOP)
        self.scene.happens()

    def thaw(self) -> None:
        send_to(self.who(), signal.SIGCONT)


def make_frozen(stack: ExitStack, home: Path, kind: str) -> Frozen:
    place = home / "place"
    if kind == "gluster's brick":
        mount = gluster(stack, place)[0]
        return Frozen(make_scene(home / "shell", mount), kind, lambda: bricks(place))
    server = serve(stack, place)
    who = server.workers if kind == "sshfs's server" else server.clients
    return Frozen(make_scene(home / "shell", server.mount(stack, "one")), kind, who)


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
@pytest.mark.parametrize("seconds", [6, 60])
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
    end_in_time(Frozen(remote.scene, "sshfs's server", remote.server.workers))


@long
@pytest.mark.parametrize("kind", ["sshfs itself", "gluster's brick"])
def test_what_is_frozen_for_ever_lets_the_run_end_in_time(
    stack: ExitStack, home: Path, kind: str
) -> None:
    try:
        frozen = make_frozen(stack, home, kind)
    except CannotError as error:
        pytest.skip(str(error))
    try:
        end_in_time(frozen)
    finally:
        frozen.thaw()
        frozen.scene.kill()


def end_in_time(frozen: Frozen) -> None:
    """Run on a mount that stops answering, and never goes on before the run has ended."""
    scene = frozen.scene
    scene.begin("tiny.yaml", "-t", "9s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    frozen.freeze()
    assert scene.wait_until_told("hangs: user") < REPORT_S + SOON_S
    ending = scene.end()
    assert ending.took_s < 9 + STOP_S + SLACK_S
    assert ending.code == 4, ending.said
    assert ending.ops > 0
    assert ending.run["health"]["users_given_up"] == 2
    assert "left behind" in ending.said
    frozen.thaw()
    scene.clean()
    scene.tell("frozen for ever", frozen.kind, ending)


@long
@pytest.mark.parametrize("processes", ["1", "2"])
def test_of_two_targets_only_the_one_that_hangs_is_left_behind(
    remote: Remote, tmp_path: Path, processes: str
) -> None:
    scene, other = remote.scene, tmp_path / "other"
    other.mkdir()
    words = ("-t", "9s", "-s", str(STOP_S), *(("--processes", "2") if processes == "2" else ()))
    scene.begin("tiny.yaml", "--target", f"well={other}", *words)
    scene.wait_until_working()
    remote.freeze()
    ending = scene.end()
    assert ending.took_s < 9 + STOP_S + SLACK_S
    assert ending.code == 4, ending.said
    assert ending.said.count("left behind") == 1, ending.said
    assert list(other.iterdir()) == []
    remote.thaw()
    scene.clean()
    scene.tell(f"frozen for ever, beside one that is well, {processes} process", "sshfs", ending)


@long
def test_a_server_that_freezes_while_data_are_read_back_lets_the_run_end_in_time(
    remote: Remote,
) -> None:
    scene = remote.scene
    (scene.shell.home / "writes.yaml").write_text(WRITES)
    scene.begin("writes.yaml", "--verify", "-t", "4s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.wait_until_idle()
    remote.freeze()
    ending = scene.end()
    assert ending.took_s < STOP_S + SLACK_S + SOON_S
    assert ending.code in {3, 4}, ending.said
    last = ending.run["verification"]["last"]
    assert last["left_files"] > 0
    assert last["wrong_blocks"] == {"stale": 0, "torn": 0, "swapped": 0, "lost": 0}
    assert "left behind" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("server frozen while data are read back", "sshfs", ending)


@long
def test_one_ctrl_c_ends_a_run_on_a_frozen_server_within_its_stop_timeout(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("tiny.yaml", "-t", "60s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    remote.freeze()
    time.sleep(1)
    scene.happens()
    scene.send(signal.SIGINT)
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
    scene.send(signal.SIGTERM)
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
def test_a_replay_on_a_server_that_is_frozen_for_ever_ends_in_time(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("wordpress/plugin-delete", "-t", "60s", "-s", str(STOP_S), command="replay")
    scene.wait_until_measuring()
    remote.freeze()
    scene.wait_until_told("hangs: ")
    scene.happens()
    scene.send(signal.SIGTERM)
    ending = scene.end()
    assert ending.took_s < STOP_S + SLACK_S
    assert ending.code == 4, ending.said
    assert "left behind" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("replay: server frozen for ever, SIGTERM", "sshfs", ending)


JOB = """\
[save]
ioengine=psync
rw=write
bs=4k
size=1m
runtime=3s
time_based=1
fsync=1
"""
KILL_S = 5  # how long fio may take to be gone when it was killed


@long
@with_fio
def test_a_baseline_on_a_server_that_is_frozen_for_ever_says_so_and_ends(remote: Remote) -> None:
    scene = remote.scene
    (scene.shell.home / "save.fio").write_text(JOB.replace("3s", "60s"))
    scene.begin("save.fio", "-s", str(STOP_S), command="baseline")
    scene.wait(lambda: any(scene.mount.glob("replayer-2*/save.*")), "fio has begun")
    time.sleep(3)
    remote.freeze()
    assert scene.wait_until_told("no I/O has completed") < REPORT_S + SOON_S
    scene.happens()
    scene.send(signal.SIGTERM)
    ending = scene.end()
    assert ending.took_s < STOP_S + KILL_S + SOON_S
    assert ending.code == 3, ending.said
    assert "replayer clean" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("baseline: server frozen for ever, SIGTERM", "sshfs", ending)


@long
@with_fio
def test_a_baseline_whose_removal_hangs_says_so_and_ends(remote: Remote) -> None:
    scene = remote.scene
    many = "nrfiles=4000\nfilesize=4k\nsize=16m\nopenfiles=16"
    job = JOB.replace("size=1m", many).replace("fsync=1\n", "create_fsync=0\n")
    (scene.shell.home / "save.fio").write_text(job)
    scene.begin("save.fio", command="baseline")
    scene.wait(lambda: any(scene.mount.glob("replayer-2*/save.*")), "fio has begun")
    folder = scene.folder
    most = 0

    def shrinks() -> bool:
        nonlocal most
        count = len(list(folder.iterdir()))
        most = max(most, count)
        return count < most

    scene.wait(shrinks, "it removes")
    remote.freeze()
    scene.wait_until_told("hangs: ")
    ending = scene.end()
    assert ending.took_s < REMOVAL_S + SLACK_S
    assert ending.code == 3, ending.said
    assert "replayer clean" in ending.said
    remote.thaw()
    scene.clean()
    scene.tell("baseline: server frozen while removing", "sshfs", ending)


@long
def test_a_server_that_dies_fails_its_calls_and_the_run_ends(remote: Remote) -> None:
    scene = remote.scene
    scene.begin("tiny.yaml", "-t", "3s", "-s", str(STOP_S))
    scene.wait_until_measuring()
    scene.happens()
    remote.server.send(signal.SIGKILL)
    ending = scene.end()
    assert ending.took_s < 3 + STOP_S + SLACK_S + 20  # what is asked of a mount may take 20 s
    assert ending.code in {3, 4}, ending.said
    assert ending.outcomes <= {"EIO", "ENOTCONN", "ECONNABORTED", "ENOENT"}
    assert "left behind" in ending.said
    scene.tell("server killed", "sshfs", ending)


@long
def test_of_two_mount_points_the_one_that_hangs_is_named(remote: Remote, tmp_path: Path) -> None:
    scene, other = remote.scene, tmp_path / "other"
    other.mkdir()
    remote.freeze()
    process = scene.shell.start("run", "tiny.yaml", "--target", f"share={other},{scene.mount}")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3
    assert f"{scene.mount}: the mount does not answer" in said
    assert list(other.iterdir()) == []
    remote.thaw()


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
    assert "did not answer" in said or "was abandoned" in said
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
    # Its users go on to make files there until their folder is gone.
    call("sh", "-c", 'until rm -rf "$0"; do :; done', scene.folder)
    scene.happens()
    ending = scene.end()
    assert ending.outcomes == {"ENOENT"}, ending.said
    assert ending.code == 3
    assert " is gone" in str(ending.run["losses"])
    scene.check_foreign()
    assert [path.name for path in scene.mount.iterdir()] == ["foreign"]
    scene.tell("folder deleted under the run", "local disk", ending)
