"""Bounds what a transaction becomes once its sequences, names and scripts are put in their places.

A few lines may stand for more steps than any machine holds (ten sequences that use each other
twice, ten times over), and judging them one after the other would never end. They are counted
here first, each sequence once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from replayer.scenario.model import Scenario
from replayer.scenario.references import refuse
from replayer.scenario.steps import (
    Choose,
    Each,
    For,
    Pipeline,
    Repeat,
    Script,
    StepPart,
    Until,
    Use,
)
from replayer.scenario.walk import blocks_of

__all__ = ["check_expansion"]

MAX_STEPS = 1_000_000
"""Chosen: a hundred times the largest shipped scenario; compiling them takes a minute."""

MAX_BLOCKS = 16
"""How deep steps nest in plan format 1, the list of a transaction included."""


@dataclass(frozen=True)
class _Size:
    """Of steps: how many they become, and how many blocks lie in each other."""

    steps: int = 0
    blocks: int = 0

    @classmethod
    def of_all(cls, sizes: Sequence["_Size"]) -> "_Size":
        """Return the size of steps that stand one after the other."""
        return cls(sum(each.steps for each in sizes), max((e.blocks for e in sizes), default=0))


def check_expansion(scenario: Scenario) -> None:
    """Check how many steps the transactions have, and how deep they nest.

    Raises:
        ScenarioError: There are too many, or they nest too deep.
    """
    gauge = _Gauge(scenario.sequences)
    whole = 0
    for name, steps in scenario.transactions.items():
        key = ("transactions", name)
        size = gauge.measure(steps)
        whole += size.steps
        if size.blocks >= MAX_BLOCKS:
            message = f"nests {size.blocks} blocks in each other, more than {MAX_BLOCKS - 1}"
            raise refuse(scenario, key, message)
        if whole > MAX_STEPS:
            message = f"has {size.steps:,} steps once its sequences and names are put in"
            hint = f"all transactions together may have {MAX_STEPS:,}; repeat: and each: count once"
            raise refuse(scenario, key, message, hint)


class _Gauge:
    def __init__(self, sequences: Mapping[str, Sequence[StepPart]]) -> None:
        self.sequences = sequences
        self.of_sequence = cache(lambda name: self.measure(self.sequences[name]))

    def measure(self, steps: Sequence[StepPart]) -> _Size:
        return _Size.of_all([self.of_step(step) for step in steps])

    def of_step(self, step: StepPart) -> _Size:
        match step:
            case Use():
                return self.of_sequence(step.sequence)
            case Script():
                return self.of_script(step)
            case For():
                inner = self.measure(step.steps)
                return _Size(len(step.names) * (1 + inner.steps), inner.blocks)
            case Repeat() | Choose() | Each() | Pipeline() | Until():
                inside = _Size.of_all([self.measure(steps) for _, steps in blocks_of(step, ())])
                return _Size(1 + inside.steps, 1 + inside.blocks)
            case _:
                return _Size(1)

    def of_script(self, step: Script) -> _Size:
        lines = _Size.of_all([self.of_sequence(line.sequence) for line in step.lines])
        return _Size(len(step.lines) + lines.steps, lines.blocks)
