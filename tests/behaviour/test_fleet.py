"""One run on several processes: the same calls, no collision, and every count in the sum."""

import json
import os

import pytest

from replayer.measure.record import load_run
from tests.behaviour.parts import COUNTED, Meeting, buckets, counts, networks, parts_of, workers
from tests.behaviour.shell import Done, Shell

LOCUST = ("-m", "locust")
USERS = 7
TRANSACTIONS = 60
ARRIVALS = """\
name: arrivals
about: Fifty transactions a second, whoever makes them.
users: {count: 6}
arrivals: {rate: 50/s, process: even}
duration: 2s
datasets:
  files: {files: 20, sizes: 1KiB}
mix: {look: 1}
transactions:
  look:
    - stat: {from: files, pick: uniform}
"""
WAITING = """\
name: waiting
about: One user waits for the other.
users: {count: 2}
iterations: 1
datasets: {shared: {directory: true}}
roles: {maker: {users: 1, mix: {make: 1}}, watcher: {users: 1, mix: {see: 1}}}
transactions:
  make:
    - mkdir: {in: shared, name: made}
    - signal: made
  see:
    - await: {signal: made, limit: 5s}
    - stat: {in: shared, name: made}
"""


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
    lines = [("run", *where, "-o", f"part{number}") for number in range(3)]
    with networks(3) as meeting, workers(counted, meeting, lines) as processes:
        three = counted.run(
            *("run", "counted.yaml", "--master", "--expect-workers", "3", "-o", "three"),
            *meeting.of_master,
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


def test_locusts_own_command_line_leads_and_works_through_mount_points_of_its_own(
    counted: Shell,
) -> None:
    packaged = counted.run("locustfile").out.strip()
    mount = counted.target()
    aliases = [counted.home / f"alias{number}" for number in range(2)]
    for alias in aliases:
        alias.symlink_to(mount)
    meeting = Meeting()
    lines = [
        ("-f", locustfile, "--target", f"here={alias}", "-o", alias.name.replace("alias", "part"))
        for alias, locustfile in zip(aliases, (packaged, "-"), strict=True)
    ]
    with workers(counted, meeting, lines, program=LOCUST) as processes:
        done = counted.run(
            *("-f", packaged, "--master", "--headless", "--expect-workers", "2", "-o", "out"),
            *("--scenario", "counted.yaml", "--json", "--skip-log", "--results", "none"),
            *meeting.of_master,
            program=LOCUST,
        )
        assert [process.wait(20) for process in processes] == [0, 0]
    record = load_run(counted.home / "out")
    told = {entry["name"]: entry["num_requests"] for entry in json.loads(done.out)}
    held = {name: n for (name, op, _), n in counts(record).items() if op == "transaction"}
    assert told == held
    assert sum(held.values()) == USERS * TRANSACTIONS
    assert {paths for client in record.run.clients for paths in client.paths} == {
        (str(alias),) for alias in aliases
    }
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize(
    ("scenario", "name", "says"),
    [
        ("counted.yaml", "there", "its targets are there, the targets of the run are here"),
        ("tiny.yaml", "here", "tiny.yaml: its plan is"),
    ],
)
def test_a_worker_that_would_do_something_else_is_refused_with_a_line(
    counted: Shell, scenario: str, name: str, says: str
) -> None:
    mount = counted.target()
    meeting = Meeting()
    lines = [
        ("run", "counted.yaml", "--target", f"here={mount}"),
        ("run", scenario, "--target", f"{name}={mount}"),
    ]
    with workers(counted, meeting, lines) as processes:
        done = counted.run(
            *("run", "counted.yaml", "--master", "--expect-workers", "2"),
            *("--target", f"here={mount}"),
            *meeting.of_master,
        )
        assert done.code == 2
        assert says in done.err
        assert "Traceback" not in done.err
        assert [process.wait(20) for process in processes] == [2, 2]
    assert list(mount.iterdir()) == []


@pytest.mark.parametrize("scenario", ["waiting.yaml", "visibility"])
def test_users_who_wait_for_each_other_are_not_dealt_to_several_processes(
    shell: Shell, scenario: str
) -> None:
    (shell.home / "waiting.yaml").write_text(WAITING)
    mount = shell.target()
    done = shell.run("run", scenario, "--target", mount, "--processes", "2")
    assert done.code == 2, done.err
    assert "its users wait for each other" in done.err
    assert "hint: run it without --processes or --master" in done.err
    assert "Traceback" not in done.err
    meeting = Meeting()
    with workers(shell, meeting, [("run", scenario, "--target", f"here={mount}")] * 2) as processes:
        led = shell.run("run", scenario, "--master", "--expect-workers", "2", *meeting.of_master)
        assert led.code == 2
        assert "its users wait for each other" in led.err
        assert [process.wait(20) for process in processes] == [2, 2]
    assert list(mount.iterdir()) == []


def test_users_who_wait_for_each_other_may_all_be_one_worker_s(shell: Shell) -> None:
    (shell.home / "waiting.yaml").write_text(WAITING)
    done = shell.run("run", "waiting.yaml", "--target", shell.target(), "--processes", "1")
    assert finished(done), done.err


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_workers_on_a_cpu_each_are_as_busy_as_the_busier_one_and_not_as_both(
    shell: Shell,
) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    mount = shell.target()
    lines = [("run", "tiny.yaml", "--target", f"here={mount}", "--quiet")] * 2
    meeting = Meeting(within=tuple(("taskset", "-c", str(cpu)) for cpu in cpus))
    with workers(shell, meeting, lines) as processes:
        done = shell.run(
            *("run", "tiny.yaml", "--master", "--expect-workers", "2", "-t", "3s"),
            *("-o", "out", "--json", *meeting.of_master),
        )
        assert finished(done), done.err
        assert [process.wait(20) for process in processes] == [0, 0]
    document = done.document()
    assert {each["machine"]["cpu_list"] for each in document["clients"]} == set(map(str, cpus))
    shares = [each["health"]["client_cpu_share"] for each in document["clients"]]
    together = document["health"]["client_cpu_share"]
    assert together == pytest.approx(max(shares))
    assert together < sum(shares)
    assert ", 2 CPUs, " in shell.run("report", "out", "--details").out


def test_arrivals_come_at_the_rate_of_one_process(shell: Shell) -> None:
    (shell.home / "arrivals.yaml").write_text(ARRIVALS)
    shell.target()
    done = shell.run("run", "arrivals.yaml", "--target", "mount", "--processes", "2", "--json")
    document = done.document()
    (look,) = document["summary"]["targets"][0]["overall"]["transactions"]
    assert 95 <= look["count"] <= 105, done.err
    shares = [client["shares"][0]["count"] for client in document["clients"]]
    assert sum(shares) == look["count"]
    assert abs(shares[0] - shares[1]) <= 2
