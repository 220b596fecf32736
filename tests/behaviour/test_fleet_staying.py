"""Workers that outlive their master: the next one at the same address has all of them."""

import signal

from replayer.measure.record import load_run
from tests.behaviour.parts import Meeting, networks, workers
from tests.behaviour.shell import Shell

LED = ("run", "tiny.yaml", "--master", "--expect-workers")


def test_workers_that_were_kept_and_spare_ones_work_for_the_next_master(shell: Shell) -> None:
    place = shell.target()
    lines = [("run", "tiny.yaml", "--target", f"here={place}", "-o", f"part{n}") for n in range(3)]
    with networks(3) as meeting, workers(shell, meeting, lines) as processes:
        refused = shell.run(*LED, "3", "--target", "there", "--keep-workers", *meeting.of_master)
        assert (refused.code, "targets are here" in refused.err) == (2, True), refused.err
        first = shell.run(*LED, "2", "--keep-workers", "-o", "first", *meeting.of_master)
        assert first.code in {0, 4}, first.err
        assert [process.poll() for process in processes] == [None] * 3
        second = shell.run(*LED, "3", "-o", "second", *meeting.of_master)
        assert second.code in {0, 4}, second.err
        assert [process.wait(20) for process in processes] == [0] * 3
    found = [load_run(shell.home / name).run.clients for name in ("first", "second")]
    assert [len(clients) for clients in found] == [2, 3]
    assert list(place.iterdir()) == []


def test_a_worker_that_was_kept_ends_at_one_ctrl_c(shell: Shell) -> None:
    lines = [("run", "tiny.yaml", "--target", f"here={shell.target()}")]
    meeting = Meeting()
    with workers(shell, meeting, lines) as (worker,):
        done = shell.run(*LED, "1", "--keep-workers", *meeting.of_master)
        assert done.code in {0, 4}, done.err
        worker.send_signal(signal.SIGINT)
        assert worker.wait(20) == 4
