"""The client of a master: workers do what the controller asks for, and each step is a barrier.

A step is over when every worker that is not lost has said so. Whether a run goes on without a lost
one is what its user chose.
"""

from dataclasses import replace
from typing import Any

from replayer.cluster import wire
from replayer.cluster.outcome import Outcome, gather_outcome
from replayer.cluster.recorder import MergedRecorder
from replayer.cluster.worker import Worker
from replayer.cluster.worker_pool import LostWorkerError
from replayer.errors import ReplayerError
from replayer.measure.units import NS_PER_S
from replayer.run.controller import LoadClient
from replayer.run.ledger import Ledger
from replayer.run.prepared_run import RunRequest
from replayer.run.progress import Hang
from replayer.run.roles import OnLostWorker
from replayer.run.schedule import ScheduledSegment

PATIENCE_S = 30.0  # chosen: beyond a segment's grace and the engine's own patience of 2 s


class WorkersClient(LoadClient):
    """The engines of all workers, as one; a policy says what becomes of it when one is lost."""

    def __init__(self, recorder: MergedRecorder, request: RunRequest, policy: OnLostWorker) -> None:
        self.targets = tuple(target.name for target in request.targets)
        self.ledger = Ledger()
        self.outcome: Outcome | None = None
        pool = recorder.pool
        self._pool = pool
        self._spawner = request.spawner
        self._recorder = recorder
        self._goes_on = policy == "continue"

    def prepare(self, segment: ScheduledSegment) -> None:
        """One worker lays out what the segment needs; then each prepares its own caches."""
        self.check_losses()  # of the segment before: its end has waited for all, and raised nothing
        self.lay_out(segment.target)
        self._all("caches", target=segment.target)

    def lay_out(self, target: int) -> None:
        """Have the first worker that is left lay out a target; the others wait."""
        self._one("lay_out", target=target)

    def write_out(self, target: int) -> None:
        """Have each worker write out what was written on a target."""
        self._all("write_out", target=target)

    def begin(self, segment: ScheduledSegment, warm_up_ns: int) -> None:
        """Let the users run."""
        self._pool.serial += 1
        self._all(
            "begin",
            target=segment.target,
            round=segment.round,
            warm_up_ns=warm_up_ns,
            measured_ns=segment.duration_ns,
            serial=self._pool.serial,
        )

    def end_warm_up(self) -> None:
        """Measure from now on."""
        self._all("measure")

    def open_gauge(self) -> None:
        """A measured phase begins."""
        self._all("open_gauge")

    def close_gauge(self) -> None:
        """It has ended."""
        self._pool.order_all(self._pool.living, "close_gauge")

    def stop_users(self) -> None:
        """Have each worker stop users that its engine cannot stop: those with Python tasks."""
        if not self._spawner.has_python_users:
            return
        self._pool.order_all(self._pool.living, "stop_users", None, PATIENCE_S)

    def end(self, grace_ns: int) -> None:
        """End the segment on every worker that is left."""
        patience_s = grace_ns / NS_PER_S + PATIENCE_S
        found = self._pool.ask(self._pool.living, "end", {"grace_ns": grace_ns}, patience_s)
        # Known at once, not with the next sign of life: no other segment may begin then.
        for worker, stuck in found.items():
            worker.state = replace(worker.state, given_up=stuck)

    def check(self) -> None:
        """Raise what a worker could not do, or that one is lost."""
        self._spawner.check()
        self._pool.look()
        for worker in self._pool.living:
            if worker.state.refusal is not None:
                raise wire.unpack_error(worker.state.refusal, str(worker))
        self.check_losses()

    def check_losses(self) -> None:
        """Refuse to go on without a worker, unless that is wanted; never without any.

        Raises:
            LostWorkerError: Names the first one.
        """
        lost = [worker for worker in self._pool.workers if worker.lost is not None]
        if lost and not (self._goes_on and self._pool.living):
            raise self._refusal(lost[0])

    def find_loss(self) -> LostWorkerError | None:
        """Return why a run that is over has failed: not all have handed over what they measured.

        Steps that end a segment go on without a worker that is lost, so that results are kept, and
        nobody may look after the last one. A worker that dies when it has handed over everything
        is not missed; some may be missing where that is wanted, never all.
        """
        missing = [worker for worker in self._pool.workers if not worker.handed_over]
        if not missing or (self._goes_on and len(missing) < len(self._pool.workers)):
            return None
        return self._refusal(missing[0])

    def _refusal(self, worker: Worker) -> LostWorkerError:
        message = f"{worker} is lost: it {worker.lost or 'did not deliver its results'}"
        begun = self._pool.serial > 0
        hint = "what was measured so far is kept" if begun else "nothing was measured"
        if not self._goes_on:
            hint += "; use --on-lost-worker continue to run without it"
        return LostWorkerError(message, hint=hint)

    def has_all_users(self) -> bool:
        """Whether all users are started; those of a load shape come and go."""
        return self._spawner.is_shaped or self._spawner.has_all

    def lacks_threads(self) -> bool:
        """Whether users that are started on workers that are left still wait for their threads."""
        living = {worker.id for worker in self._pool.living}
        counts = self._pool.port.count_users(living)
        return not self._spawner.is_shaped and self.running_users() < self._spawner.native_users(
            counts
        )

    def running_users(self) -> int:
        """Return how many users have a thread."""
        return sum(worker.state.running for worker in self._pool.living)

    def busy_users(self) -> int:
        """Return how many users have more to do; all of a worker that has not begun yet."""
        return sum(
            worker.state.busy if worker.state.serial == self._pool.serial else 1
            for worker in self._pool.living
        )

    def stuck_users(self) -> int:
        """Return how many users hang in the kernel for good."""
        return sum(worker.state.given_up for worker in self._pool.living)

    def hanging(self) -> tuple[Hang, ...]:
        """Return the calls that do not come back."""
        return tuple(
            Hang(f"worker {worker.number}, {call}", age_s)
            for worker in self._pool.living
            for call, age_s in worker.state.hanging
        )

    def settle(self) -> None:
        """Have every worker end, and take all that it measured."""
        if self.outcome is None:
            self.outcome = Outcome()  # of an end that fails
            self.outcome = gather_outcome(self._pool, self._recorder)

    def _one(self, do: str, **told: object) -> Any:  # noqa: ANN401 - any message
        """Have one worker do something; the next one if that one is lost meanwhile."""
        for worker in self._pool.workers:
            if worker.lost is None:
                found = self._pool.order_all([worker], do, told)
                if found:
                    return found[0]
                self.check_losses()
        self.check_losses()
        raise ReplayerError("no worker is left")

    def _all(self, do: str, **told: object) -> list[Any]:
        found = self._pool.order_all(self._pool.living, do, told)
        self.check_losses()
        return found
