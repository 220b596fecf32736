"""What NFS mounts were asked is kept for measured phases, and for nothing else."""

from types import SimpleNamespace
from typing import Any, cast

import gevent
import pytest

from replayer.measure.mountstats import NFS_EVENT, RequestCounts
from replayer.run import nfs_requests
from replayer.run.runtime import EngineClient
from replayer.run.schedule import ScheduledSegment, make_schedule

DONE = SimpleNamespace(open=lambda **_: None, close=lambda: None)


class Kept:
    """A run folder's writer, of a run on one NFS mount."""

    def __init__(self) -> None:
        mount = SimpleNamespace(mount_point="/mnt/nfs", filesystem="nfs4")
        self.run = SimpleNamespace(targets=[SimpleNamespace(mounts=[mount])])
        self.events: list[tuple[str, Any]] = []

    def note(self, kind: str, _t_s: float, fields: Any) -> None:  # noqa: ANN401 - JSON
        self.events.append((kind, fields))


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def client(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> EngineClient:
    made = iter(range(100, 200, 7))
    counted = lambda points: {"GETATTR": RequestCounts(count=next(made))} if points else {}  # noqa: E731
    monkeypatch.setattr(nfs_requests, "read_requests", counted)
    engine = SimpleNamespace(begin_segment=lambda *_, **__: None, now_ns=lambda: 10**9)
    request = SimpleNamespace(spawner=None)
    session = SimpleNamespace(engine=engine, request=request, writer=kept, target_dirs=())
    registry = SimpleNamespace(open=lambda: None)
    return EngineClient(cast("Any", session), cast("Any", registry), cast("Any", DONE))


@pytest.fixture
def segment() -> ScheduledSegment:
    (only,) = make_schedule(1, 1, None)
    return only


def test_a_measured_phase_has_the_requests_of_its_time(
    client: EngineClient, kept: Kept, segment: ScheduledSegment
) -> None:
    client.begin(segment, 0)
    client.open_gauge()
    client.close_gauge()
    ((kind, fields),) = kept.events
    assert kind == NFS_EVENT
    assert (fields["target"], fields["round"]) == (0, 0)
    assert fields["requests"]["GETATTR"]["count"] == 7


def test_each_second_of_a_phase_has_its_own(
    client: EngineClient, kept: Kept, segment: ScheduledSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nfs_requests, "SECOND_S", 0.001)
    client.begin(segment, 0)
    client.open_gauge()
    while len(kept.events) < 3:
        gevent.sleep(0.001)
    client.close_gauge()
    assert [fields["requests"]["GETATTR"]["count"] for _, fields in kept.events[:3]] == [7, 7, 7]
    many = len(kept.events)
    gevent.sleep(0.01)
    assert len(kept.events) == many


def test_a_segment_that_ends_before_it_is_measured_has_none(
    client: EngineClient, kept: Kept, segment: ScheduledSegment
) -> None:
    client.begin(segment, 10**9)
    client.open_gauge()
    client.close_gauge()
    client.begin(segment, 10**9)
    client.close_gauge()
    assert len(kept.events) == 1
