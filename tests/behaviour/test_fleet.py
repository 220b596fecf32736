"""One run on several processes: the same calls, no collision, and every count in the sum."""

import pytest

from replayer.measure import load_run
from tests.behaviour.parts import COUNTED, buckets, counts, free_port, parts_of, workers
from tests.behaviour.shell import Done, Shell

USERS = 7
TRANSACTIONS = 60


@pytest.fixture
def counted(shell: Shell) -> Shell:
    (shell.home / "counted.yaml").write_text(COUNTED)
    return shell


def finished(done: Done) -> bool:
    return done.went_well or ("Traceback" not in done.err and done.code == 4)


def test_the_same_calls_are_made_by_one_process_by_two_and_by_a_master_with_three_workers(
    counted: Shell,
) -> None:
    mount = counted.target()
    where = ("counted.yaml", "--target", f"here={mount}", "--quiet")
    alone = counted.run("run", *where, "-o", "one")
    assert finished(alone), alone.err
    two = counted.run("run", *where, "--processes", "2", "-o", "two")
    assert finished(two), two.err
    port = free_port()
    lines = [("run", *where, "-o", f"part{number}") for number in range(3)]
    with workers(counted, port, lines) as processes:
        three = counted.run(
            *("run", "counted.yaml", "--master", "--expect-workers", "3", "-o", "three"),
            *("--master-bind-host", "127.0.0.1", "--master-bind-port", str(port)),
        )
        assert finished(three), three.err
        assert [process.wait(20) for process in processes] == [0, 0, 0]
    records = {name: load_run(counted.home / name) for name in ("one", "two", "three")}
    wanted = counts(records["one"])
    assert sum(n for (_, op, _), n in wanted.items() if op == "transaction") == (
        USERS * TRANSACTIONS
    )
    assert counts(records["two"]) == wanted
    assert counts(records["three"]) == wanted
    assert buckets([records["two"]]) == buckets(parts_of(counted.home))
    parts = [load_run(counted.home / f"part{number}") for number in range(3)]
    assert all(sum(counts(part).values()) for part in parts)
    assert buckets([records["three"]]) == buckets(parts)
    assert list(mount.iterdir()) == []
    assert [client.users for client in records["three"].run.clients] == [3, 2, 2]
    assert len({part.run.process.pid for part in parts}) == 3
