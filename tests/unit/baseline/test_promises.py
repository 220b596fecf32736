"""Where acknowledged writes of fio's jobs are: the shipped jobs keep to what their table says."""

import json

import pytest

from replayer.baseline.jobs import document_of, load_jobs

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
