"""The flight recorder beside its probe: who may ask, memory, and roots that do not answer."""

import lzma
import os
import threading
from pathlib import Path
from types import SimpleNamespace as Facts
from typing import Any

import pytest

from replayer.capture import flight, flow
from replayer.capture.dump_door import DumpDoor, ask_for_dump
from replayer.capture.order import CallLimit, FlightOrder
from replayer.capture.staging import Staging
from replayer.capture.tree import Listed
from replayer.errors import OutsideError, ReplayerError


@pytest.fixture(autouse=True)
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorders of other tests, which run beside these, have other names."""
    name = f"replayer-flight-{{user}}-of-{os.getpid()}-{{process}}"
    monkeypatch.setattr("replayer.capture.dump_door._NAME", name)


def answering(door: DumpDoor, text: str, *, is_done: bool) -> threading.Thread:
    def answer() -> None:
        while (asking := door.take()) is None:
            pass
        asking.answer(text, is_done=is_done)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_the_only_recorder_is_found_and_its_answer_is_heard() -> None:
    with DumpDoor() as door:
        thread = answering(door, "/tmp/trace", is_done=True)  # noqa: S108 - a name
        assert ask_for_dump(None) == "/tmp/trace"  # noqa: S108 - a name
        thread.join()
        thread = answering(door, "the disk is full", is_done=False)
        with pytest.raises(OutsideError, match="the disk is full"):
            ask_for_dump(os.getpid())
        thread.join()
        with pytest.raises(ReplayerError, match="--dump 1: is no flight recorder of this user"):
            ask_for_dump(1)
    with pytest.raises(ReplayerError, match="no flight recorder of this user runs"):
        ask_for_dump(None)


def test_a_recorder_that_ends_without_an_answer_is_said_to_have_ended() -> None:
    with DumpDoor() as door:
        thread = answering(door, "", is_done=False)
        with pytest.raises(OutsideError, match="has ended"):
            ask_for_dump(None)
        thread.join()


def test_two_recorders_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sockets = tmp_path / "unix"
    user = os.geteuid()
    monkeypatch.setattr("replayer.capture.dump_door._NAME", "replayer-flight-{user}-{process}")
    names = (f"@replayer-flight-{user}-12", f"@replayer-flight-{user}-9", "@replayer-flight-x-3")
    sockets.write_text("".join(f"0: 2 0 10000 1 1 77 {name}\n" for name in names))
    monkeypatch.setattr("replayer.capture.dump_door._SOCKETS", sockets)
    with pytest.raises(ReplayerError, match=r"2 flight recorders run \(process 9, 12\)"):
        ask_for_dump(None)


def test_memory_that_the_machine_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  900000 kB\nMemAvailable:  500000 kB\n")
    monkeypatch.setattr(flight, "_MEMINFO", meminfo)
    order = FlightOrder(10**9, 256 * 10**6, CallLimit("nonsense", 1))
    with pytest.raises(OutsideError, match=r"needs 579 MB of memory .* and 512 MB are available"):
        flight.open_flight(order, [])


def test_roots_that_do_not_answer_are_as_they_were_at_the_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(flow, "LIST_S", 0.1)
    monkeypatch.setattr(flow, "list_tree", lambda *_: is_over.wait(60))
    begun, dump = _begun(tmp_path)
    remarks: list[str] = []
    assert flow._list_again(begun, dump, remarks) == (Listed(entries=7),)  # noqa: SLF001
    is_over.set()
    assert remarks == ["the roots could not be listed: the files are those of the begin"]
    assert lzma.decompress(dump.staging.tree.read_bytes()) == b"the list of the begin"


def _begun(tmp_path: Path) -> tuple[Any, Any]:
    """Return a recording with a list of its begin, and a log without one."""
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir()
    (first / "tree.tsv.xz").write_bytes(lzma.compress(b"the list of the begin"))
    job = Facts(
        roots=(Facts(absolute=Path("/srv")),),
        order=Facts(exclude=()),
        staging=Staging(first),
    )
    begun = Facts(job=job, before=Facts(listed=(Listed(entries=7),)), listed_s=0)
    return begun, Facts(staging=Staging(second), began=Facts(wall_ns=1))
