"""The documents that every report is printed from, and that ``--json`` prints as they are.

A run (version ``replayer-run-1``) and a comparison of targets, of one run or of several (version
``replayer-comparison-1``). Frozen values only: ``compose`` and ``compare`` make them from records.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from replayer.analysis.finding import Acknowledged, Analysis
from replayer.measure.clients import Client, UserKind
from replayer.measure.duet import Duet
from replayer.measure.facts import Frozen, MachineFacts
from replayer.measure.health import Health, LoadFacts, RunWarning
from replayer.measure.neighbour import Neighbour
from replayer.measure.record import LostLines
from replayer.measure.replay import ReplayFacts
from replayer.measure.run import CacheFacts, CloudMetric, Outcome, PlanFacts, Target
from replayer.measure.summary import Summary
from replayer.measure.verification import Verification
from replayer.verdict.judgement import Verdict

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
    """One target's or contender's place for one figure."""

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
    """No throughput where users think between transactions: it is mostly their own."""
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
    """Which contender to use, by how much, how sure; in sentences."""
    differences: tuple[Difference, ...]
    compared: tuple[ComparedFigure, ...]
    unranked: tuple[Unranked, ...] = ()
    method: tuple[str, ...]
    """What was resampled, and what a claim means."""
    cautions: tuple[str, ...]
    """Why the figures may mislead."""


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


class PooledFigures(Frozen):
    """All transactions of a target together; null: too few samples, or nothing was measured.

    Each transaction has the share that it has in the mean over the targets, so that none looks slow
    for having made, by chance, more of what takes long.
    """

    target: str
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    throughput_per_s: float | None


class RequestKind(Frozen):
    """Requests of one kind to an NFS server; times are means."""

    kind: str
    count: int
    per_transaction: float
    round_trip_ns: float
    queue_ns: float
    """Waited on the client to be sent."""
    sent_again: int


class ServerRequests(Frozen):
    """What the mounts of an NFS target asked its server in measured phases, whoever used them."""

    target: str
    transactions: int
    count: int
    per_transaction: float
    kinds: tuple[RequestKind, ...]
    """The most frequent first."""
    advice: str | None


class Document(Frozen):
    """A run: what it proves, what was measured on what, and the figures."""

    model_config = ConfigDict(serialize_by_alias=True)

    schema_name: Literal["replayer-run-1"] = Field(default=SCHEMA, alias="schema")
    verdict: Verdict
    answer: tuple[str, ...]
    """What the run says to who has to decide: which target, by how much, how sure."""
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
    think_time: bool = False
    """Whether users wait between transactions: then their rate is mostly their own."""
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
    neighbour: Neighbour | None = None
    """Null when no other load ran beside the measured one."""
    verification: Verification | None
    """Null when reads were not verified."""
    credits: tuple[CloudMetric, ...] = ()
    """What a cloud's export says of its time; empty: none was given."""
    duet: Duet | None = None
    """Null when the targets were not measured at the same time."""
    ended_by: str | None = None
    """Why it ended, where that was by what it had measured until then."""
    warnings: tuple[RunWarning, ...]
    lost: LostLines
    summary: Summary
    pooled: tuple[PooledFigures, ...] = ()
    """All transactions together, for each target; empty: there is one kind, or they ran in turn."""
    finds_ends: tuple[str, ...] = ()
    """Ops, as TRANSACTION/OP, whose last call on each file only finds its end."""
    ranking: tuple[ComparedFigure, ...]
    """Empty with one target."""
    unranked: tuple[Unranked, ...] = ()
    """For which figures targets have too few samples to be ranked."""
    analysis: Analysis
    """What the figures hide: steps, stalls, drift, groups, outliers, and what is to blame."""
    server: tuple[ServerRequests, ...] = ()
    """Of each NFS target; empty where there is none, or several processes measured."""
    incidents: tuple[Incident, ...]
    """The first errors and stalls, and the slowest calls, of each target; events.jsonl has more."""
