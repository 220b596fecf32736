"""Where acknowledged writes of fio's jobs are: the shipped jobs keep to what their table says."""

import json

import pytest

from replayer.fio.checking import check_job_file
from replayer.fio.jobfile import parse_job_file
from replayer.fio.jobs import document_of, load_jobs
from replayer.fio.promises import warnings_of

PLACES = {
    "cache": "buffered",
    "upload": "buffered",
    "write-1m-sync": "synchronous",
    "write-4k-sync": "synchronous",
    "write-4k-buffered": "buffered",
    "rand-write-4k": "direct",
    "latency-write-4k": "direct",
    "mixed-70-30-4k": "direct",
}


@pytest.mark.parametrize("name", PLACES)
def test_the_plan_says_how_a_shipped_job_writes(name: str) -> None:
    (job,) = json.loads(document_of(load_jobs([name]), "3.33"))["jobs"]
    assert job["writing"] == {name: PLACES[name]}


def test_the_plan_says_nothing_of_a_job_that_reads() -> None:
    (job,) = json.loads(document_of(load_jobs(["rand-read-4k"]), "3.33"))["jobs"]
    assert job["writing"] == {}


@pytest.mark.parametrize("pattern", ["read:4k", "randread:8"])
def test_a_job_that_reads_some_in_a_row_is_one_that_reads(pattern: str) -> None:
    file = check_job_file(parse_job_file(f"[a]\nrw={pattern}\nsize=1m\n", "x", {}), None)
    (job,) = json.loads(document_of((file,), "3.33"))["jobs"]
    assert job["writing"] == {}
    (warning,) = warnings_of((file,), ())
    assert "buffered reads may come from this client's page cache" in warning.message
