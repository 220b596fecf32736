"""How alike a transaction of a plan is to the requests of a trace: the mix of their calls.

What is compared does not depend on how long either ran: shares of calls, of look-ups that fail,
and of bytes that are written. Amounts stand beside them, for people. Nothing here reads a trace;
it is given the census of one.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from replayer.ops import PATH_OPS, PLAN_OPS, READING, SAME_AS, TRACE_OPS, WRITING
from replayer.plan.summary import TransactionExpectation

LIMIT_POINTS = 2.0
"""Chosen: no kind of call may be off by more than one call in fifty."""

EXACT = 1e-6  # chosen: sums of expected counts differ by less

NOT_IN_PLANS = TRACE_OPS - {name for name, same in SAME_AS.items() if same in PLAN_OPS}
"""Ops of traces that plans have no word for: left out of the shares, and named."""


@dataclass(frozen=True)
class Row:
    """One share, in per cent, of the plan and of the trace."""

    what: str
    plan: float
    trace: float

    @property
    def difference(self) -> float:
        """Percentage points that the plan has more."""
        return self.plan - self.trace


@dataclass(frozen=True)
class Likeness:
    """What a transaction and the requests of a trace have in common."""

    transaction: str
    requests: int
    """Requests of the trace; 1 where it is one piece."""
    rows: tuple[Row, ...]
    amounts: tuple[Row, ...]
    """Calls and bytes of one transaction, as a run makes them, and of one request; not judged."""
    left_out: Mapping[str, float]
    """Calls of a request that plans have no word for."""
    ends: Mapping[str, float]
    """Calls of a transaction that only find the end of a file, beyond those of a request: a run
    makes them, and they are in no share."""

    @property
    def largest(self) -> Row:
        """The row that differs most."""
        return max(self.rows, key=lambda row: abs(row.difference))

    @property
    def alike(self) -> bool:
        """Whether no share differs by more than the limit."""
        return abs(self.largest.difference) <= LIMIT_POINTS

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "limit_points": LIMIT_POINTS, "alike": self.alike}


@dataclass(frozen=True)
class _Calls:
    """Calls by kind of one transaction or request, failing look-ups and bytes among them."""

    ops: Mapping[str, float]
    failing: float
    read: float
    written: float
    ends: Mapping[str, float] = field(default_factory=dict)
    """Calls among these that only find the end of a file, and that the trace lacks."""

    @property
    def total(self) -> float:
        return sum(self.ops.values())

    def share(self, count: float) -> float:
        return 100 * count / self.total if self.total else 0.0

    @property
    def share_written(self) -> float:
        moved = self.read + self.written
        return 100 * self.written / moved if moved else 0.0


def calls_of(said: TransactionExpectation, census: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the calls that a transaction and a trace have, under either's name."""
    names = {*said.ops, *census["ops"]}
    return frozenset({*names, *(SAME_AS.get(name, name) for name in names)})


def compare_calls(
    said: TransactionExpectation, census: Mapping[str, Any], without: Collection[str] = ()
) -> Likeness:
    """Compare what a transaction is expected to do with what a trace's requests did.

    ``census`` has the ``requests`` of a trace and, of each op, ``count``, ``errors``, ``bytes``.
    Calls ``without`` are left out on both sides, such as those on an archive elsewhere.
    """
    without = {SAME_AS.get(name, name) for name in without}
    requests = int(census["requests"]) or 1
    trace = _of_trace(census, requests, without)
    plan = _of_plan(said, trace, without)
    names = sorted({*plan.ops, *trace.ops}, key=lambda op: (-trace.ops.get(op, 0.0), op))
    rows = [
        Row(op, plan.share(plan.ops.get(op, 0)), trace.share(trace.ops.get(op, 0))) for op in names
    ]
    rows.append(Row("failing look-ups", plan.share(plan.failing), trace.share(trace.failing)))
    rows.append(Row("bytes written of all moved", plan.share_written, trace.share_written))
    return Likeness(
        transaction=said.name,
        requests=requests,
        rows=tuple(rows),
        amounts=(
            Row("calls", plan.total, trace.total),
            Row("bytes read", plan.read, trace.read),
            Row("bytes written", plan.written, trace.written),
        ),
        left_out={
            name: found["count"] / requests
            for name, found in sorted(census["ops"].items())
            if name in NOT_IN_PLANS
        },
        ends=plan.ends,
    )


def _of_plan(said: TransactionExpectation, trace: _Calls, without: Collection[str]) -> _Calls:
    """Return the plan's calls, all that a run makes.

    Steps copy and send until a call returns 0; not every application does. Such calls that only
    find the end, and that the trace has no counterpart of, are named.
    """
    ops: defaultdict[str, float] = defaultdict(float)
    for name, count in said.ops.items():
        op = SAME_AS.get(name, name)
        if op not in without:
            ops[op] += count
    ends = {
        op: least
        for op, count in said.ends.items()
        if (least := min(count, ops.get(op, 0.0) - trace.ops.get(op, 0.0))) > EXACT
    }
    read = said.bytes_read if READING & ops.keys() else 0.0
    written = said.bytes_written if WRITING & ops.keys() else 0.0
    return _Calls(ops, said.failing_lookups, read, written, ends)


def _of_trace(census: Mapping[str, Any], requests: int, without: Collection[str]) -> _Calls:
    ops: defaultdict[str, float] = defaultdict(float)
    moved: defaultdict[str, float] = defaultdict(float)
    failing = 0.0
    for name, found in census["ops"].items():
        op = SAME_AS.get(name, name)
        if name in NOT_IN_PLANS or op in without:
            continue
        ops[op] += found["count"] / requests
        moved[op] += found["bytes"] / requests
        if op in PATH_OPS:
            failing += sum(found["errors"].values()) / requests
    return _Calls(ops, failing, sum(moved[op] for op in READING), sum(moved[op] for op in WRITING))
