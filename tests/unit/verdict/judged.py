"""Runs of one page, and what is judged of them."""

from collections.abc import Sequence
from pathlib import Path

from replayer.measure.record import load_run
from replayer.measure.run import StatedThreshold
from replayer.measure.summarise import summarise
from replayer.verdict.judgement import Verdict, judge
from tests.unit.runs import RunWriter, make_run


def judged(writer: RunWriter, *thresholds: str, **changes: object) -> Verdict:
    stated = tuple(StatedThreshold(text=text, source="--threshold") for text in thresholds)
    record = load_run(writer.write(make_run(thresholds=stated, **changes)))
    return judge(record, summarise(record))


def pages(folder: Path, samples: Sequence[int]) -> RunWriter:
    writer = RunWriter(folder)
    writer.transaction("page", samples)
    writer.record("0/0/measured/page/open/ok/expected", samples)
    return writer


def broken(folder: Path, outcome: str, transaction: str = "page") -> RunWriter:
    """Twenty pages that succeeded and three whose write ended so."""
    writer = pages(folder, [1000] * 20)
    writer.record(f"0/0/measured/{transaction}/transaction/failed/unexpected", [1000] * 3)
    writer.record(f"0/0/measured/{transaction}/write/{outcome}/unexpected", [1000] * 3)
    return writer
