"""The run control: starts the runs that the page asks for, one at a time.

A run from here is a run from the command line: same checks, same folder, same report. It is laid
out in a greenlet, run by Locust's runner, and closed when that has stopped.
"""

import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal

import gevent
from gevent import Greenlet
from locust.env import Environment
from locust.runners import STATE_STOPPED, LocalRunner, MasterRunner
from locust.web import WebUI

from replayer.cluster.cluster_run import ClusterRun, gather_pool
from replayer.errors import ReplayerError, in_lines, keep_bug
from replayer.locust.local_run import LocalRun, make_request, open_local_run
from replayer.locust.users import has_scenario_users
from replayer.measure.health import RunWarning
from replayer.run.interruption import SIGNALS, Level
from replayer.run.ledger import MeasuredInterval
from replayer.run.metrics import Meter
from replayer.run.options import options_of
from replayer.run.prepared_run import RunRequest, chosen_targets
from replayer.run.progress import Hang, Observer, ProgressDisplay, Report, Tick, make_progress
from replayer.run.targets import NamedTarget
from replayer.supervisor import interrupt, is_echo
from replayer.web.form import RunForm, RunOrder
from replayer.web.op_totals import OpTotals
from replayer.web.series import RunSeries

__all__ = ["ActiveRun", "BusyError", "LiveStatus", "RunControl", "WorkInProgress"]


MOST_HANGS = 20  # chosen: more lines than a person reads


@dataclass
class WorkInProgress:
    """Work before or between segments, such as laying out."""

    title: str
    done: int = 0
    total: int = 0
    bytes: int = 0


@dataclass
class LiveStatus:
    """The state of a run, as told last.

    Attributes:
        terminal: Who is told as well.
        tick: The running segment's state; None before the first.
        work: What is being done to a target now.
        said: Lines that stay.
        worst: How many calls hung at once since it was asked last.
    """

    terminal: ProgressDisplay
    tick_now: Tick | None = None
    work_now: WorkInProgress | None = None
    said: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_HANGS))
    _worst: int = 0

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


class BusyError(ReplayerError):
    """One run at a time: two would measure each other."""


@dataclass
class ActiveRun:
    """A run and what the page shows of it; it stays until the next one.

    Attributes:
        request: What was asked for.
        board: How far it is.
        tally: Its file operations.
        series: Its seconds.
        run: The run; None while it is laid out and once it is over.
        folder: Its run folder, once there is one.
        outcome: How it ended; None until then.
        failure: Why it could not go on.
        why: Why its verdict is what it is, in a sentence.
        ended_with: What was wrong with the harness, once it is over.
    """

    request: RunRequest
    status: LiveStatus
    op_totals: OpTotals = field(default_factory=OpTotals)
    series: RunSeries = field(default_factory=RunSeries)
    run: LocalRun | ClusterRun | None = None
    folder: Path | None = None
    outcome: str | None = None
    failure: str | None = None
    why: str = ""
    ended_with: tuple[RunWarning, ...] = ()

    def watch(self, interval: MeasuredInterval) -> None:
        """Take what was measured."""
        self.op_totals.add(interval)
        self.series.add(interval, self.status.take_worst(), self.op_totals.active)


class RunControl:
    """Starts and stops runs.

    Attributes:
        form: What may be ordered.
        active: The run that goes on, or the last one.
        meter: Figures of all runs, for those who fetch them.
        run_time_s: What the form begins with, as the command line has it.
        outlook: What stands against a first run.
    """

    def __init__(self, environment: Environment, web_ui: WebUI, form: RunForm) -> None:
        self._environment = environment
        self._web_ui = web_ui
        self.form = form
        self.active: ActiveRun | None = None
        self.meter = Meter()
        self.run_time_s: int | None = options_of(environment).run_time
        self.target_warnings: tuple[RunWarning, ...] = ()
        self._pool = gather_pool(environment, form.settings)
        self._closing: Greenlet[[ActiveRun], None] | None = None
        stated = environment.host or any(kind.host for kind in environment.user_classes)
        self._tells_host = not stated
        for number in SIGNALS:
            signal.signal(number, self._end_page)
        gevent.spawn_later(LOCUSTS_S, self._take_sigterm)

    @property
    def run(self) -> LocalRun | ClusterRun | None:
        """The run that goes on; None while none does."""
        return self.active.run if self.active else None

    @property
    def has_scenario_users(self) -> bool:
        """Whether there are users for scenarios and traces, and not only those of a locustfile."""
        return has_scenario_users(self._environment)

    @property
    def state(self) -> WorkerState:
        """The state as Locust's page knows it."""
        if self.active is None:
            return "ready"
        if self.active.outcome is not None:
            return "stopped"
        return "spawning" if self.active.run is None else "running"

    def start(self, order: RunOrder) -> None:
        """Check an order and have it laid out and run; returns when it is checked.

        Raises:
            ReplayerError: A run goes on, or the order cannot be run.
        """
        if self.active is not None and self.active.outcome is None:
            message = "a run goes on: one at a time, as two would measure each other"
            raise BusyError(message, hint="stop it first")
        options = options_of(self._environment)
        options.num_users, options.spawn_rate = order.users, order.spawn_rate
        options.run_time = order.run_time_s
        status = LiveStatus(make_progress(quiet=order.settings.quiet))
        observer = self.meter.follow(Observer(status, self._watch))
        targets = chosen_targets(order.settings)
        if self._pool is not None:  # where they are is each worker's own matter
            targets = tuple(NamedTarget(target.name, ()) for target in targets)
        request = make_request(self._environment, order.settings, observer, targets)
        if self._tells_host:  # Locust's report and the names of its downloads have it
            self._environment.host = ", ".join(target.name for target in targets)
        self.active, self._closing = ActiveRun(request, status), None
        self._forget_figures()
        gevent.spawn(self._open, self.active, observer, order.run_time_s)

    def stop(self) -> None:
        """Ask the run that goes on to end; it ends in bounded time, with what it has."""
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

    def _forget_figures(self) -> None:
        """Have Locust forget the last run: by itself it would show it until all is laid out."""
        runner = self._environment.runner
        if runner is not None:
            runner.stats.clear_all()
            runner.exceptions = {}

    def _watch(self, interval: MeasuredInterval) -> None:
        if self.active is not None:
            self.active.watch(interval)

    def _open(self, active: ActiveRun, observer: Observer, run_time_s: int | None) -> None:
        try:
            run = self._make_stage(active.request, observer, run_time_s)
        except ReplayerError as error:
            self._fail(active, str(error), in_lines(error))
        except Exception as error:  # noqa: BLE001 - the page must say so
            text = keep_bug(error)
            self._fail(active, text, text)
        else:
            active.run, active.folder = run, run.folder.path
            self._start_users()

    def _make_stage(
        self, request: RunRequest, observer: Observer, run_time_s: int | None
    ) -> LocalRun | ClusterRun:
        if self._pool is None:
            return open_local_run(request, self._environment, observer)
        return self._pool.open(request, observer, run_time_s)

    def _fail(self, active: ActiveRun, shown: str, said: str) -> None:
        sys.stderr.write(f"{said}\n")
        level = active.request.interruption.level
        active.outcome = "stopped before it began" if level > Level.NONE else "failed"
        active.failure = shown
        active.request.interruption.unwatch()
        self._after(active)

    def _start_users(self) -> None:
        """Have Locust start its test."""
        runner, options = self._environment.runner, options_of(self._environment)
        if not isinstance(runner, LocalRunner | MasterRunner):
            return
        if runner.user_count == 0:
            runner.update_state(STATE_STOPPED)  # whatever a key pressed in the terminal has left
        if self._environment.shape_class is not None:
            runner.start_shape()
        else:
            runner.start(options.num_users, options.spawn_rate)

    def _after(self, active: ActiveRun) -> None:
        """Take signals as an end of the page again; one that came already counts."""
        for number in SIGNALS:
            signal.signal(number, self._end_page)
        if active.request.interruption.presses:
            gevent.spawn(self._web_ui.stop)

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
        gevent.spawn(self._web_ui.stop)
