"""What NFS mounts asked their servers: read from the kernel's counters, told per transaction."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from replayer.measure.clients import Client
from replayer.measure.facts import MachineFacts
from replayer.measure.mountinfo import load_mountstats, mount_age
from replayer.measure.mountstats import RequestCounts, read_requests, since
from replayer.measure.record import load_run
from replayer.report.composition import compose
from replayer.report.first_screen import render_first_screen
from replayer.report.html import render_html
from replayer.report.table import render_table
from tests.unit.runs import RunWriter, make_run

STATS = """\
device proc mounted on /proc with fstype proc
device server:/a mounted on /mnt/a\\040b with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1,rsize=1048576
\tage:\t17
\tevents:\t1 2 3 4 5
\txprt:\ttcp 0 1 2 0 8 64 64 0 128 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t     GETATTR: {getattr} {sent} 1 1000 2000 30 400 450 0
\t        READ: 0 0 0 0 0 0 0 0 0
\t       WRITE: 12 12 0 4096 96 1 24 26
device server:/b mounted on /mnt/c with fstype nfs statvers=1.1
\tper-op statistics
\t     GETATTR: 5 5 0 1 2 3 4 5 0
"""


def read(
    tmp_path: Path, *points: str, getattr_: int = 100, sent: int = 103
) -> dict[str, RequestCounts]:
    (tmp_path / "mountstats").write_text(STATS.format(getattr=getattr_, sent=sent))
    return dict(read_requests(points, tmp_path / "mountstats"))


def test_the_counters_of_the_mounts_that_were_asked_for_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, "/mnt/a b")
    assert found["GETATTR"] == RequestCounts(
        count=100, transmissions=103, timeouts=1, queue_ms=30, round_trip_ms=400, execute_ms=450
    )
    assert found["WRITE"].execute_ms == 26, "kernels before 5.3 count no errors"
    assert read(tmp_path, "/mnt/a b", "/mnt/c")["GETATTR"].count == 105
    assert read(tmp_path, "/mnt/other") == {}
    assert read_requests(["/mnt/a b"], tmp_path / "nothing") == {}


def test_how_long_ago_a_mount_was_mounted_is_read(tmp_path: Path) -> None:
    read(tmp_path)
    stats = load_mountstats(tmp_path / "mountstats")
    assert mount_age(stats["/mnt/a b"]) == 17
    assert mount_age(stats["/mnt/c"]) is None
    assert mount_age(stats["/proc"]) is None


def test_what_was_made_between_two_readings_is_told_alone(tmp_path: Path) -> None:
    before = read(tmp_path, "/mnt/a b")
    after = read(tmp_path, "/mnt/a b", getattr_=160, sent=165)
    made = since(before, after)
    assert list(made) == ["GETATTR"]
    assert (made["GETATTR"].count, made["GETATTR"].transmissions) == (60, 62)


def write_run(path: Path, names: int, writes: int) -> Path:
    """Write a run of 100 transactions in two rounds whose mounts asked so much."""
    writer = RunWriter(path)
    for second in range(4):
        samples = [10**6 + extra for extra in range(25)]
        writer.transaction("page", samples, f"0/{second // 2}", (second, second + 1))
    writer.write(make_run())
    each = {
        "GETATTR": {"count": names // 2, "transmissions": names // 2 + 1, "round_trip_ms": names},
        "WRITE": {"count": writes // 2, "transmissions": writes // 2, "queue_ms": writes // 4},
    }
    lines = [
        {
            "t_s": 2.0 * number,
            "kind": "nfs requests",
            "target": 0,
            "round": number,
            "requests": each,
        }
        for number in range(2)
    ]
    with (path / "events.jsonl").open("a") as events:
        events.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def test_a_report_tells_requests_per_transaction_and_what_would_save_them(tmp_path: Path) -> None:
    record = load_run(write_run(tmp_path, names=29_000, writes=2_200))
    document = compose(record)
    (found,) = document.server
    assert (found.transactions, found.count) == (100, 31_200)
    assert found.per_transaction == pytest.approx(312)
    names, writes = found.kinds
    assert (names.kind, names.per_transaction, names.sent_again) == ("GETATTR", 290, 2)
    assert names.round_trip_ns == pytest.approx(2e6)
    assert writes.queue_ns == pytest.approx(0.5e6)
    screen = " ".join(render_first_screen(document).split())
    assert "asked the server 312 times, 290 of them GETATTR; 2 requests were sent again" in screen
    assert "a longer actimeo would save most of these" in screen
    assert "29,000" in render_table(document)
    assert "asked the server 312 times" in render_html([record])


def test_workers_that_share_a_mount_tell_its_requests_once(tmp_path: Path) -> None:
    path = write_run(tmp_path, names=200, writes=200)
    here, there = make_run().machine, make_run().machine.model_copy(update={"host": "other"})
    clients = [_client(0, here), _client(1, here), _client(2, there)]
    record = load_run(path)
    record = replace(record, run=record.run.model_copy(update={"clients": tuple(clients)}))
    events = [{**event, "client": number} for event in record.events for number in range(3)]
    (found,) = compose(replace(record, events=tuple(events))).server
    assert found.count == 2 * 400, "of two machines, not of three processes"


def _client(number: int, machine: MachineFacts) -> Client:
    return Client(
        number=number,
        machine=machine,
        pid=number + 1,
        users=1,
        paths=(("/mnt/a",),),
        status="finished",
        clock_within_ns=0,
        shares=(),
        health=None,
        folder="/x",
    )


def test_no_option_is_named_where_names_are_not_what_is_asked_for(tmp_path: Path) -> None:
    (found,) = compose(load_run(write_run(tmp_path, names=200, writes=2_200))).server
    assert found.kinds[0].kind == "WRITE"
    assert found.advice is None


def test_damaged_events_and_other_file_systems_tell_nothing(tmp_path: Path) -> None:
    path = write_run(tmp_path, names=200, writes=200)
    text = (path / "events.jsonl").read_text().replace('"count"', '"cuont"')
    (path / "events.jsonl").write_text(text)
    assert compose(load_run(path)).server == ()
