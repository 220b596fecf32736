"""Where written data is said to be when a transaction has ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from replayer.analysis.composition import analyse
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.report.findings import acknowledgements
from tests.unit.analysis.found import found_in
from tests.unit.runs import RunWriter, make_load, make_run, make_target

NFS: dict[str, Any] = {"filesystem": "nfs4", "super_options": ("rw", "vers=4.1")}


def save(path: Path, *extra: str) -> RunWriter:
    writer = RunWriter(path)
    writer.transaction("save", [10**6] * 30)
    for op in ("open", "write", *extra, "close"):
        writer.record(f"0/0/measured/save/{op}/ok/expected", [10**4] * 30)
    return writer


@pytest.mark.parametrize(
    ("mount", "extra", "ends"),
    [
        ({}, (), "client cache"),
        ({}, ("fsync",), "device"),
        (NFS, (), "server"),
        ({"filesystem": "tmpfs"}, ("fsync",), "memory"),
        ({"filesystem": "unheard-of"}, (), "unknown"),
    ],
)
def test_each_writing_transaction_says_where_its_data_is(
    tmp_path: Path, mount: dict[str, Any], extra: tuple[str, ...], ends: str
) -> None:
    target = make_target(**mount)
    found = found_in(save(tmp_path, *extra), targets=(target,))
    (promise,) = found.acknowledged
    assert promise.ends == ends
    assert {item.op: item.place for item in promise.ops}["write"] == target.guarantee.write
    assert [label for label, _ in acknowledgements(found)] == ["local"]


@pytest.mark.parametrize("how", [("ok", 15), ("EIO", 30)])
def test_what_is_not_flushed_each_time_is_not_flushed(tmp_path: Path, how: tuple[str, int]) -> None:
    outcome, count = how
    writer = save(tmp_path)
    expected = "expected" if outcome == "ok" else "unexpected"
    writer.record(f"0/0/measured/save/fsync/{outcome}/{expected}", [10**4] * count)
    (promise,) = found_in(writer).acknowledged
    assert promise.ends == "client cache"
    says = "flushed 0.5 times a transaction, so not always" if outcome == "ok" else "nothing is"
    assert promise.says.startswith(says)


def test_what_is_written_out_in_part_is_not_flushed(tmp_path: Path) -> None:
    (promise,) = found_in(save(tmp_path, "sync_file_range")).acknowledged
    assert promise.ends == "client cache"
    assert promise.says == "nothing is flushed; files are closed"
    assert [item.op for item in promise.ops] == ["write", "close"]


@pytest.mark.parametrize(
    ("flush", "opened", "ends", "says"),
    [
        ("fsync", None, "client cache", "flushed 1 times a transaction of 10 closed files; files"),
        ("fsync", ["w"] * 10, "client cache", "flushed 1 times a transaction of 10 written files"),
        ("fsync", ["w", *"r" * 9], "device", "flushed 1 times a transaction"),
        ("fsync", ["r", ["w"]], "client cache", "flushed 1 times a transaction of 10 closed files"),
        ("syncfs", None, "device", "flushed 1 times a transaction"),
    ],
)
def test_each_file_that_is_written_needs_a_flush(
    tmp_path: Path, flush: str, opened: list[str | list[str]] | None, ends: str, says: str
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [10**6] * 30)
    for op, count in (("open", 300), ("write", 300), (flush, 30), ("close", 300)):
        writer.record(f"0/0/measured/save/{op}/ok/expected", [10**4] * count)
    folder = writer.write(make_run())
    if opened is not None:
        plan = {"transactions": [{"name": "save", "steps": [*map(opening, opened)]}]}
        (folder / "plan.json").write_text(json.dumps(plan))
    record = load_run(folder)
    (promise,) = analyse(record, summarise(record)).acknowledged
    assert promise.ends == ends
    assert promise.says.startswith(says)


def opening(how: str | list[str]) -> dict[str, Any]:
    """Return a step that opens a file to read or to write; of a list, those that are repeated."""
    if isinstance(how, list):
        return {"do": "repeat", "steps": [*map(opening, how)]}
    return {"do": "call", "op": "open", "flags": 0o1 if how == "w" else 0o0}


def test_many_flushes_of_a_transaction_are_counted_in_plain_digits(tmp_path: Path) -> None:
    writer = save(tmp_path)
    writer.record("0/0/measured/save/fsync/ok/expected", [10**4] * 3000)
    (promise,) = found_in(writer).acknowledged
    assert promise.says == "flushed 100 times a transaction"


def test_writes_from_several_buffers_are_writes(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [10**6] * 30)
    writer.record("0/0/measured/save/writev/ok/expected", [10**4] * 30)
    (promise,) = found_in(writer).acknowledged
    assert [item.op for item in promise.ops] == ["writev"]


@pytest.mark.parametrize(
    ("flags", "place"),
    [
        ([0o1], "client cache"),
        ([0o4010001], "device"),
        ([0o4010001, 0o0], "device"),
        ([0o4010001, 0o2], "client cache"),
    ],
)
def test_synchronous_opens_are_read_from_the_plan(
    tmp_path: Path, flags: list[int], place: str
) -> None:
    opens = [{"do": "call", "op": "open", "flags": each} for each in flags]
    steps = [{"do": "repeat", "steps": opens}]
    folder = save(tmp_path).write(make_run())
    (folder / "plan.json").write_text(
        json.dumps({"transactions": [{"name": "save", "steps": steps}]})
    )
    record = load_run(folder)
    (promise,) = analyse(record, summarise(record)).acknowledged
    assert promise.ends == place


@pytest.mark.parametrize(
    ("writing", "place"),
    [
        ({"save": "synchronous"}, "device"),
        ({"save": "direct"}, "device, not flushed"),
        ({"save": "flushed"}, "client cache, fsync separate"),
        ({"save": "buffered"}, "client cache"),
        ({}, None),
    ],
)
def test_how_a_job_of_fio_writes_is_read_from_the_plan(
    tmp_path: Path, writing: dict[str, str], place: str | None
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [10**6] * 30)
    for op, count in (("write", 30), ("fsync", 1)):  # the fsync is that of end_fsync
        writer.record(f"0/0/measured/save/{op}/ok/expected", [10**4] * count)
    folder = writer.write(make_run(load=make_load(order="in turn")))
    plan = {"engine": "fio", "jobs": [{"source": "save", "text": "", "writing": writing}]}
    (folder / "plan.json").write_text(json.dumps(plan))
    record = load_run(folder)
    found = analyse(record, summarise(record)).acknowledged
    assert [promise.ends for promise in found] == ([] if place is None else [place])
    assert [promise.ops[0].place for promise in found] == [promise.ends for promise in found]


@pytest.mark.parametrize(
    ("filesystem", "place", "says"),
    [
        ("nfs4", "server", "written past the page cache (O_DIRECT)"),
        (
            "ext4",
            "device, not flushed",
            "written past the page cache (O_DIRECT), and no device is told to flush",
        ),
    ],
)
def test_a_direct_write_is_where_the_mount_leaves_it(
    tmp_path: Path, filesystem: str, place: str, says: str
) -> None:
    writer = RunWriter(tmp_path)
    writer.transaction("save", [10**6] * 30)
    writer.record("0/0/measured/save/write/ok/expected", [10**4] * 30)
    targets = (make_target(filesystem=filesystem),)
    folder = writer.write(make_run(load=make_load(order="in turn"), targets=targets))
    plan = {"engine": "fio", "jobs": [{"source": "a", "text": "", "writing": {"save": "direct"}}]}
    (folder / "plan.json").write_text(json.dumps(plan))
    record = load_run(folder)
    (found,) = analyse(record, summarise(record)).acknowledged
    assert (found.ends, found.says) == (place, says)


@pytest.mark.parametrize("plan", ["", "[]", '{"transactions": 7}', '{"jobs": []}'])
def test_a_plan_of_another_kind_is_no_error(tmp_path: Path, plan: str) -> None:
    folder = save(tmp_path).write(make_run())
    (folder / "plan.json").write_text(plan)
    record = load_run(folder)
    assert analyse(record, summarise(record)).acknowledged
