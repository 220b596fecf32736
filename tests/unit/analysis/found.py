"""Findings of run folders made by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from replayer.analysis.composition import analyse
from replayer.analysis.finding import Analysis
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from tests.unit.runs import RunWriter, make_run


def found_in(
    writer: RunWriter, events: Sequence[Mapping[str, Any]] = (), **changes: object
) -> Analysis:
    record = load_run(writer.write(make_run(**changes), events))
    return analyse(record, summarise(record))


def noisy(seed: int, level: float, size: int) -> list[int]:
    random = np.random.default_rng(seed)
    return [int(value) for value in level * random.lognormal(sigma=0.1, size=size)]
