"""A run on several processes that ends before it has begun: what is said, and what is left."""

import csv
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from replayer.measure.record import load_run
from tests.behaviour import parts
from tests.behaviour.parts import Meeting, wait_for
from tests.behaviour.shell import Done, Process, Shell

LARGE = """\
name: large
about: A tree that takes long to lay out.
users: {count: 2, think_time: 2ms}
duration: 5m
datasets:
  files: {files: 60000, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
"""


@contextmanager
def led(
    shell: Shell, *more: str, count: int = 2, expect: int = 2
) -> Iterator[tuple[Process, list[Process]]]:
    """Start a master that expects some workers, and some workers, who lay out for seconds."""
    (shell.home / "large.yaml").write_text(LARGE)
    run = ("run", "large.yaml")
    words = (*run, "--expect-workers", str(expect), "-o", "out", *more)
    own = (*run, "--target", f"here={shell.target()}")
    lines = [(*own, "-o", f"part{number}") for number in range(count)]
    with parts.led(shell, Meeting(), words, lines) as found:
        yield found


def ended(process: Process) -> Done:
    out, err = process.communicate(timeout=150)
    return Done(process.returncode, out, err)


def is_laying_out(shell: Shell) -> bool:
    """Whether a file of the dataset is there, and so both workers have taken part until now."""
    return any(path.is_file() for path in (shell.home / "mount").glob("replayer-*/*/*"))


def test_a_worker_ends_as_its_master_that_waited_for_another_one_in_vain(shell: Shell) -> None:
    with led(shell, "--expect-workers-max-wait", "20", count=1) as (master, (worker,)):
        told = ended(master)
        assert "1 of 2 workers connected within 20 s" in told.err, told.err
        assert told.code == 3
        done = ended(worker)
    assert "the master stopped the run: 1 of 2 workers connected within 20 s" in done.err
    assert done.code == 3, done.err


def test_workers_end_as_their_master_whose_user_ends_it_while_one_lays_out(shell: Shell) -> None:
    with led(shell) as (master, processes):
        wait_for(lambda: is_laying_out(shell))
        master.send_signal(signal.SIGINT)
        told = ended(master)
        assert told.code == 4, told.err
        done = [ended(worker) for worker in processes]
    assert [each.code for each in done] == [4, 4], done
    assert list((shell.home / "mount").iterdir()) == []


def maker_of(shell: Shell) -> int:
    """Return which process makes the folders and lays them out."""
    runs = [load_run(path).run for path in shell.home.glob("part*")]
    (maker,) = [run.process.pid for run in runs if run.id.endswith("-0")]
    return maker


def test_a_worker_that_dies_while_it_lays_out_is_noticed_in_time_and_another_one_removes_its_folder(
    shell: Shell,
) -> None:
    with led(shell, "--worker-timeout", "10") as (master, processes):
        wait_for(lambda: is_laying_out(shell))
        os.kill(maker_of(shell), signal.SIGKILL)
        begin_s = time.monotonic()
        told = ended(master)
        assert time.monotonic() - begin_s < 50
        done = [ended(worker) for worker in processes]
    assert told.code == 3, told.err
    assert "is lost: it sent nothing for 10 s" in told.err
    assert "nothing was measured; use --on-lost-worker continue" in told.err
    assert "left folders behind" not in told.err
    assert sorted(each.code for each in done) == [-9, 3], done
    assert list((shell.home / "mount").iterdir()) == []


@pytest.mark.parametrize(
    "victim",
    [
        "maker",
        pytest.param("other", marks=pytest.mark.nightly),
        pytest.param("with an engine", marks=pytest.mark.nightly),
    ],
)
def test_a_run_goes_on_with_the_users_that_are_left_where_a_worker_dies_before_it_begins(
    shell: Shell, victim: str
) -> None:
    more = ("--on-lost-worker", "continue", "--worker-timeout", "8", "-t", "3s", "--json")
    with led(shell, *more) as (master, processes):
        wait_for(lambda: is_laying_out(shell))
        if victim == "with an engine":
            wait_for(lambda: any(shell.home.glob("part*/histograms.hlog")))
        pids = [load_run(path).run.process.pid for path in shell.home.glob("part*")]
        chosen = next(pid for pid in pids if (pid == maker_of(shell)) is (victim == "maker"))
        os.kill(chosen, signal.SIGKILL)
        told = ended(master)
        done = [ended(worker) for worker in processes]
    assert "more were requested" not in told.err
    assert told.code in {0, 4}, told.err
    document = told.document()
    assert document["status"] == "finished", told.err
    assert sorted(client["status"] for client in document["clients"]) == ["finished", "lost"]
    (left,) = (client for client in document["clients"] if client["status"] == "finished")
    assert left["users"] == 1
    assert sum(share["count"] for share in left["shares"]) > 0
    with (shell.home / "out" / "timeline.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["users"] for row in rows if row["phase"] == "measured"} == {"1"}
    assert sorted(each.code for each in done) == [-9, 0], done
    assert list((shell.home / "mount").iterdir()) == []


def test_a_folder_that_nobody_is_left_to_remove_is_named(shell: Shell) -> None:
    with led(shell, "--worker-timeout", "5", expect=1, count=1) as (master, _):
        wait_for(lambda: is_laying_out(shell))
        os.kill(maker_of(shell), signal.SIGKILL)
        told = ended(master)
    assert told.code == 3, told.err
    mount = shell.home / "mount"
    assert (
        f"may have left folders behind; remove them there with: replayer clean {mount}" in told.err
    )
    assert [path.name.startswith("replayer-") for path in mount.iterdir()] == [True]
    assert shell.run("clean", mount).code == 0
    assert list(mount.iterdir()) == []
