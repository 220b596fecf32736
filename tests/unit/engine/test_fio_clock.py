"""When fio's jobs ran, from documents that say no more than how long each has been working."""

from collections.abc import Sequence

import pytest

from replayer.fio.clock import Clock, verifies_after
from replayer.fio.jobfile import Section, parse_job_file
from replayer.fio.snapshot import JobState, Share

RAMP = "ramp_time=1\nruntime=3\n"


def sections(text: str) -> tuple[Section, ...]:
    return parse_job_file(text, "own.fio", {}).sections


def job(name: str, runtime_ms: int, count: int = 1) -> JobState:
    share = Share(count, 4096, {1000: count} if count else {}, runtime_ms)
    return JobState(name, {"read": share}, error=0, errors=0, steady=None)


def placed(text: str, documents: Sequence[tuple[float, Sequence[JobState]]]) -> dict[str, float]:
    clock = Clock(sections(text))
    for now_s, jobs in documents[:-1]:
        clock.started(jobs, now_s)
    now_s, jobs = documents[-1]
    return {name: round(at, 6) for name, at in clock.ended(jobs, now_s).items()}


def test_a_job_with_a_ramp_time_lies_where_it_ran_and_not_at_the_end_of_all() -> None:
    text = f"[a]\n{RAMP}[b]\nstonewall\nruntime=3\n"
    documents = [
        (1.5, [job("a", 1000, 0), job("b", 0, 0)]),
        (2.5, [job("a", 990), job("b", 0, 0)]),
        (3.5, [job("a", 1990), job("b", 0, 0)]),
        (4.5, [job("a", 2990), job("b", 0, 0)]),
        (5.5, [job("a", 3000), job("b", 900)]),
        (7.6, [job("a", 3000), job("b", 3000)]),
    ]
    assert placed(text, documents) == {"a": 1.51, "b": 4.6}


def test_the_mean_of_processes_of_which_one_is_still_in_its_ramp_time_places_no_job() -> None:
    text = f"[a]\nnumjobs=2\n{RAMP}"
    documents = [(1.0, [job("a", 990, 0)]), (1.6, [job("a", 800)]), (2.6, [job("a", 1000)])]
    later = [(3.6, [job("a", 2000)]), (4.7, [job("a", 3000)])]
    assert placed(text, [*documents, *later]) == {"a": 1.6}


def test_a_job_that_ended_before_it_was_told_of_twice_lies_where_it_was_told_of_first() -> None:
    documents = [(1.6, [job("a", 300)]), (2.6, [job("a", 500)]), (3.6, [job("a", 500)])]
    assert placed(f"[a]\n{RAMP}", [*documents, (4.6, [job("a", 500)])]) == {"a": 1.3}


def test_what_a_ramp_time_did_before_it_was_stopped_is_not_measured() -> None:
    assert placed(f"[a]\n{RAMP}", [(0.8, [job("a", 700, 0)])]) == {}
    # All this time no I/O has ended.
    assert placed(f"[a]\n{RAMP}", [(5.0, [job("a", 4000, 0)])]) == {"a": 1.0}


@pytest.mark.parametrize("how", ["stonewall\n", "wait_for=a\n"])
def test_jobs_that_all_ended_in_one_second_lie_one_behind_the_other(how: str) -> None:
    text = f"[a]\nsize=1m\n[b]\n{how}size=1m\n"
    assert placed(text, [(0.9, [job("a", 300), job("b", 200)])]) == {"a": 0.4, "b": 0.7}


def test_jobs_that_run_at_once_end_at_once() -> None:
    text = "[a]\nsize=1m\n[b]\nsize=1m\n"
    assert placed(text, [(0.9, [job("a", 300), job("b", 200)])]) == {"a": 0.6, "b": 0.7}


def test_a_job_ended_before_the_ramp_time_of_the_one_behind_it_began() -> None:
    text = f"[a]\nsize=1m\n[b]\nstonewall\n{RAMP}"
    documents = [(1.0, [job("a", 300), job("b", 400, 0)]), (4.7, [job("a", 300), job("b", 3000)])]
    assert placed(text, documents) == {"a": 0.3, "b": 1.7}


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ("rw=write\nverify=crc32c\n", True),
        ("rw=randwrite:8\nverify=crc32c\n", True),
        ("rw=write\n", False),
        ("rw=write\nverify=0\n", False),
        ("rw=randrw\nverify=crc32c\n", False),
        ("rw=read\nverify=crc32c\n", False),
        ("rw=write\nverify=crc32c\nverify_backlog=16\n", False),
    ],
)
def test_what_is_read_back_when_all_was_written_has_a_time_of_its_own(
    options: str, *, after: bool
) -> None:
    (section,) = sections(f"[a]\n{options}")
    assert verifies_after(section) is after
    shares = {"read": Share(1, 1, {1: 1}, 7), "write": Share(1, 1, {1: 1}, 2000)}
    stages = Clock((section,)).stages(JobState("a", shares, error=0, errors=0, steady=None))
    assert [stage.ran_ms for stage in stages] == (
        [2000, 7] if after else [2007] if "backlog" in options else [2000]
    )
