"""A p99 that no calls can have made is told to be the client's, and no other one is."""

import json
from pathlib import Path
from typing import Any

import pytest

from replayer.analysis.composition import analyse
from replayer.analysis.finding import Between
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.report.findings import sentences
from tests.unit.analysis.found import noisy
from tests.unit.runs import RunWriter, make_run

READ = {"do": "call", "op": "read"}


def found_in(writer: RunWriter, steps: list[dict[str, Any]]) -> tuple[Between, ...]:
    folder = writer.write(make_run())
    (folder / "plan.json").write_text(
        json.dumps({"transactions": [{"name": "page", "steps": steps}]})
    )
    record = load_run(folder)
    return analyse(record, summarise(record)).between


def writer_of(tmp_path: Path, service: list[int], reads: list[int]) -> RunWriter:
    writer = RunWriter(tmp_path)
    writer.transaction("page", service)
    writer.record("0/0/measured/page/read/ok/expected", reads)
    return writer


def test_time_that_no_call_took_is_the_clients(tmp_path: Path) -> None:
    service = noisy(1, 4e4, 1_960) + noisy(2, 5e6, 40)
    writer = writer_of(tmp_path, service, noisy(3, 1.5e4, 4_000))
    (found,) = found_in(writer, [READ, READ])
    assert (found.target, found.transaction) == ("local", "page")
    assert found.p99_ns > 4e6
    assert found.calls_ns == pytest.approx(2 * 2.2e4, rel=0.2)


def test_it_is_said_in_a_sentence(tmp_path: Path) -> None:
    service = noisy(1, 4e4, 1_960) + noisy(2, 5e6, 40)
    folder = writer_of(tmp_path, service, noisy(3, 1.5e4, 4_000)).write(make_run())
    (folder / "plan.json").write_text(
        json.dumps({"transactions": [{"name": "page", "steps": [READ]}]})
    )
    record = load_run(folder)
    told = list(sentences(analyse(record, summarise(record))))
    (sentence,) = (each for each in told if each.label == "client")
    assert sentence.weight == "alarm"
    assert "the p99 is its own" in sentence.text


def test_slow_calls_make_slow_transactions(tmp_path: Path) -> None:
    slow = noisy(2, 5e6, 40)
    writer = writer_of(tmp_path, noisy(1, 4e4, 1_960) + slow, noisy(3, 1.5e4, 3_960) + slow)
    assert found_in(writer, [READ, READ]) == ()


@pytest.mark.parametrize("step", ["think", "replay", "choose"])
def test_steps_that_pass_time_or_make_many_calls_at_times_are_no_waits(
    tmp_path: Path, step: str
) -> None:
    service = noisy(1, 4e4, 1_960) + noisy(2, 5e6, 40)
    writer = writer_of(tmp_path, service, noisy(3, 1.5e4, 4_000))
    assert found_in(writer, [{"do": "repeat", "steps": [READ, {"do": step}]}]) == ()


def test_users_of_a_locustfile_compute_between_their_calls(tmp_path: Path) -> None:
    service = noisy(1, 4e4, 1_960) + noisy(2, 5e6, 40)
    folder = writer_of(tmp_path, service, noisy(3, 1.5e4, 4_000)).write(make_run())
    record = load_run(folder)
    assert analyse(record, summarise(record)).between == ()
