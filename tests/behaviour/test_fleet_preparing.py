"""A run on several processes that ends before it has begun: what is said, and what is left."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.behaviour.parts import Meeting, wait_for, workers
from tests.behaviour.shell import Done, Process, Shell

LARGE = """\
name: large
about: A tree that takes long to lay out.
users: {count: 2, think_time: 2ms}
duration: 5m
datasets:
  files: {files: 300000, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
"""


@contextmanager
def led(shell: Shell, *more: str, count: int = 2) -> Iterator[tuple[Process, list[Process]]]:
    """Start a master that expects two workers, and some workers on one target."""
    (shell.home / "large.yaml").write_text(LARGE)
    mount, meeting = shell.target(), Meeting()
    lines = [
        ("run", "large.yaml", "--target", f"here={mount}", "-o", f"part{number}")
        for number in range(count)
    ]
    with workers(shell, meeting, lines) as processes:
        master = shell.start(
            *("run", "large.yaml", "--master", "--expect-workers", "2", "-o", "out"),
            *meeting.of_master,
            *more,
        )
        try:
            yield master, processes
        finally:
            if master.poll() is None:
                master.kill()
                master.communicate()


def ended(process: Process) -> Done:
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def is_laying_out(shell: Shell) -> bool:
    """Whether a file of the dataset is there, and so both workers have taken part until now."""
    return any(path.is_file() for path in (shell.home / "mount").glob("replayer-*/*/*"))


def test_a_worker_ends_as_its_master_that_waited_for_another_one_in_vain(shell: Shell) -> None:
    with led(shell, "--expect-workers-max-wait", "8", count=1) as (master, (worker,)):
        assert ended(master).code == 3
        done = ended(worker)
    assert "the master gave up: 1 of 2 workers came within 8 s" in done.err
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
