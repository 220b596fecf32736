"""What ``replayer baseline`` makes of what only some engines and options of fio say."""

import json
import shutil

import pytest

from replayer.measure.hlog import join_spans
from replayer.measure.record import load_run
from replayer.measure.timeline import read_timeline
from tests.behaviour.shell import Shell
from tests.behaviour.test_baseline import baseline, folder_of, ops

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


@pytest.mark.parametrize(
    ("engine", "op"), [("filecreate", "open"), ("filestat", "stat"), ("filedelete", "unlink")]
)
def test_jobs_of_one_call_a_file_are_told_by_that_call(shell: Shell, engine: str, op: str) -> None:
    text = f"[a]\nioengine={engine}\nnrfiles=50\nfilesize=4k\nopenfiles=1\n"
    limit = ("--threshold", f"a/{op}.p95 < 1s")
    done = baseline(shell, text, "--target", shell.target(), "--json", *limit)
    assert done.code in {0, 4}, done.err
    assert ops(done.document()) == {("a", op): (50, 0)}
    assert [each["outcome"] for each in done.document()["verdict"]["judgements"]] == ["pass"] * 2


def test_a_limit_of_the_jobs_own_is_no_server_that_does_not_answer(shell: Shell) -> None:
    text = "[a]\nrw=write\nsize=1m\nsync=1\nmax_latency=1us\n"
    done = baseline(shell, text, "--target", shell.target(), "--json")
    assert done.code == 1, done.err
    (transaction,) = done.document()["summary"]["targets"][0]["overall"]["transactions"]
    outcomes = [each["outcome"] for each in transaction["ops"][0]["outcomes"]]
    assert outcomes == ["LATE", "ok"]


RAMPED = """\
[global]
ioengine=psync
rw=randread
bs=4k
size=1m
rate_iops=500
time_based
[first]
numjobs=2
runtime=2
ramp_time=1
[second]
stonewall
runtime=1
[third]
stonewall
runtime=1
ramp_time=1
"""


def test_jobs_with_a_ramp_time_lie_where_they_ran(shell: Shell) -> None:
    done = baseline(shell, RAMPED, "--target", shell.target(), "--json")
    assert done.code in {0, 4}, done.err
    log = load_run(folder_of(shell)).log
    spans = {name: [*join_spans(found)] for (_, name), found in log.intervals.items()}
    assert spans["first"][-1].end_s <= spans["second"][0].start_s
    # The third one's own ramp_time lies in between.
    assert spans["second"][-1].end_s + 0.9 <= spans["third"][0].start_s
    (target,) = done.document()["summary"]["targets"]
    assert target["overall"]["measured_s"] == pytest.approx(4, abs=0.1)


VERIFIED = """\
[job]
ioengine=psync
rw=write
bs=4k
size=2m
rate_iops=500,500
verify=crc32c
"""


def test_what_is_read_back_after_writing_has_a_rate_of_its_own(shell: Shell) -> None:
    done = baseline(shell, VERIFIED, "--target", shell.target(), "--json")
    assert done.code in {0, 4}, done.err
    folder = folder_of(shell)
    (raw,) = (folder / "fio").glob("*.json")
    (stated,) = json.loads(raw.read_text())["jobs"]
    overall = done.document()["summary"]["targets"][0]["overall"]
    (job,) = overall["transactions"]
    for found in (job["ops"], overall["ops"]):
        rates = {op["op"]: op["rate_per_s"] for op in found}
        lasted = {way: max(stated[way]["runtime"], 1) / 1000 for way in ("read", "write")}
        assert rates == {way: pytest.approx(512 / lasted[way], rel=0.01) for way in lasted}
    assert job["rate_per_s"] == pytest.approx(1024 / sum(lasted.values()), rel=0.01)
    rows = [row for row in read_timeline(folder / "timeline.csv") if row is not None]
    assert all(row.end_s > row.start_s for row in rows)
