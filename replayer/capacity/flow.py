"""The search on all targets: trials in turn, until each capacity is known or the time is over.

What is known so far is written after each trial.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from itertools import pairwise

from replayer.capacity.bucket import CONFIRM_S
from replayer.capacity.document import document_of
from replayer.capacity.found import Found, Point
from replayer.capacity.goals import Counts, count_goal, count_served
from replayer.capacity.order import CapacityOrder, Load
from replayer.capacity.page import render_page
from replayer.capacity.search import LEAST, MOST, Search
from replayer.capacity.trial import EndedTrial, Trial, run_trial, served_in
from replayer.errors import OutsideError, ReplayerError, in_one_line
from replayer.measure.health import saturated
from replayer.measure.record import RunRecord
from replayer.measure.summarise import summarise
from replayer.measure.summary import WAITS, RoundSummary, TransactionSummary
from replayer.measure.units import format_about, format_share
from replayer.paths import replace_content
from replayer.run.interruption import InterruptedRunError, Interruption, Level
from replayer.run.neighbour import CheckedNeighbour
from replayer.run.neighbour_process import NeighbourError, NeighbourProcess, NeighbourTerms
from replayer.run.options import DEFAULT_STOP_TIMEOUT_S
from replayer.run.own_run import remove_kept, said_beside
from replayer.run.progress import ProgressDisplay
from replayer.run.schedule import ScheduledSegment

__all__ = ["find_capacities"]

MORE_USERS = 4  # chosen: from 64 to 4,096 in three trials
START_S = 3.0  # measured: starts a program, and finds files that are laid out
WRONG = ReplayerError.exit_code
"""The exit code of a trial that was asked for something that cannot be meant."""


def find_capacities(order: CapacityOrder) -> list[Found]:
    """Make trials on all targets in turn, until all are known or the budget is spent.

    Raises:
        ReplayerError: The first trial was refused, or results cannot be written.
    """
    found = [Found(target, Search(order.goals), order.users) for target in order.settings]
    for before, one in pairwise(found):
        one.alone = before if one.target.is_beside else None
    flow = _Flow(order, found, Interruption())
    flow.interruption.watch()
    try:
        order.output.mkdir(parents=True, exist_ok=True)
        flow.run()
    except OSError as error:
        message = f"{order.output}: cannot be written: {error.strerror or error}"
        raise OutsideError(message, hint="name another folder with -o") from error
    finally:
        flow.clean()
        flow.interruption.unwatch()
    return found


class _Flow:
    """A search that is under way."""

    def __init__(
        self, order: CapacityOrder, found: Sequence[Found], interruption: Interruption
    ) -> None:
        self.interruption = interruption
        self._order = order
        self._found = found
        self._begin_s = time.monotonic()
        self._trials = 0
        self._neighbour = None if order.neighbour is None else self._process_of(order.neighbour)

    def _process_of(self, neighbour: CheckedNeighbour) -> NeighbourProcess:
        return NeighbourProcess(
            neighbour,
            tuple(self._order.settings),
            NeighbourTerms(
                self._order.output / "neighbour",
                ProgressDisplay(),
                self.interruption,
                DEFAULT_STOP_TIMEOUT_S,
            ),
        )

    def run(self) -> None:
        """Make trials until no target needs, or has time for, another one.

        Raises:
            ReplayerError: The first trial was refused, or the neighbour does not run.
        """
        if self._neighbour is not None:
            with suppress(InterruptedRunError):  # what follows looks at that, too
                self._neighbour.lay_out()
            self._begin_s = time.monotonic()
        for one, trial in self._turns():
            self._try(one, trial)
            self._keep(goes_on=True)
        for one in self._found:
            if self.interruption.level > Level.NONE and not one.points and one.failure is None:
                one.failure = "interrupted before its first trial ended"
        self._keep(goes_on=False)

    def _keep(self, *, goes_on: bool) -> None:
        """Write what is known, for others who read it while the search goes on."""
        for one in self._found:
            one.goes_on = goes_on
        document = json.dumps(document_of(self._order, self._found), indent=2)
        page = render_page(self._order, self._found)
        for name, text in (("capacity.json", document), ("capacity.html", page)):
            replace_content(self._order.output / name, text.encode())

    def _turns(self) -> Iterator[tuple[Found, Trial]]:
        before = -1
        while before != self._trials and self.interruption.level is Level.NONE:
            before = self._trials
            for one in self._found:
                yield from self._turn(one)

    def _turn(self, one: Found) -> Iterator[tuple[Found, Trial]]:
        """Make its next trial. If its credits seem spent, try again at once: they come back."""
        for _ in range(2):
            trial = self._next_trial(one)
            if trial is None or self.interruption.level > Level.NONE:
                return
            self._trials = trial.number
            yield one, trial
            if one.suspected_load(self._order.load) is None:
                return

    def _next_trial(self, one: Found) -> Trial | None:
        """Return the next trial of a target; None if it needs none, or has no time for one."""
        if one.failure is not None or one.ran_out or one.is_known(self._order.precision):
            return None
        if one.bucket is not None:
            return None  # small loads fill it again, and large ones tell nothing of it
        load, number = one.next_load(self._order.load), self._trials + 1
        seconds = self._order.seconds(load, is_bracketed=one.search.is_bracketed)
        left_s = self._left_s() - START_S
        if not LEAST <= load <= MOST or seconds > left_s:
            return None
        confirms = one.suspected_load(self._order.load) is not None
        if confirms:
            seconds = max(seconds, min(CONFIRM_S, int(left_s)))
        folder = self._order.output / f"{number:03}-{one.target.name}"
        return Trial(number, one.target, load, seconds, one.users, folder, one.kept, confirms)

    def _left_s(self) -> float:
        return self._begin_s + self._order.budget_s - time.monotonic()

    def _try(self, one: Found, trial: Trial) -> None:
        """Make one trial, and learn from it."""
        at_s = time.monotonic() - self._begin_s
        turn = ScheduledSegment(self._place_of(one), trial.number - 1, None)
        try:
            with nullcontext() if self._neighbour is None else self._neighbour.beside(turn):
                is_clear = _never if trial.confirms else one.search.is_clear
                ended = run_trial(self._order, trial, is_clear, self.interruption)
                one.kept = ended.kept
            if trial.target.is_on_workers and trial.number == 1:
                self._begin_s += ended.waited_s  # workers are started by hand
        except InterruptedRunError:
            return
        except NeighbourError as error:
            one.failure, one.is_spoiled = str(error), True
            return
        if self.interruption.level > Level.NONE:
            if trial.target.is_on_workers:  # it removes what it made, or says where that is
                sys.stderr.write(said_beside(trial.folder).read_text(errors="replace"))
            return
        self._take(one, trial, ended, at_s)

    def _take(self, one: Found, trial: Trial, ended: EndedTrial, at_s: float) -> None:
        """Learn from a trial that nobody has interrupted."""
        if ended.record is not None:
            self._learn(one, trial.load, at_s, ended.record)
        elif trial.number == 1 and ended.code == WRONG:
            raise ReplayerError(ended.failure or "", hint=ended.hint)
        elif ended.code == WRONG and one.users > self._order.users:
            one.users = one.most_users = max(one.users // MORE_USERS, self._order.users)
            self._say(one, trial.load, f"not with so many users: {ended.failure}")
        else:
            one.failure = ended.failure

    def _place_of(self, one: Found) -> int:
        return next(place for place, each in enumerate(self._found) if each is one)

    def _learn(self, one: Found, load: float, at_s: float, record: RunRecord) -> None:
        goals, search, health = self._order.goals, one.search, record.run.health
        place = self._place_of(one)
        if health is not None and health.users_given_up:
            one.failure = f"calls hung at {self._order.load.written(load)}, see {record.folder}"
            return
        counts = [count_goal(goal, record) for goal in goals]
        holds = search.holds(counts)
        served = [count_served(goal, record) for goal in goals]
        is_short = self._order.load is Load.ARRIVALS and not holds and search.holds(served)
        is_saturated = health is not None and saturated(health)
        if is_short and not is_saturated and one.users < one.most_users:
            # The target served in time those that it was asked for: there were too few to ask.
            one.users = min(one.users * MORE_USERS, one.most_users)
            self._remove([one])  # it is laid out for as many users as there were
            self._say(one, load, f"all threads were busy; {one.users:,} from now on")
            return
        spoiled = None if self._neighbour is None else self._neighbour.why_not_as_asked(place)
        if holds and spoiled is not None:  # beside a load that breaks limits, it may well fail
            written = self._order.load.written(load)
            one.failure, one.is_spoiled = (
                f"the neighbour was not as asked at {written}: {spoiled}",
                True,
            )
            return
        is_of_client = not holds and (is_short or is_saturated)
        if not is_of_client:
            search.learn(load, counts)
            one.served.append(served_in(record, load, at_s))
            one.find_bucket(self._order.load)
        measured = summarise(record).targets[0].overall
        transaction = _transaction(measured, search.weakest().subject.name)
        one.points.append(
            Point(
                load=load,
                holds=holds,
                is_of_client=is_of_client,
                at_s=at_s,
                seconds=measured.measured_s,
                transaction=transaction,
                folder=record.folder,
                slowest=None if transaction is None else _slowest(transaction),
            )
        )
        told = "this client was at its end" if is_of_client else "holds" if holds else "breaks"
        self._say(one, load, f"{told} ({self._shares(counts)})")

    def _shares(self, counts: Sequence[Counts]) -> str:
        pairs = zip(self._order.goals, counts, strict=True)
        return ", ".join(
            f"{format_share(each.share)} of {format_share(goal.share)}" for goal, each in pairs
        )

    def _say(self, one: Found, load: float, what: str) -> None:
        if self._order.quiet:
            return
        unit, interval = self._order.load, one.interval
        known = "" if interval is None else f"; capacity {unit.between(interval)}"
        left = format_about(max(self._left_s(), 0))
        name = in_one_line(one.target.name)
        sys.stderr.write(f"{name}, {unit.written(load)}: {what}{known}; at most {left} left\n")

    def clean(self) -> None:
        """Remove what was kept for further trials; Ctrl-C twice leaves it."""
        self._remove(self._found)
        if self._neighbour is not None:
            self._neighbour.remove()
            for line in self._neighbour.left:
                sys.stderr.write(f"{line}\n")

    def _remove(self, found: Sequence[Found]) -> None:
        left = remove_kept(
            [one.kept for one in found], lambda: self.interruption.level is Level.AT_ONCE
        )
        for one in found:
            one.kept = None
        if left is not None:
            sys.stderr.write(f"{left}\n")


def _never(_counts: Sequence[Counts]) -> bool:
    """Do not end a trial before its time: it looks how long little is served."""
    return False


def _transaction(measured: RoundSummary, name: str) -> TransactionSummary | None:
    """Return the transaction of a name or, if a goal is about an op, the first one."""
    named = [each for each in measured.transactions if each.name == name]
    return next(iter(named or measured.transactions), None)


def _slowest(transaction: TransactionSummary) -> str | None:
    times = {
        op.op: op.count * (op.time.mean_ns or 0.0) for op in transaction.ops if op.op not in WAITS
    }
    return max(times, key=lambda op: times[op]) if times else None
