"""Runs to compare, of known truth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import PlanFacts
from tests.unit.runs import RunWriter, make_load, make_run, make_target

Levels = Sequence[float]


def write_run(folder: Path, levels: Levels, rounds: int = 3, **changes: Any) -> Path:  # noqa: ANN401
    """A run: one target a level (mean latency in ns), some seconds in turns, two transactions."""
    writer, begin = RunWriter(folder), 0
    for number in range(rounds):
        for target, level in enumerate(levels):
            for second in range(8):
                random = np.random.default_rng([number, target, second, *folder.name.encode()])
                span, place = (begin + second, begin + second + 1), f"{target}/{number}"
                for name, scale in (("page", 1), ("login", 4)):
                    times = scale * level * random.lognormal(sigma=0.3, size=60)
                    writer.transaction(name, [int(time) for time in times], place, span)
                    tag = f"{place}/measured/{name}/read/ok/expected"
                    writer.record(tag, [int(time / 2) for time in times], span)
            begin += 10
    targets = tuple(make_target(index, f"t{index}") for index in range(len(levels)))
    facts = {"targets": targets, "load": make_load(rounds=rounds), "id": folder.name, **changes}
    return writer.write(make_run(**facts))


def load(folder: Path) -> RunRecord:
    return load_run(folder)


def other_plan() -> PlanFacts:
    return PlanFacts(name="pages", fingerprint="f" * 64, seed=2, scenario="scenarios/pages.yaml")
