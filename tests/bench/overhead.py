"""What the engine itself costs: an op on a null target, and users beside a busy Python hub."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import gevent

from replayer import _native as engine
from replayer._native import Histogram, Row
from tests.bench import contenders, plans

NULL_OPS = 2_000_000
NULL_LIMIT_NS = 100.0
HUB_LIMIT = 0.05
TURN_S = 1.0


@dataclass(frozen=True)
class Null:
    """Own cost of an op.

    Attributes:
        op_ns: Median of what the engine measures of itself, all recording on.
        create_ns: Wall time an op of a plan of three ops a transaction, run as a whole.
        stat_ns: The same with one op a transaction.
    """

    op_ns: float
    create_ns: float
    stat_ns: float

    def passes(self) -> bool:
        return self.op_ns <= NULL_LIMIT_NS

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def null_target(arena: Path, turns: int) -> Null:
    """Measure the engine where no system call is made."""
    sandbox = engine.Sandbox.create(str(arena), "null", "{}")
    machine = engine.Engine(plans.files_plan(plans.STAT, 1, 1000), [[sandbox]], null=True)
    own = [machine.overhead_ns(NULL_OPS) for _ in range(turns)]
    machine.close()
    create_ns = _null_run(sandbox, arena, plans.CREATE, turns)
    stat_ns = _null_run(sandbox, arena, plans.STAT, turns)
    sandbox.remove(1).result()
    return Null(median(own), create_ns, stat_ns)


def _null_run(sandbox: engine.Sandbox, arena: Path, work: plans.Work, turns: int) -> float:
    files, passes = 100_000, 10
    plan = plans.files_plan(plans.Work(work.name, passes, work.steps), 1, files)
    ops = files * passes * len(work.steps)
    record = arena / "null-record"
    record.mkdir(exist_ok=True)
    times = [
        contenders.run_all(contenders.Stage(plan, sandbox, record, null=True), 1)
        for _ in range(turns)
    ]
    return median(times) / ops


@dataclass(frozen=True)
class Hub:
    """Users beside a quiet hub, beside another program that spins, and beside a spinning greenlet.

    A spinning program slows what runs beside it on the same core's other half and shares its
    caches, whoever it is: the greenlet is compared with that.

    Attributes:
        quiet: Ops a second.
        other: Ops a second while another process spins.
        busy: Ops a second while a greenlet spins.
        loss: Median over the turns of 1 - busy / other.
        quiet_ns: (p50, p99) of service time.
        other_ns: The same while another process spins.
        busy_ns: The same while a greenlet spins.
    """

    quiet: float
    other: float
    busy: float
    loss: float
    quiet_ns: tuple[int, int]
    other_ns: tuple[int, int]
    busy_ns: tuple[int, int]

    def passes(self) -> bool:
        return self.loss < HUB_LIMIT

    def document(self) -> dict[str, object]:
        return {**asdict(self), "passes": self.passes()}


def spinning_hub(arena: Path, turns: int) -> Hub:
    """Let users work in each of the three companies, in turns."""
    users = max(1, (os.cpu_count() or 2) - 1)
    sandbox = engine.Sandbox.create(str(arena), "hub", "{}")
    plan = plans.thinking_plan(users, (0, 0))
    sandbox.lay_out(plan, 1).result()
    machine = engine.Engine(plan, [[sandbox]])
    machine.watch_transactions(watched=True)
    for user in range(users):
        machine.start_user(user)
    rates = [_beside(machine, turn, COMPANY[turn % 3]) for turn in range(3 * turns)]
    services = [_service(machine, company) for company in range(3)]
    machine.close()
    sandbox.remove(1).result()
    losses = [1 - b / o for o, b in zip(rates[1::3], rates[2::3], strict=True)]
    quiet, other, busy = (median(rates[company::3]) for company in range(3))
    quiet_ns, other_ns, busy_ns = services
    return Hub(quiet, other, busy, median(losses), quiet_ns, other_ns, busy_ns)


def _sleep() -> None:
    gevent.sleep(TURN_S)


def _spin() -> None:
    until = time.monotonic() + TURN_S
    while time.monotonic() < until:
        pass


def _sleep_beside_another() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        gevent.sleep(TURN_S)
        other.kill()


COMPANY = (_sleep, _sleep_beside_another, _spin)


def _beside(machine: engine.Engine, turn: int, company: Callable[[], None]) -> float:
    begin = machine.now_ns()
    machine.begin_segment(0, turn, 0)
    gevent.spawn(company).join()
    machine.end_segment(1_000_000_000)
    elapsed_ns = machine.now_ns() - begin
    count = sum(row.histogram.count for row in machine.totals() if _is_op(row, turn))
    return count / elapsed_ns * 1e9


def _is_op(row: Row, turn: int) -> bool:
    return row.op == "stat" and row.round == turn


def _service(machine: engine.Engine, company: int) -> tuple[int, int]:
    merged = Histogram()
    for row in machine.totals():
        if row.op == "stat" and row.round % 3 == company:
            merged.add(row.histogram)
    return merged.percentile(50), merged.percentile(99)
