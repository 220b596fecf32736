"""What fio printed, kept as intervals: nothing of its sums is lost between two of them."""

from pathlib import Path

from replayer.fio.recorder import FioRecorder
from replayer.fio.snapshot import JobState, Share, Snapshot
from replayer.measure.hlog import Segment
from replayer.measure.timeline import read_timeline


def state(runtime_ms: int, moved: int, times: dict[int, int]) -> Snapshot:
    share = Share(sum(times.values()), moved, times, runtime_ms)
    job = JobState("job", {"write": share}, error=0, errors=0, steady=None)
    return Snapshot((job,))


def test_bytes_that_fio_counts_before_their_time_come_with_it(tmp_path: Path) -> None:
    recorder = FioRecorder(tmp_path)
    recorder.begin_segment(Segment(0, 0, "measured"), 1, ())
    recorder.take(state(1000, 4096, {1000: 1}))
    recorder.take(state(2000, 8192, {1000: 1}))
    recorder.finish(state(3000, 8192, {1000: 1, 2_000_000: 1}))
    rows = [row for row in read_timeline(tmp_path / "timeline.csv") if row is not None]
    assert [(row.count, row.bytes) for row in rows if row.key.op == "write"] == [(1, 4096)] * 2
