"""What a plan would do, for people and for the check of free space."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from replayer.measure.mix import planned_shares
from replayer.measure.summary import WAITS
from replayer.plan.census import BLOCK_BYTES, Census
from replayer.plan.document import Plan, say_limits, say_warmed
from replayer.plan.expectation import expect_transaction
from replayer.plan.space import Tally
from replayer.plan.traces import TraceSummary, describe_trace


@dataclass(frozen=True)
class DatasetSummary:
    """What one dataset holds, for one copy of it."""

    name: str
    files: int
    directories: int
    links: int
    size_bytes: int
    laid_out: bool
    copies: int


@dataclass(frozen=True)
class TransactionExpectation:
    """What one transaction is expected to do."""

    name: str
    share: float
    """Of the transactions of all users, 0 to 1."""
    ops: Mapping[str, float]
    ops_total: float
    ends: Mapping[str, float]
    """Calls of copy_file_range and sendfile that only find the end of the file."""
    failing_lookups: float
    """Look-ups that are meant to fail."""
    bytes_read: float
    bytes_written: float
    files_created: float
    files_removed: float
    think_ns: float


@dataclass(frozen=True)
class PlanSummary:
    """What a plan would do."""

    name: str
    fingerprint: str
    seed: int
    users: int
    pace: str
    duration_ns: int | None
    transactions_per_user: int | None
    warm_up_ns: int
    transactions: tuple[TransactionExpectation, ...]
    datasets: tuple[DatasetSummary, ...]
    traces: tuple[TraceSummary, ...]
    working_set_files: int
    """Files of the datasets that transactions may use."""
    working_set_bytes: int
    laid_out_bytes: int
    """Written before the clock starts."""
    space_bytes: int
    """Free space needed: what is laid out, in blocks of 4 KiB, and what transactions write."""
    inodes: int
    growth_known: bool
    """Whether ``space_bytes`` and ``inodes`` hold what the transactions write.

    Only a number of transactions bounds it.
    """
    verify_limits: str | None
    """What verifying cannot claim; None: all, or nothing is verified."""
    warmed: str | None
    """What the warm-up takes of each user's transactions; None: nothing."""

    @property
    def ops(self) -> tuple[str, ...]:
        """Every op that some transaction makes, in alphabetical order."""
        return tuple(sorted({op for each in self.transactions for op in each.ops}))

    @property
    def warning(self) -> str | None:
        """Say which transactions of the mix make no file call; None: all make some."""
        used = [each for each in self.transactions if each.share]
        idle = [each.name for each in used if not each.ops.keys() - WAITS]
        if not idle:
            return None
        make, their = ("makes", "its") if len(idle) == 1 else ("make", "their")
        all_idle = len(idle) == len(used)
        then = (
            "such a run is inconclusive" if all_idle else f"the mount did not cause {their} times"
        )
        return f"{', '.join(idle)} {make} no file call: {then}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "warning": self.warning}


def describe_plan(plan: Plan) -> PlanSummary:
    """Return what a plan would do, from its document and the facts of its traces."""
    body = plan.body
    census = Census(body, plan.traces)
    tallies = [expect_transaction(census, row["steps"]) for row in body["transactions"]]
    shares = [*planned_shares(body).values()]
    used = (tally.touched for tally, share in zip(tallies, shares, strict=True) if share)
    touched = set[tuple[int, int]]().union(*used)
    growth = _growth(plan, tallies, shares)
    numbers = range(len(body["datasets"]))
    # Only those beyond the first have files of their own: with one user nothing has to be counted.
    others = plan.users - 1
    traces = tuple(
        describe_trace(facts, row["directory"], others, census.whole(number) if others else None)
        for number, (facts, row) in enumerate(zip(plan.traces, body.get("traces", ()), strict=True))
    )
    return PlanSummary(
        name=plan.name,
        fingerprint=plan.fingerprint,
        seed=plan.seed,
        users=plan.users,
        pace=body["pace"]["kind"],
        duration_ns=plan.duration_ns,
        transactions_per_user=plan.transactions_per_user,
        warm_up_ns=plan.warm_up_ns,
        transactions=tuple(map(_transaction, plan.transactions, shares, tallies)),
        datasets=tuple(_dataset(census, number) for number in numbers),
        traces=traces,
        working_set_files=_sum_touched(census, touched, "files") + sum(t.files for t in traces),
        working_set_bytes=_sum_touched(census, touched, "bytes")
        + sum(t.size_bytes for t in traces),
        laid_out_bytes=sum(_laid_out_bytes(census, number) for number in numbers)
        + sum(t.size_bytes for t in traces),
        space_bytes=sum(census.space_bytes(number) for number in numbers)
        + sum(t.space_bytes for t in traces)
        + growth[0],
        inodes=sum(census.inodes(number) for number in numbers)
        + sum(t.inodes for t in traces)
        + growth[1],
        growth_known=plan.transactions_per_user is not None,
        verify_limits=say_limits(plan),
        warmed=say_warmed(plan),
    )


def _transaction(name: str, share: float, tally: Tally) -> TransactionExpectation:
    ops = {op: count for op, count in sorted(tally.ops.items()) if count}
    return TransactionExpectation(
        name=name,
        share=share,
        ops=ops,
        ops_total=sum(ops.values()),
        ends=dict(tally.ends),
        failing_lookups=tally.failing_lookups,
        bytes_read=tally.bytes_read,
        bytes_written=tally.bytes_written,
        files_created=tally.created,
        files_removed=tally.removed,
        think_ns=tally.think_ns,
    )


def _growth(plan: Plan, tallies: list[Tally], shares: list[float]) -> tuple[int, int]:
    """Return the bytes and files that the transactions add, where their number is known.

    What a transaction removes that it has made itself, as a replay does, is needed once a user: it
    is gone before the next one begins. What others remove is not taken off, as it may be later.
    """
    held_files = plan.users * max(tally.held_files for tally in tallies)
    held = plan.users * max(tally.held_bytes + tally.held_files * BLOCK_BYTES for tally in tallies)
    if plan.transactions_per_user is None:
        return round(held), round(held_files)
    count = plan.users * plan.transactions_per_user
    pairs = list(zip(tallies, shares, strict=True))
    created = sum((tally.created - tally.passed_files) * share for tally, share in pairs)
    written = sum(
        (tally.bytes_written - tally.replayed_bytes - tally.passed_bytes) * share
        for tally, share in pairs
    )
    again = [
        (kept.made_again(count * share), kept.size_bytes / kept.files)
        for tally, share in pairs
        for kept in tally.kept
        if not any(other.hoards for other, used in pairs if used)
    ]
    made_again = sum(files for files, _ in again)
    size_bytes = count * (written + created * BLOCK_BYTES) + held
    size_bytes -= sum(files * (each + BLOCK_BYTES) for files, each in again)
    return round(size_bytes), round(count * created - made_again + held_files)


def _dataset(census: Census, number: int) -> DatasetSummary:
    row = census.body["datasets"][number]
    kinds = [entry[1] for entry in row["entries"]]
    return DatasetSummary(
        name=row["name"],
        files=kinds.count("f"),
        directories=kinds.count("d"),
        links=kinds.count("l"),
        size_bytes=sum(entry[2] for entry in row["entries"]),
        laid_out=row["laid_out"],
        copies=census.copies(number),
    )


def _laid_out_bytes(census: Census, number: int) -> int:
    row = census.body["datasets"][number]
    if not row["laid_out"]:
        return 0
    return census.copies(number) * int(sum(entry[2] for entry in row["entries"]))


def _sum_touched(census: Census, touched: set[tuple[int, int]], what: str) -> int:
    total: int = 0
    for dataset, index in touched:
        entry = census.entries(dataset)[index]
        if entry[1] == "f":
            total += census.copies(dataset) * (entry[2] if what == "bytes" else 1)
    return total
