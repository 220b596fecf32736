"""Requests of io_uring and libaio are recorded as the calls that do the same."""

import shutil
from collections import Counter

import pytest

from tests.behaviour.probed import capture, load, needs_probe
from tests.behaviour.shell import Shell, compile_program

pytestmark = needs_probe
WITHOUT_RING = 77
"""How the program ends where it may not use io_uring."""


def replay(shell: Shell, pace: str) -> None:
    words = ("--target", shell.target(f"for-{pace}"), "--pace", pace, "--rounds", "1")
    replayed = shell.run("replay", "trace", *words)
    assert replayed.code in (0, 4), replayed.err  # 4: the machine was too busy to judge times
    assert "100 % as recorded, 0 diverged" in replayed.out


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["entered", "polled"])
def test_requests_of_io_uring_become_calls_with_their_names_and_results(
    shell: Shell, way: str
) -> None:
    program = compile_program("requests.c", shell.home / "requests")
    done = capture(shell, "--", "sh", "-c", f"cd root && exec {program} {way}")
    if done.code == WITHOUT_RING:
        pytest.skip("io_uring is disabled here")
    assert done.code == 0, done.err
    document = load(shell)
    if "io_uring" in document["blind_spots"]:
        pytest.skip("this kernel tells too little of requests")
    assert document["blind_spots"] == {}
    counts = document["counts"]
    assert counts["calls_asynchronous"] == 29
    assert (counts["lines_not_understood"], counts["time_went_back"]) == (0, 0)
    assert counts["errors"] == {"ENOENT": 1}
    ops = Counter(counts["ops"])
    del ops["exit"]
    assert ops == {
        "chdir": 1,  # the shell's
        "mkdir": 1,
        "open": 2,
        "pwrite": 6,
        "pwritev": 1,
        "write": 1,
        "read": 2,  # one of them is no request
        "pread": 4,
        "fallocate": 1,
        "fsync": 2,
        "fdatasync": 1,
        "close": 2,
        "stat": 3,
        "link": 1,
        "symlink": 1,
        "rename": 1,
        "unlink": 1,
    }
    for pace in ("asap", "closed"):
        replay(shell, pace)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("engine", [pytest.param("io_uring", marks=pytest.mark.nightly), "libaio"])
def test_requests_of_fio_are_as_many_lanes_as_its_depth_and_replay_as_recorded(
    shell: Shell, engine: str
) -> None:
    words = ("--directory=root", "--iodepth=8", "--rw=randwrite", "--bs=4k", "--size=1m")
    fio = ("fio", "--name=job", f"--ioengine={engine}", *words, "--fsync=32", "--output=out")
    done = capture(shell, "--", *fio)
    assert done.code == 0, done.err
    document = load(shell)
    if engine in document["blind_spots"]:
        pytest.skip("this kernel tells too little of requests")
    assert document["blind_spots"] == {}
    assert document["counts"]["calls_asynchronous"] >= 256
    assert document["counts"]["ops"]["pwrite"] == 256
    assert 8 <= document["counts"]["threads"] <= 8 + 3  # and fio's own
    replay(shell, "asap")


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_requests_on_files_without_a_descriptor_are_counted(shell: Shell) -> None:
    words = ("--directory=root", "--iodepth=4", "--rw=read", "--bs=4k", "--size=64k")
    fio = ("fio", "--name=job", "--ioengine=io_uring", "--registerfiles", *words, "--output=out")
    done = capture(shell, "--", *fio)
    assert done.code == 0, done.err
    blind = load(shell)["blind_spots"]
    if "io_uring" in blind:
        pytest.skip("this kernel tells too little of requests")
    assert blind == {"requests of io_uring or libaio that no call stands for": 16}
