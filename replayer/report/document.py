"""The form that every report is printed from, and that ``--json`` prints as it is.

Frozen values only, version ``replayer-run-1``. ``compose`` makes it from a run folder; each form of
report is next door.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from replayer.analysis.finding import Analysis
from replayer.measure import (
    CacheFacts,
    Client,
    Frozen,
    Health,
    LoadFacts,
    MachineFacts,
    PlanFacts,
    ReplayFacts,
    RunWarning,
    Summary,
    Target,
    Verification,
)
from replayer.measure.kinds import UserKind
from replayer.report.comparison import Claim, Unranked
from replayer.verdict.judgement import Verdict

SCHEMA: Literal["replayer-run-1"] = "replayer-run-1"


class Incident(Frozen):
    """One call worth a line of its own: an error, a stall, or one of the slowest."""

    kind: Literal["error", "slow", "stall", "abandoned"]
    at_s: float
    """Seconds since the engine's begin."""
    target: str
    transaction: str | None
    op: str
    path: str
    outcome: str | None
    """Errors only."""
    time_ns: int | None
    """How long it took, or had taken when it was noticed; null for errors."""


class RankingRow(Frozen):
    """One target's place for one figure."""

    target: str
    value: float
    ratio: float | None
    """To the best value: 1 is the best, for times above 1 is slower, for rates below 1 is fewer;
    null: the best is 0, and this one is not."""
    low: float | None
    """The lowest value of its rounds; null with fewer than two rounds."""
    high: float | None
    claim: Claim
    """What is claimed of it and the best one, as in comparisons."""


class RankedFigure(Frozen):
    """One figure on all targets, best first."""

    subject: str
    """A transaction, or an op over all transactions."""
    kind: Literal["transaction", "op"]
    figure: Literal["p50", "p95", "p99", "throughput"]
    unit: Literal["ns", "per_s"]
    better: Literal["lower", "higher"]
    places: tuple[RankingRow, ...]


class LostLines(Frozen):
    """Lines that were cut short or damaged, by file."""

    histograms: int
    timeline: int
    events: int


class Document(Frozen):
    """A run: what it proves, what was measured on what, and the figures."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_name: Literal["replayer-run-1"] = Field(default=SCHEMA, alias="schema")
    verdict: Verdict
    id: str
    folder: str
    status: Literal["running", "finished", "interrupted", "failed", "killed"]
    """killed: its process is gone, and did not write an end."""
    failure: str | None
    began: str
    ended: str | None
    command: tuple[str, ...]
    plan: PlanFacts
    load: LoadFacts
    user_kinds: tuple[UserKind, ...]
    """Which users there were, where a locustfile brought some."""
    cache: CacheFacts
    targets: tuple[Target, ...]
    machine: MachineFacts
    clients: tuple[Client, ...]
    """Who measured, where it was several processes; empty: one."""
    health: Health | None
    replay: ReplayFacts | None
    """Null when no trace was replayed."""
    verification: Verification | None
    """Null when reads were not verified."""
    warnings: tuple[RunWarning, ...]
    lost: LostLines
    summary: Summary
    finds_ends: tuple[str, ...] = ()
    """Ops, as TRANSACTION/OP, whose last call on each file only finds its end."""
    ranking: tuple[RankedFigure, ...]
    """Empty with one target."""
    unranked: tuple[Unranked, ...] = ()
    """For which figures targets have too few samples to be ranked."""
    analysis: Analysis
    """What the figures hide: steps, stalls, drift, groups, outliers, and what is to blame."""
    incidents: tuple[Incident, ...]
    """The first errors and stalls, and the slowest calls, of each target; events.jsonl has more."""
