"""Signals of a person or a service manager, taken one at a time and with who sent them.

They are blocked in this thread and fetched by sigtimedwait(2): nothing interrupts a recording
halfway, and a Ctrl-C, which the terminal sends to the command as well, can be told from a kill.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from types import FrameType, TracebackType
from typing import Self

from replayer.supervisor import answer, interrupts_as_inherited, is_echo, unhear_interrupts

__all__ = ["Inbox", "Notice", "Sender"]

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_SI_KERNEL = 128  # sigaction(2): the terminal's driver sent it, to the whole foreground group

Handler = Callable[[int, FrameType | None], object] | int | None


class Sender(Enum):
    """Where a signal came from."""

    TERMINAL = "terminal"
    PROCESS = "process"


@dataclass(frozen=True)
class Notice:
    """A wish that this end."""

    signal: signal.Signals
    sender: Sender


class Inbox:
    """Holds back signals from entering to leaving; those that were ignored before stay so.

    Args:
        others: Signals that ask for something else than an end.
    """

    def __init__(self, others: Collection[signal.Signals] = ()) -> None:
        self._others = others
        self._queue: deque[Notice] = deque()
        self._handlers: dict[signal.Signals, Handler] = {}
        self._mask: set[signal.Signals | int] = set()
        self._waited = {signal.SIGCHLD}
        self._unanswered = 0

    def __enter__(self) -> Self:
        ending = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
        heard = [*ending, *self._others]
        self._waited = {*heard, signal.SIGCHLD}
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, self._waited))
        # A library's thread that does not block them may be given one: it comes this way then.
        self._handlers = {number: signal.signal(number, self._keep) for number in heard}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while (found := signal.sigtimedwait(self._waited, 0)) is not None:
            self._take(found)
        late = [notice for notice in self._queue if notice.signal in ENDING]
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        # The first that came too late to matter must not end the compilation.
        if late and self._unanswered + len(late) > 1 and kind is None:
            raise KeyboardInterrupt

    def spawn(
        self,
        command: Sequence[str],
        file_actions: Sequence[tuple[int | str, ...]] = (),
        *,
        setsid: bool = False,
    ) -> int:
        """Start a command with the signals that we were started with, and return its process.

        No copy of this process is made for it: what a large one frees before a command begins
        takes longer than a short command, and would be its first pause.

        Raises:
            OSError: It cannot be executed.
        """
        with interrupts_as_inherited():
            return os.posix_spawnp(
                command[0],
                tuple(command),
                os.environ,
                file_actions=file_actions,
                setsid=setsid,
                setsigmask=self._mask,
                setsigdef=_IGNORED_BY_PYTHON,
            )

    def release(self) -> None:
        """Give a new process the signals that we were started with, between fork and exec."""
        unhear_interrupts()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def wait(self, seconds: float) -> Notice | None:
        """Wait for a signal, a child that ended, or the time."""
        if not self._queue:
            found = signal.sigtimedwait(self._waited, seconds)
            if found is not None:
                self._take(found)
        notice = self._queue.popleft() if self._queue else None
        self._unanswered += notice is not None and notice.signal in ENDING
        return notice

    def go_on(self) -> None:
        """Say that what was taken so far is no reason to end yet."""
        self._unanswered = 0
        answer()

    def _keep(self, number: int, _: FrameType | None) -> None:
        self._put(number, Sender.PROCESS)

    def _take(self, found: signal.struct_siginfo) -> None:
        if found.si_signo != signal.SIGCHLD:
            sender = Sender.TERMINAL if found.si_code == _SI_KERNEL else Sender.PROCESS
            self._put(found.si_signo, sender)

    def _put(self, number: int, sender: Sender) -> None:
        if not is_echo(number):
            self._queue.append(Notice(signal.Signals(number), sender))
