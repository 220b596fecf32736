"""The run control: starts the runs that the page asks for, one at a time.

A run from here is a run from the command line: same checks, same folder, same report. It is laid
out in a greenlet, run by Locust's runner, and closed when that has stopped.
"""

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Literal, Protocol

import gevent
from flask import Response, jsonify, request
from gevent import Greenlet

from replayer._native import Interval
from replayer.errors import ReplayerError, in_lines, keep_bug
from replayer.measure.health import RunWarning
from replayer.run.controller import ControlledRun
from replayer.run.exit_watchdog import tidies_for
from replayer.run.interruption import SIGNALS, Interruption, Level
from replayer.run.local_run import make_request
from replayer.run.metrics import Meter
from replayer.run.options import Settings
from replayer.run.prepared_run import RunRequest, check_in_time, chosen_targets
from replayer.run.progress import Hang, Observer, ProgressDisplay, Report, Tick, make_progress
from replayer.run.spawner import Spawner
from replayer.run.targets import NamedTarget
from replayer.run.threads import call_in_thread
from replayer.supervisor import interrupt, is_echo
from replayer.web.choices import read_facts
from replayer.web.form import ForeignError, RunForm
from replayer.web.op_totals import OpTotals, is_shown
from replayer.web.race import Race
from replayer.web.searches import Searches, folder_of
from replayer.web.series import RunSeries

MOST_HANGS = 20  # chosen: more lines than a person reads


@dataclass
class WorkInProgress:
    """Work before or between segments, such as laying out."""

    title: str
    done: int = 0
    total: int = 0
    bytes: int = 0


@dataclass
class LiveStatus(ProgressDisplay):
    """The state of a run, as told last."""

    terminal: ProgressDisplay
    tick_now: Tick | None = None
    """The running segment's state; None before the first."""
    work_now: WorkInProgress | None = None
    said: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_HANGS))
    _worst: int = 0
    """How many calls hung at once since it was asked last."""

    @contextmanager
    def work(self, title: str) -> Iterator[Report]:
        """Keep how far a piece of work is, while it lasts."""
        self.work_now = WorkInProgress(title)
        try:
            with self.terminal.work(title) as report:

                def both(done: int, total: int, size_bytes: int) -> None:
                    self.work_now = WorkInProgress(title, done, total, size_bytes)
                    report(done, total, size_bytes)

                yield both
        finally:
            self.work_now = None

    def tick(self, tick: Tick) -> None:
        """Keep the state of a running segment."""
        self.tick_now = tick
        self._worst = max(self._worst, len(tick.hanging))
        self.terminal.tick(tick)

    def say(self, text: str) -> None:
        """Keep a line."""
        self.said.append(text)
        self.terminal.say(text)

    def alarm(self, hang: Hang) -> None:
        """Keep a line of a call that does not come back."""
        self.said.append(str(hang))
        self.terminal.alarm(hang)

    def close(self) -> None:
        """The run is over."""
        self.tick_now = None
        self.terminal.close()

    @property
    def hanging(self) -> tuple[Hang, ...]:
        """Calls that do not come back now, longest first."""
        return () if self.tick_now is None else self.tick_now.hanging[:MOST_HANGS]

    def take_worst(self) -> int:
        """Return how many calls hung at once since this was asked last."""
        worst, self._worst = self._worst, len(self.hanging)
        return worst


WorkerState = Literal["ready", "spawning", "running", "stopped"]
LOCUSTS_S = 1.0  # chosen: Locust takes SIGTERM right after it has begun to serve the page
ANSWER_S = 0.25  # chosen: a press of START is answered before it seems to have been lost


@dataclass(frozen=True)
class Order:
    """A run that was ordered, while its plan is compiled."""

    settings: Settings
    targets: Sequence[NamedTarget]
    interruption: Interruption
    status: LiveStatus

    @property
    def name(self) -> str:
        """What is run."""
        replay = self.settings.replay
        return self.settings.scenario or (replay.trace if replay is not None else "a locustfile")


@dataclass
class ActiveRun:
    """A run and what the page shows of it; it stays until the next one."""

    request: RunRequest
    status: LiveStatus
    op_totals: OpTotals = field(default_factory=OpTotals)
    series: RunSeries = field(default_factory=RunSeries)
    race: Race = field(default_factory=Race)
    run: ControlledRun | None = None
    """The run; None while it is laid out and once it is over."""
    folder: Path | None = None
    outcome: str | None = None
    failure: str | None = None
    why: str = ""
    """Why its verdict is what it is, in a sentence."""
    ended_with: tuple[RunWarning, ...] = ()
    """What was wrong with the harness, once it is over."""

    def watch(self, interval: Interval) -> None:
        """Take what was measured."""
        self.op_totals.add(interval)
        active, tick = self.op_totals.active, self.status.tick_now
        is_silent = not any(map(is_shown, interval.rows))
        if is_silent and tick is not None and not self.request.workload.duet:
            active = frozenset({tick.target})  # whose calls all hang has no rows
        self.series.add(interval, self.status.take_worst(), active)


class PageHost(Protocol):
    """What the page asks of Locust, which serves it and starts the users of its runs."""

    has_scenario_users: bool
    """Whether there are users for scenarios and traces."""
    has_targets: bool
    """Whether users work in this process: workers keep the paths of theirs."""

    def new_spawner(self) -> Spawner:
        """Return what starts the users of one run."""

    def show(self, request: RunRequest) -> None:
        """Show the targets of a run, and no figures of the one before."""

    def open_run(self, request: RunRequest, observer: Observer) -> ControlledRun:
        """Lay out a run.

        Raises:
            ReplayerError: Something refuses.
        """

    def begin_test(self, request: RunRequest) -> None:
        """Start the users of a run that is laid out."""

    def stop_page(self) -> None:
        """End the page, and with it the process."""


class RunControl:
    """Starts and stops runs."""

    def __init__(self, host: PageHost, form: RunForm) -> None:
        self._host = host
        self.form = form
        self.active: ActiveRun | None = None
        """The run that goes on, or the last one."""
        self.searches = Searches(folder_of(form))
        self.meter = Meter()
        self.target_warnings: tuple[RunWarning, ...] = ()
        """What stands against a first run."""
        self.order: Order | None = None
        """The run that is compiled now."""
        self.refused: ReplayerError | None = None
        """Why the last order came to nothing, once that was found after it had been answered."""
        self._closing: Greenlet[[ActiveRun], None] | None = None
        first = read_facts(form.choices[0])
        self._users = form.settings.users or first.users
        self._spawn_rate = form.settings.spawn_rate or first.spawn_rate
        for number in SIGNALS:
            signal.signal(number, self._end_page)
        gevent.spawn_later(LOCUSTS_S, self._take_sigterm)

    @property
    def load(self) -> tuple[int, float]:
        """Users, and how many arrive a second: the last run's, or what the form begins with."""
        if self.active is None:
            return self._users, self._spawn_rate
        request = self.active.request
        return request.workload.plan.users, request.spawn_rate

    @property
    def run(self) -> ControlledRun | None:
        """The run that goes on; None while none does."""
        return self.active.run if self.active else None

    @property
    def has_scenario_users(self) -> bool:
        """Whether there are users for scenarios and traces, and not only those of a locustfile."""
        return self._host.has_scenario_users

    @property
    def has_targets(self) -> bool:
        """Whether users work in this process: workers keep the paths of theirs."""
        return self._host.has_targets

    @property
    def state(self) -> WorkerState:
        """The state as Locust's page knows it."""
        if self.order is not None:
            return "spawning"
        if self.active is None:
            return "ready"
        if self.active.outcome is not None:
            return "stopped"
        return "spawning" if self.active.run is None else "running"

    def start(self, settings: Settings) -> None:
        """Have a run compiled, laid out and run; returns soon, whatever is large in it.

        Raises:
            ReplayerError: A run goes on, or this one cannot be run. What is found later is kept
                in ``refused``.
        """
        if self.goes_on:
            message = "a run is active; only one run at a time is possible"
            raise ReplayerError(message, hint="stop it first")
        self.searches.refuse()
        spawner, targets = self._host.new_spawner(), chosen_targets(settings)
        interruption = Interruption()
        if not self._host.has_targets:  # where they are is each worker's own matter
            targets = tuple(NamedTarget(target.name, ()) for target in targets)
            interruption = Interruption(tidies_for(spawner.stop_timeout_s))
        status = LiveStatus(make_progress(quiet=settings.quiet))
        self.order, self.refused = Order(settings, targets, interruption, status), None
        gevent.spawn(self._compile, self.order, spawner).join(ANSWER_S)
        refused, self.refused = self.refused, None
        if refused is not None:
            raise refused

    def _compile(self, order: Order, spawner: Spawner) -> None:
        """Have an order compiled (a large one takes seconds), in a thread, and begin its run."""
        observer = self.meter.follow(Observer(order.status, self._watch))
        try:
            work = partial(make_request, spawner, order.settings, observer)
            request = call_in_thread(work, order.interruption, order.targets)
        except ReplayerError as error:
            self.refused = error
        except Exception as error:  # noqa: BLE001 - the page must say so
            self.refused = ReplayerError(keep_bug(error))
        else:
            order.interruption.watch()
            self.active, self._closing = ActiveRun(request, order.status), None
            self._host.show(request)
            gevent.spawn(self._open, self.active, observer)
        finally:
            self.order = None

    @property
    def goes_on(self) -> bool:
        """Whether a run was ordered and has not ended."""
        is_running = self.active is not None and self.active.outcome is None
        return self.order is not None or is_running

    def start_search(self, sent: Mapping[str, Sequence[str]]) -> None:
        """Start a search for capacities.

        Raises:
            ReplayerError: A run or a search goes on, or this one cannot be meant.
        """
        words = self.form.read_search(sent)
        self._start_command(words, f"the capacity for {words[1]}")

    def start_baseline(self, sent: Mapping[str, Sequence[str]]) -> None:
        """Start a raw baseline with fio, as a run of its own.

        Raises:
            ReplayerError: A run or a search goes on, or this one cannot be meant.
        """
        words = self.form.read_fio(sent)
        self._start_command(words, "the raw baseline", self.form.runs)

    def _start_command(self, words: Sequence[str], about: str, home: Path | None = None) -> None:
        if not self.can_search:
            message = f"{about} cannot be measured from this page"
            raise ReplayerError(message, hint=f"use replayer {words[0]} --target NAME=PATH")
        if self.goes_on:
            message = f"a run is active, and would disturb {about}"
            raise ReplayerError(message, hint="stop it first")
        self.refused = None
        self.searches.start(words, about, home)

    @property
    def can_search(self) -> bool:
        """Whether a scenario can be run on targets of this process, laid out anew."""
        is_here = self._host.has_targets and self._host.has_scenario_users
        return is_here and not self.form.settings.reuse

    def warn_of_targets(self, targets: Sequence[NamedTarget]) -> None:
        """Say on stderr and on the page which targets would refuse a run now."""
        for target in targets:
            try:
                check_in_time(target)
            except ReplayerError as error:
                message = f"no run can start on {target.name}: {error}"
                warning = RunWarning(kind="other", message=message, hint=error.hint)
                self.target_warnings = (*self.target_warnings, warning)
                hint = f"\nhint: {error.hint}" if error.hint else ""
                sys.stderr.write(f"replayer: warning: {message}{hint}\n")

    def stop(self) -> None:
        """Ask the run that goes on to end; it ends in bounded time, with what it has."""
        if self.order is not None:
            self.order.interruption.ask()
        if self.active is not None and self.active.outcome is None:
            self.active.request.interruption.ask()

    def finish(self) -> None:
        """Locust has stopped its users: have the run closed, once its controller has ended.

        Where tasks in Python take part the controller itself has them stopped, and asks this: its
        segment still has to end, so that it does not wait here. Others do.
        """
        active = self.active
        if active is None or active.run is None:
            return
        if self._closing is None:
            self._closing = gevent.spawn(self._close, active)
        if not active.run.controller.is_asking:
            self._closing.join()

    def leave(self) -> int:
        """End what goes on, when the process ends; returns its exit code."""
        self.searches.leave()
        if self.run is not None:
            self.stop()
            self.finish()
        active = self.active
        interrupted = active is not None and active.request.interruption.presses > 0
        return 4 if interrupted else 0

    def _close(self, active: ActiveRun) -> None:
        """Write, judge and show a run."""
        if active.run is None:
            return
        try:
            active.run.close()
            shown, failure = active.run.shown, active.run.controller.failure
            active.why = shown.why
            active.failure = None if failure is None else str(failure)
            active.ended_with = active.run.warnings()
            active.outcome = (shown.verdict if failure is None else None) or "failed"
        except Exception as error:  # noqa: BLE001 - Locust would log it and go on as if all were well
            active.failure = keep_bug(error)
            sys.stderr.write(f"{active.failure}\n")
            active.outcome = "failed"
        active.run = None
        self._after(active)

    def _watch(self, interval: Interval) -> None:
        if self.active is not None:
            self.active.watch(interval)

    def _open(self, active: ActiveRun, observer: Observer) -> None:
        try:
            run = self._host.open_run(active.request, observer)
        except ReplayerError as error:
            self._fail(active, str(error), in_lines(error))
        except Exception as error:  # noqa: BLE001 - the page must say so
            text = keep_bug(error)
            self._fail(active, text, text)
        else:
            active.run, active.folder = run, run.folder.path
            self._host.begin_test(active.request)

    def _fail(self, active: ActiveRun, shown: str, said: str) -> None:
        sys.stderr.write(f"{said}\n")
        level = active.request.interruption.level
        active.outcome = "stopped before it started" if level > Level.NONE else "failed"
        active.failure = shown
        active.request.interruption.unwatch()
        self._after(active)

    def _after(self, active: ActiveRun) -> None:
        """Take signals as an end of the page again; one that came already counts."""
        for number in SIGNALS:
            signal.signal(number, self._end_page)
        if active.request.interruption.presses:
            gevent.spawn(self._host.stop_page)

    def _take_sigterm(self) -> None:
        """Take SIGTERM back from Locust, unless a run has: its handler needs an idle hub."""
        if self.active is None:
            signal.signal(signal.SIGTERM, self._end_page)

    def _end_page(self, number: int, _frame: FrameType | None) -> None:
        """End the page, and with it the process; a second press ends it as Python does."""
        if is_echo(number):
            return
        for each in SIGNALS:  # a shell repeats its terminal's SIGHUP, in no hurry
            is_repeated = each == signal.SIGHUP
            signal.signal(each, signal.SIG_IGN if is_repeated else interrupt)
        gevent.spawn(self._host.stop_page)


def answer_order(
    control: RunControl, start: Callable[[Mapping[str, Sequence[str]]], None]
) -> Response:
    """Start what the request orders, and say so; a mistake is answered with a line."""
    sent = {name: request.form.getlist(name) for name in request.form}
    try:
        start(sent)
    except ForeignError as error:
        response = _answer(control, f"refused: {error}", success=False)
        response.status_code = HTTPStatus.FORBIDDEN
        return response
    except ReplayerError as error:
        return _answer(control, with_hint(error), success=False)
    return _answer(control, "Swarming started", success=True)


def with_hint(error: ReplayerError) -> str:
    """Return what the page says of a mistake: the sentence, and what to do."""
    return f"{error} ({error.hint})" if error.hint else str(error)


def _answer(control: RunControl, message: str, *, success: bool) -> Response:
    return jsonify({"success": success, "message": message, "host": control.form.host})
