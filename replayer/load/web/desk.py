"""The desk: takes orders from the page and has one run after the other played, one at a time.

A run from here is a run from the command line: same checks, same folder, same report. It is laid
out in a greenlet, played by Locust's runner, and closed when that has stopped.
"""

import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal

import gevent
from gevent import Greenlet
from locust.env import Environment
from locust.runners import STATE_STOPPED, LocalRunner, MasterRunner
from locust.web import WebUI

from replayer.errors import ReplayerError, in_lines, keep_bug
from replayer.keeper import interrupt, is_echo
from replayer.load.audience import Audience
from replayer.load.fleet.company import gather_company
from replayer.load.fleet.leader import Leader
from replayer.load.interruption import SIGNALS, Level
from replayer.load.measured import MeasuredInterval
from replayer.load.metrics import Meter
from replayer.load.options import options_of
from replayer.load.progress import make_progress
from replayer.load.session import Request, chosen_targets
from replayer.load.stage import Stage, make_request, open_stage
from replayer.load.targets import Target
from replayer.load.users import has_scenario_users
from replayer.load.web.board import Board
from replayer.load.web.form import Form, Order
from replayer.load.web.series import Series
from replayer.load.web.tally import Tally
from replayer.measure.health import RunWarning

__all__ = ["BusyError", "Desk", "Playing"]

State = Literal["ready", "spawning", "running", "stopped"]
LOCUSTS_S = 1.0  # chosen: Locust takes SIGTERM right after it has begun to serve the page


class BusyError(ReplayerError):
    """One run at a time: two would measure each other."""


@dataclass
class Playing:
    """A run and what the page shows of it; it stays until the next one.

    Attributes:
        request: What was asked for.
        board: How far it is.
        tally: Its file operations.
        series: Its seconds.
        stage: Where it is played; None while it is laid out and once it is over.
        folder: Its run folder, once there is one.
        outcome: How it ended; None until then.
        failure: Why it could not go on.
        why: Why its verdict is what it is, in a sentence.
        ended_with: What was wrong with the harness, once it is over.
    """

    request: Request
    board: Board
    tally: Tally = field(default_factory=Tally)
    series: Series = field(default_factory=Series)
    stage: Stage | Leader | None = None
    folder: Path | None = None
    outcome: str | None = None
    failure: str | None = None
    why: str = ""
    ended_with: tuple[RunWarning, ...] = ()

    def watch(self, interval: MeasuredInterval) -> None:
        """Take what was measured."""
        self.tally.add(interval)
        self.series.add(interval, self.board.take_worst(), self.tally.active)


class Desk:
    """Starts and stops runs.

    Attributes:
        form: What may be ordered.
        playing: The run that goes on, or the last one.
        meter: Figures of all runs, for those who fetch them.
        run_time_s: What the form begins with, as the command line has it.
        outlook: What stands against a first run.
    """

    def __init__(self, environment: Environment, web_ui: WebUI, form: Form) -> None:
        self._environment = environment
        self._web_ui = web_ui
        self.form = form
        self.playing: Playing | None = None
        self.meter = Meter()
        self.run_time_s: int | None = options_of(environment).run_time
        self.outlook: tuple[RunWarning, ...] = ()
        self._company = gather_company(environment, form.settings)
        self._closing: Greenlet[[Playing], None] | None = None
        stated = environment.host or any(kind.host for kind in environment.user_classes)
        self._tells_host = not stated
        for number in SIGNALS:
            signal.signal(number, self._end_page)
        gevent.spawn_later(LOCUSTS_S, self._take_sigterm)

    @property
    def stage(self) -> Stage | Leader | None:
        """The stage of the run that goes on."""
        return self.playing.stage if self.playing else None

    @property
    def has_scenario_users(self) -> bool:
        """Whether there are users for scenarios and traces, and not only those of a locustfile."""
        return has_scenario_users(self._environment)

    @property
    def state(self) -> State:
        """The state as Locust's page knows it."""
        if self.playing is None:
            return "ready"
        if self.playing.outcome is not None:
            return "stopped"
        return "spawning" if self.playing.stage is None else "running"

    def start(self, order: Order) -> None:
        """Check an order and have it laid out and played; returns when it is checked.

        Raises:
            ReplayerError: A run goes on, or the order cannot be run.
        """
        if self.playing is not None and self.playing.outcome is None:
            message = "a run goes on: one at a time, as two would measure each other"
            raise BusyError(message, hint="stop it first")
        options = options_of(self._environment)
        options.num_users, options.spawn_rate = order.users, order.spawn_rate
        options.run_time = order.run_time_s
        board = Board(make_progress(quiet=order.settings.quiet))
        audience = self.meter.follow(Audience(board, self._watch))
        targets = chosen_targets(order.settings)
        if self._company is not None:  # where they are is each worker's own matter
            targets = tuple(Target(target.name, ()) for target in targets)
        request = make_request(self._environment, order.settings, audience, targets)
        if self._tells_host:  # Locust's report and the names of its downloads have it
            self._environment.host = ", ".join(target.name for target in targets)
        self.playing, self._closing = Playing(request, board), None
        self._forget_figures()
        gevent.spawn(self._open, self.playing, audience, order.run_time_s)

    def stop(self) -> None:
        """Ask the run that goes on to end; it ends in bounded time, with what it has."""
        if self.playing is not None and self.playing.outcome is None:
            self.playing.request.interruption.ask()

    def finish(self) -> None:
        """Locust has stopped its users: have the run closed, once its conductor has ended.

        Where tasks in Python take part the conductor itself has them stopped, and asks this: its
        segment still has to end, so that it does not wait here. Others do.
        """
        playing = self.playing
        if playing is None or playing.stage is None:
            return
        if self._closing is None:
            self._closing = gevent.spawn(self._close, playing)
        if not playing.stage.conductor.is_asking:
            self._closing.join()

    def leave(self) -> int:
        """End what goes on, when the process ends; returns its exit code."""
        if self.stage is not None:
            self.stop()
            self.finish()
        playing = self.playing
        interrupted = playing is not None and playing.request.interruption.presses > 0
        return 4 if interrupted else 0

    def _close(self, playing: Playing) -> None:
        """Write, judge and show a run."""
        if playing.stage is None:
            return
        try:
            playing.stage.close()
            shown, failure = playing.stage.shown, playing.stage.conductor.failure
            playing.why = shown.why
            playing.failure = None if failure is None else str(failure)
            playing.ended_with = playing.stage.warnings()
            playing.outcome = (shown.verdict if failure is None else None) or "failed"
        except Exception as error:  # noqa: BLE001 - Locust would log it and go on as if all were well
            playing.failure = keep_bug(error)
            sys.stderr.write(f"{playing.failure}\n")
            playing.outcome = "failed"
        playing.stage = None
        self._after(playing)

    def _forget_figures(self) -> None:
        """Have Locust forget the last run: by itself it would show it until all is laid out."""
        runner = self._environment.runner
        if runner is not None:
            runner.stats.clear_all()
            runner.exceptions = {}

    def _watch(self, interval: MeasuredInterval) -> None:
        if self.playing is not None:
            self.playing.watch(interval)

    def _open(self, playing: Playing, audience: Audience, run_time_s: int | None) -> None:
        try:
            stage = self._make_stage(playing.request, audience, run_time_s)
        except ReplayerError as error:
            self._fail(playing, str(error), in_lines(error))
        except Exception as error:  # noqa: BLE001 - the page must say so
            text = keep_bug(error)
            self._fail(playing, text, text)
        else:
            playing.stage, playing.folder = stage, stage.folder.path
            self._play()

    def _make_stage(
        self, request: Request, audience: Audience, run_time_s: int | None
    ) -> Stage | Leader:
        if self._company is None:
            return open_stage(request, self._environment, audience)
        return self._company.open(request, audience, run_time_s)

    def _fail(self, playing: Playing, shown: str, said: str) -> None:
        sys.stderr.write(f"{said}\n")
        level = playing.request.interruption.level
        playing.outcome = "stopped before it began" if level > Level.NONE else "failed"
        playing.failure = shown
        playing.request.interruption.unwatch()
        self._after(playing)

    def _play(self) -> None:
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

    def _after(self, playing: Playing) -> None:
        """Take signals as an end of the page again; one that came already counts."""
        for number in SIGNALS:
            signal.signal(number, self._end_page)
        if playing.request.interruption.presses:
            gevent.spawn(self._web_ui.stop)

    def _take_sigterm(self) -> None:
        """Take SIGTERM back from Locust, unless a run has: its handler needs an idle hub."""
        if self.playing is None:
            signal.signal(signal.SIGTERM, self._end_page)

    def _end_page(self, number: int, _frame: FrameType | None) -> None:
        """End the page, and with it the process; a second press ends it as Python does."""
        if is_echo(number):
            return
        for each in SIGNALS:  # a shell repeats its terminal's SIGHUP, in no hurry
            is_repeated = each == signal.SIGHUP
            signal.signal(each, signal.SIG_IGN if is_repeated else interrupt)
        gevent.spawn(self._web_ui.stop)
