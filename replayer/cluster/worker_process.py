"""A worker: says hello, does what its master orders, and tells how it is until the run is over.

It ends by itself when its user ends it, or when the master gives no sign of life. A process that
was stopped for a while does not take its own silence for the master's.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import gevent
from gevent.event import Event
from gevent.queue import Queue

from replayer.cluster import wire
from replayer.cluster.agreement import agreed_workload, refuse_differences
from replayer.cluster.forks import stay
from replayer.cluster.wire import WorkerState
from replayer.cluster.worker_run import WorkerRun, WorkerTerms
from replayer.errors import EXIT_ENVIRONMENT, ReplayerError, in_lines, keep_bug
from replayer.measure.facts import collect_machine
from replayer.run.exit_watchdog import last_words, tidies_for
from replayer.run.interruption import InterruptedRunError, Interruption
from replayer.run.options import Settings
from replayer.run.prepared_run import RunRequest, chosen_targets
from replayer.run.progress import ProgressDisplay, make_progress
from replayer.run.roles import ClusterSettings
from replayer.run.spawner import Spawner
from replayer.run.targets import NamedTarget
from replayer.supervisor import leave_now

BEAT_S = 0.25  # chosen: four signs of life a second, and a display that is live
HELLO_S = 1.0
ASLEEP_S = 2.0
"""Chosen: a beat that comes later than this was held up by a stopped process or machine."""
SAFE_S = 20.0  # chosen: time for the last results to be acknowledged
UNTOLD_S = 45.0
"""Chosen: the silence after which a master that has ordered nothing yet is lost. Compiling a large
scenario keeps one silent for 20 s, and Locust ends a worker after 60 s as if all were well."""
HURRIED_S = 5.0  # chosen: the same where a person waits for the end, and the master may be gone
LEFT = "left"
"""What a worker does that its user ends."""


class LostMasterError(ReplayerError):
    """The master is silent."""

    exit_code = EXIT_ENVIRONMENT


class DismissedError(ReplayerError):
    """There is no run for this worker: it ends as its master does."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(str(told["why"]))
        # A master of another version may not say that.
        self.exit_code = int(told.get("exit_code", ReplayerError.exit_code))


class WorkerPort(Protocol):
    """What a worker asks of Locust: messages from and to the master, and users."""

    name: str
    stop_timeout_s: float

    def register_message(self, kind: str, listener: Callable[..., None]) -> None:
        """Hear messages of a kind: ``msg.data`` is what the master says."""

    def send_message(self, kind: str, data: dict[str, Any]) -> None:
        """Send a message to the master."""

    def on_life(self, listener: Callable[..., None]) -> None:
        """Hear of each heartbeat of the master."""

    def get_ready(self) -> None:
        """Stop the users, and be ready for the next run."""

    def introduce(self) -> None:
        """Have a new master's Locust know this worker."""

    def new_spawner(self) -> Spawner:
        """Return what starts the users of one run."""

    def quit(self) -> None:
        """End the process."""


class WorkerProcess:
    """One worker process."""

    def __init__(self, port: WorkerPort, settings: Settings, terms: ClusterSettings) -> None:
        self._port = port
        self._settings = settings
        self._terms = terms
        self._interruption = Interruption(tidies_for(port.stop_timeout_s))
        self._orders: Queue[Mapping[str, Any]] = Queue()
        self._run: WorkerRun | None = None
        self._turn = 0
        self._heard_s = time.monotonic()
        self._timeout_s: float | None = None  # told with the first order
        self._over: str | None = None
        self._code = 0
        self._stays = False
        """Whether its last master has left it to the next one."""
        self._is_tidy = Event()
        self._is_tidy.set()
        self._silent = settings.quiet or terms.is_forked

    def begin(self) -> None:
        """Listen, and say hello until the master answers."""
        self._port.register_message(wire.ORDER, self._hear)
        self._port.register_message(wire.TAKEN, self._hear_taken)
        self._port.on_life(self._note_life)
        self._leave_keys_to_the_master()
        last_words(self._last_words)
        gevent.spawn(self._obey)
        gevent.spawn(self._beat)
        self._greeter = gevent.spawn(self._greet)

    def _last_words(self) -> Iterable[str]:
        return () if self._run is None else self._run.last_words()

    def _leave_keys_to_the_master(self) -> None:
        """Ignore what reaches every process of a terminal: the master ends the run."""
        if self._terms.is_forked:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def close(self) -> int:
        """Leave in order, and return the exit code."""
        if self._over is None:
            self._leave(InterruptedRunError("the master ended it"))
            self._code = 0  # it did what it was told
            if self._run is not None and not self._run.is_over:
                self._clean_up()
        self._is_tidy.wait()  # a master that does not wait for it takes its workers with it
        return self._code

    def end_process(self) -> None:
        """Leave at once when threads hang in the kernel; the interpreter would wait for them."""
        if self._run is not None and self._run.hung:
            leave_now(self._code)

    def _greet(self) -> None:
        self._interruption.watch()  # Locust has taken SIGTERM by now
        self._leave_keys_to_the_master()
        targets = [target.name for target in chosen_targets(self._settings)]
        hello = {
            "protocol": wire.PROTOCOL,
            "host": collect_machine().host,
            "pid": os.getpid(),
            "targets": targets,
        }
        while self._timeout_s is None and self._over is None:
            if self._stays:
                self._port.introduce()
            self._port.send_message(wire.HELLO, hello)
            gevent.sleep(HELLO_S)

    def _hear(self, msg: Any, **_: object) -> None:  # noqa: ANN401 - Locust's message
        self._note_life()
        order = msg.data
        if order["do"] == "interrupt" and self._run is not None:
            self._run.interrupt()
        elif order["do"] == "cancel":
            if self._timeout_s is not None:  # what it is about may be over
                self._interruption.ask()
        elif order["do"] == "leave folders":
            self._interruption.leave_folders()
        elif order["do"] == "go":
            self._refuse(DismissedError(order["told"]))
        else:
            self._orders.put(order)

    def _hear_taken(self, msg: Any, **_: object) -> None:  # noqa: ANN401 - Locust's message
        self._note_life()
        if self._run is not None and self._run.reporter is not None:
            self._run.reporter.is_safe(msg.data)

    def _note_life(self, **_: object) -> None:
        self._heard_s = time.monotonic()

    def _obey(self) -> None:
        """Do one order after the other."""
        while self._over is None:
            order = self._orders.get()
            answer: dict[str, Any] = {"ticket": order["ticket"]}
            try:
                answer["found"] = self._do(order["do"], order["told"])
            except ReplayerError as error:
                answer["error"] = wire.pack_error(error)
            except Exception as error:  # noqa: BLE001 - the master must hear of it
                self._say(keep_bug(error))
                answer["error"] = wire.pack_error(error)
            self._port.send_message(wire.ANSWER, answer)

    def _do(self, name: str, told: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any message
        if name == "prepare":
            return self._prepare(told)
        if name == "dismiss":
            return self._dismiss(DismissedError(told), told)
        if name == "release":
            return self._release("the master released this worker")
        if name == "stay":
            return self._stay("the master released this worker")
        if self._run is None:
            raise ReplayerError(f"cannot {name}: no run is prepared")
        found = self._run.obey(name, told)
        if name == "close":
            self._wait_until_safe(SAFE_S)
        return found

    def _prepare(self, told: Mapping[str, Any]) -> dict[str, Any]:
        self._timeout_s = float(told["timeout_s"])
        stay()  # from now on there is something to clean up, and a time to wait for the master
        self._stays = False
        numbers = told["numbers"]
        number = numbers[self._port.name]
        self._say(f"is worker {number} of {len(numbers)} (from 0)")
        if not self._terms.is_forked:
            refuse_differences(self._settings, self._terms, told)
        request = RunRequest(
            settings=self._settings,
            workload=agreed_workload(self._own_workload(), told),
            targets=self._targets(told["targets"]),
            rounds=told["rounds"],
            schedule=(),
            progress=ProgressDisplay() if self._silent else make_progress(quiet=False),
            interruption=self._interruption,
            spawner=self._port.new_spawner(),
        )
        self._turn += 1
        terms = WorkerTerms(
            number, len(numbers), told["keep"], self._turn, is_forked=self._terms.is_forked
        )
        self._run = WorkerRun(request, terms, self._port.send_message)
        return self._run.facts()

    def _targets(self, names: Sequence[str]) -> tuple[NamedTarget, ...]:
        """Return this worker's targets of these names."""
        own = {target.name: target for target in chosen_targets(self._settings)}
        missing = [name for name in names if name not in own]
        if missing:
            message = f"no target {missing[0]} here, only {', '.join(own)}"
            hint = "use the same names everywhere: --target NAME=PATH; paths may differ"
            raise ReplayerError(message, hint=hint)
        return tuple(own[name] for name in names)

    def _own_workload(self) -> Settings:
        """Return what this worker was given to run; a page may choose something else."""
        if self._terms.is_forked and self._terms.has_page:
            return replace(self._settings, scenario=None, replay=None)
        return self._settings

    def _wait_until_safe(self, within_s: float, leaving: str | None = None) -> None:
        """Wait until the master has every result, for so long at most."""
        deadline_s = time.monotonic() + within_s
        reporter = self._run.reporter if self._run is not None else None
        while reporter is not None and not reporter.is_done and time.monotonic() < deadline_s:
            reporter.tell(replace(self._state(), leaving=leaving))
            gevent.sleep(BEAT_S / 5)

    def _beat(self) -> None:
        """Tell how things are, until the run is over."""
        while self._over is None:
            begin_s = time.monotonic()
            gevent.sleep(BEAT_S)
            if time.monotonic() - begin_s > ASLEEP_S:
                self._note_life()  # it was we who were silent
            if self._run is not None and self._run.reporter is not None:
                self._run.reporter.tell(self._state())
            elif self._timeout_s is not None:
                self._port.send_message(wire.NEWS, {"state": WorkerState().pack()})
            self._look()

    def _look(self) -> None:
        """See whether this worker shall end by itself."""
        silent_s = time.monotonic() - self._heard_s
        patience_s = UNTOLD_S if self._timeout_s is None else self._timeout_s
        is_alone = silent_s > patience_s and self._is_tidy.is_set() and self._over is None
        if self._interruption.presses and self._over is None:
            # The master shall not wait for it, but have what it has measured.
            self._port.send_message(
                wire.NEWS, {"state": replace(self._state(), leaving=LEFT).pack()}
            )
            self._leave(InterruptedRunError("its user ended this worker"))
            self._wait_until_safe(HURRIED_S, leaving=LEFT)
            state = replace(self._state(), leaving=LEFT, has_told_all=True)
            self._port.send_message(wire.NEWS, {"state": state.pack()})
            gevent.spawn(self._port.quit)
        elif is_alone and self._stays:
            self._over = f"no further master within {patience_s:g} s"
            self._say(self._over)
            gevent.spawn(self._port.quit)
        elif is_alone:
            self._leave(LostMasterError(f"the master sent nothing for {patience_s:g} s"))
            self._clean_up()
            gevent.spawn(self._port.quit)

    def _state(self) -> WorkerState:
        return WorkerState() if self._run is None else self._run.state()

    def _refuse(self, error: ReplayerError) -> None:
        if self._over is None:
            self._say(in_lines(error).removeprefix("replayer: "), always=True)
            self._leave(error)
            gevent.spawn(self._clean_up_and_quit)

    def _clean_up_and_quit(self) -> None:
        self._clean_up()
        self._port.quit()

    def _dismiss(self, error: DismissedError, told: Mapping[str, Any]) -> None:
        """There will be no run: remove what was made for it."""
        why = str(error)
        if self._run is not None:
            self._run.inherit(told.get("heir"))
        if told["then"] == "stay":
            self._say(f"the master stopped the run: {why}")
            self._stay(why)
            return
        if told["then"] == "wait":
            self._release(why)
            return
        self._over, self._code = why, error.exit_code
        self._say(f"the master stopped the run: {why}")
        self._is_tidy.clear()
        try:
            if self._run is not None:
                self._run.abandon(InterruptedRunError(why))
                self._clean_up()
        finally:
            self._is_tidy.set()
        gevent.spawn_later(BEAT_S, self._port.quit)

    def _release(self, why: str) -> None:
        """End what is left of this part, and be there for the next run."""
        run, self._run = self._run, None
        if run is not None:
            if not run.is_over:
                run.abandon(InterruptedRunError(why))
                for line in run.remove_own():
                    self._say(line, always=True)
            run.release()
        self._port.get_ready()
        self._interruption = Interruption(tidies_for(self._port.stop_timeout_s))
        self._timeout_s = None
        self._greeter.kill()
        self._greeter = gevent.spawn(self._greet)

    def _stay(self, why: str) -> None:
        """The same, where the next run is that of another master, which may come late."""
        if self._stays and self._run is None:
            return
        self._is_tidy.clear()
        try:
            self._release(why)
        finally:
            self._is_tidy.set()
        self._note_life()
        self._stays = True

    def _leave(self, why: ReplayerError) -> None:
        self._over, self._code = str(why), why.exit_code
        run = self._run
        if run is None:
            if isinstance(why, LostMasterError):
                self._say(str(why), always=True)
        elif not run.is_over:
            run.abandon(why)
            self._say(f"{why}; its results are in {run.folder}", always=True)

    def _clean_up(self) -> None:
        """Nobody else will: remove what this worker made."""
        left = () if self._run is None else self._run.remove_own()
        for line in left:
            self._say(line, always=True)

    def _say(self, text: str, *, always: bool = False) -> None:
        if always or not self._silent:
            sys.stderr.write(f"replayer: {text}\n")


def open_worker_process(
    port: WorkerPort, settings: Settings, terms: ClusterSettings
) -> WorkerProcess:
    """Make a process a worker.

    Raises:
        ReplayerError: Its targets cannot be meant.
    """
    chosen_targets(settings)
    worker = WorkerProcess(port, settings, terms)
    worker.begin()
    return worker
