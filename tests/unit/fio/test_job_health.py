"""What fio's jobs waited for a CPU, from files of the kernel that the test writes itself."""

from pathlib import Path

import pytest

from replayer._native import Histogram
from replayer.fio.job_health import LEAST_NS, JobHealth
from replayer.fio.recorder import Gain
from replayer.measure.hlog import Key, Segment, Span

FIO, JOB = 100, 101


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fio whose first thread waited for 9 s, with a job of 2 ms, and a thread of 1 ms."""
    for process, task, waited_ns in (
        (FIO, FIO, 9 * 10**9),
        (FIO, FIO + 5, 10**6),
        (JOB, JOB, 2 * 10**6),
    ):
        folder = tmp_path / str(process) / str(task)
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"500000000 {waited_ns} 3\n")
    room = "replayer.fio.job_health"
    monkeypatch.setattr(f"{room}.children_of", lambda pid: (JOB,) if pid == FIO else ())
    monkeypatch.setattr(f"{room}.tasks_of", lambda pid: sorted((tmp_path / str(pid)).iterdir()))
    return tmp_path


def gain(job: str, in_call_ns: int) -> Gain:
    whole = Histogram()
    whole.record(in_call_ns // 10, 10)
    key = Key(Segment(0, 0, "measured"), job, "transaction", "ok", expected=True)
    return Gain(key, Span(0, 1), 0, whole)


def waited_ns(in_call_ns: int) -> int | None:
    """Return what a fio is said to have waited that was in I/Os for so long."""
    health_meter = JobHealth()
    health_meter.open()
    health_meter.look(FIO)
    health_meter.add([gain("x", in_call_ns)], {"x": 1})
    health_meter.close()
    return health_meter.health(0).run_queue_delay_ns


@pytest.mark.usefixtures("tasks")
def test_the_start_of_fio_is_no_waiting_of_its_jobs() -> None:
    assert waited_ns(2 * LEAST_NS) == 3 * 10**6


@pytest.mark.usefixtures("tasks")
def test_the_cpu_time_of_laying_out_is_no_cost_of_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    room = "replayer.fio.job_health"
    now_s, reaped_s = iter((0.0, 100.0, 110.0)), iter((0.0, 0.0, 6.0))
    monkeypatch.setattr("time.monotonic", lambda: next(now_s))
    monkeypatch.setattr(f"{room}._cpu_s", lambda: next(reaped_s))
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0})
    health_meter = JobHealth()
    health_meter.open()
    health_meter.begin(FIO)  # after 100 s, with 1 s on a CPU
    health_meter.close()
    assert health_meter.health(0).client_cpu_share == pytest.approx((6 - 1) / 10)


@pytest.mark.usefixtures("tasks")
def test_jobs_that_were_in_calls_for_too_short_a_time_are_not_judged() -> None:
    assert waited_ns(LEAST_NS // 2) is None


@pytest.mark.parametrize(
    ("in_ios_s", "processes", "in_calls_s"),
    [
        (0.5, 1, 0.5),  # one after the other, with pauses
        (32.0, 1, 1.0),  # 32 under way all the time
        (4.0, 4, 4.0),
        (3.0, 4, 3.0),  # a queue that is hardly used
    ],
)
def test_time_in_ios_is_no_longer_than_the_processes_ran(
    in_ios_s: float, processes: int, in_calls_s: float
) -> None:
    health_meter = JobHealth()
    health_meter.open()
    health_meter.add([gain("x", round(in_ios_s * 10**9))], {"x": processes})
    health_meter.close()
    assert health_meter.health(0).in_call_ns == pytest.approx(in_calls_s * 10**9, rel=0.01)
