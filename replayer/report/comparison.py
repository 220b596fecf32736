"""The form of a comparison of targets, of one run or of several: ``--json`` prints it as it is.

Frozen values only, version ``replayer-comparison-1``. ``compare`` makes it from records.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from replayer.analysis.finding import Acknowledged
from replayer.measure import Frozen, Outcome, RunWarning, Target

COMPARISON_SCHEMA: Literal["replayer-comparison-1"] = "replayer-comparison-1"
Claim = Literal[
    "best",
    "differs",
    "differs, few rounds",
    "no difference shown",
    "too few samples",
    "too few seconds",
    "no ratio to 0",
]


class Contender(Frozen):
    """A target of a run."""

    label: str
    """The target's name, with its run's folder before it where two are alike."""
    run: str
    folder: str
    began: str
    verdict: Outcome
    target: Target
    measured_s: float
    rounds: int
    errors: int
    warnings: tuple[RunWarning, ...]
    acknowledged: tuple[Acknowledged, ...]


class Difference(Frozen):
    """Something in which the contenders differ beside what was measured."""

    what: str
    values: tuple[str, ...]
    """One for each contender, in their order."""
    decides: bool
    """Whether it may make a figure what it is: the work, a cache, a guarantee, a kernel."""


class ComparisonRow(Frozen):
    """One contender's place for one figure."""

    label: str
    value: float
    ratio: float | None
    """To the best value: for times above 1 is slower, for rates below 1 is fewer; null: that is 0,
    and this one is not."""
    ratio_low: float | None
    """A 95 % interval of the ratio, for all contenders of a figure together; null: too little was
    measured."""
    ratio_high: float | None
    low: float | None
    """The lowest value of its rounds; null with fewer than two."""
    high: float | None
    claim: Claim


class ComparedFigure(Frozen):
    """One figure of all contenders that have it, best first."""

    subject: str
    kind: Literal["transaction", "op", "all transactions"]
    """All transactions: those that all have, pooled, each with one share that is the same for all
    contenders; of throughputs the sum; none of fio's jobs, which took turns."""
    figure: Literal["p50", "p95", "p99", "throughput"]
    unit: Literal["ns", "per_s"]
    better: Literal["lower", "higher"]
    standings: tuple[ComparisonRow, ...]


class Lacking(Frozen):
    """A contender, and how many samples of a figure it has."""

    label: str
    samples: int


class Unranked(Frozen):
    """A figure for which contenders are not ranked, as too few samples of theirs succeeded."""

    subject: str
    kind: Literal["transaction", "op", "all transactions"]
    figure: Literal["p50", "p95", "p99", "throughput"]
    lacking: tuple[Lacking, ...]
    """Who has too few; the others are ranked if they are two or more."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Who has too few."""
        return tuple(each.label for each in self.lacking)


class Comparison(Frozen):
    """Several targets beside each other."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_name: Literal["replayer-comparison-1"] = Field(default=COMPARISON_SCHEMA, alias="schema")
    plan: str
    """Its name; with different plans, all names."""
    fingerprints: tuple[str, ...]
    contenders: tuple[Contender, ...]
    headline: tuple[str, ...]
    """What comes out, in sentences."""
    differences: tuple[Difference, ...]
    compared: tuple[ComparedFigure, ...]
    unranked: tuple[Unranked, ...] = ()
    method: tuple[str, ...]
    """What was resampled, and what a claim means."""
    cautions: tuple[str, ...]
    """Why the figures may mislead."""
