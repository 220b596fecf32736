"""The supervisor: a parent that can end where its child cannot.

A thread in a call that nothing interrupts (a dead server behind FUSE, a frozen disk) keeps its
process from being reaped until the call returns, after SIGKILL and after _exit alike. A shell waits
as long. So a command that touches mounts works in a child. The supervisor touches no mount: it
passes signals on, and ends when its child has ended or says that it would if it could.

Some work may end at once at any moment (``end_at_second``). Where its process does not answer the
second signal that asks for an end, the supervisor leaves it behind.
"""

import atexit
import ctypes
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

PASSED = frozenset(
    {
        *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
        *(signal.SIGUSR1, signal.SIGUSR2),
    }
)
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
SI_KERNEL = 0x80  # sigaction(2): sent by the kernel, as a terminal's Ctrl-C is
PR_SET_PDEATHSIG = 1  # prctl(2)
EXIT_ORPHAN = 4
EXIT_INTERRUPTED = 4
ECHO_S = 0.3
"""What comes again so soon is the same wish (chosen: people press Ctrl-C less often than that)."""
PATIENCE_S = 1.5  # chosen: what is looked at every 0.2 s has answered by then
_AT_ONCE = 2  # signals: the second means at once
LAST_S = 0.5  # chosen: in which a process lets go of what it holds in the kernel

_hung: list[str] = []
_heard_s: dict[int, float] = {}
# Of this process, and set by functions here: each is the one thing in its list.
_code = [0]
_raised = [False]
_plainly = [False]
_was_deaf = [False]
_word: list[tuple[int, int, int]] = []
"""In a child: the supervisor's process, the pipe for the exit code, and who may write to it."""
_ties: list[tuple[mmap.mmap, int]] = []
"""In a child: what it says to its supervisor while it works (see ``_Patience``), and a pipe that
the supervisor closes when it leaves the child behind, or is killed."""
_last_acts: list[Callable[[], object]] = []


def keep(work: Callable[[], int]) -> int:
    """Do work in a child, and return its exit code.

    Returns in both processes: in the child when the work is done, in the supervisor when the child
    has ended or left.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    left, leave = os.pipe2(os.O_CLOEXEC)
    said = mmap.mmap(-1, mmap.PAGESIZE)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED, signal.SIGCHLD})
    supervisor = os.getpid()
    atexit.register(_leave)  # the first to be registered is the last to be done
    child = os.fork()
    if child:
        os.close(writing)
        os.close(left)
        end_with(_wait(child, reading, _Patience(said, leave)))
        end_plainly()
        return _code[0]
    os.close(reading)
    os.close(leave)
    _ties.append((said, left))
    follow(supervisor, signal.SIGKILL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = _keep_quiet_of_interrupts
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _word.append((supervisor, writing, os.getpid()))
    return work()


def hear_interrupts() -> None:
    """Have this process end on a Ctrl-C though its parent had it ignored.

    A shell without job control begins what stands before an ``&`` so (POSIX, 2.11).
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        _was_deaf[0] = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def unhear_interrupts() -> None:
    """Have it ignored again, if it was, in a child that becomes a user's command."""
    if _was_deaf[0]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interrupts_as_inherited() -> Iterator[None]:
    """Have it ignored again, if it was, by what is started meanwhile."""
    if not _was_deaf[0]:
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def is_echo(number: int) -> bool:
    """Whether a signal that came just now is the one before once more; to be asked once of each.

    ``timeout`` and supervisors signal a whole group of processes: the child has it then, and the
    supervisor, which cannot know that, passes its own on.
    """
    now_s = time.monotonic()
    if now_s - _heard_s.get(number, -ECHO_S) < ECHO_S:
        return True
    _heard_s[number] = now_s
    return False


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Python does, but once for one wish: a signal handler."""
    if not is_echo(number):
        _raised[0] = True
        raise KeyboardInterrupt


def _keep_quiet_of_interrupts(swallowed: "sys.UnraisableHookArgs") -> None:
    """Print what a callback raised into code that cannot pass it on, but for a Ctrl-C.

    Pydantic asks back while it looks at a scenario: a Ctrl-C there is swallowed with a traceback on
    the terminal, and heard all the same (``take_interrupt``).
    """
    if swallowed.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(swallowed)


def take_interrupt() -> bool:
    """Whether ``interrupt`` has raised since this was asked last.

    In a callback of gevent's loop, or of pydantic's, that goes unheard. It counts once: another run
    begins anew.
    """
    was_raised, _raised[0] = _raised[0], False
    return was_raised


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Have a Ctrl-C wait for what is done within."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_second() -> None:
    """Have the supervisor leave this process behind where it does not answer a second signal."""
    for said, left in _ties:
        said[0] = 1
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Thread(target=_end, args=(left,), daemon=True, name="end").start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        follow_no_more()


def before_leaving(act: Callable[[], object]) -> None:
    """Have something done if this process is left behind, or its supervisor is killed.

    It is to let go of what would live on while a thread hangs in the kernel. It is called in a
    thread of its own.
    """
    _last_acts.append(act)


def _end(left: int) -> None:
    os.read(left, 1)  # nothing is ever written: it waits for the other end to be closed
    for act in _last_acts:
        with suppress(Exception):  # whatever it is, this is the end
            act()
    _drop_streams()
    os._exit(EXIT_INTERRUPTED)


def answer() -> None:
    """Tell the supervisor that the signals so far were heard, and that this process goes on."""
    for said, _ in _ties:
        said[1] = (said[1] + 1) % 256


def give_up_on(what: str) -> None:
    """Remember that a thread is left behind in a call on something."""
    _hung.append(what)


def hung_calls() -> tuple[str, ...]:
    """Return what the calls that never came back were made on."""
    return tuple(_hung)


def end_with(code: int) -> None:
    """Say what this process will exit with, should its threads not let it."""
    _code[0] = code


def leave_now(code: int) -> NoReturn:
    """End this process at once, whatever its threads wait for; whoever waits for it goes on."""
    sys.stdout.flush()
    sys.stderr.flush()
    leave_unflushed(code)


def leave_unflushed(code: int) -> NoReturn:
    """End this process at once, even where another thread is writing and nobody reads."""
    for supervisor, pipe, child in _word:
        _drop_streams()
        if child == os.getpid():  # a worker that it has forked ends for itself alone
            os.write(pipe, bytes([code]))
            os.kill(supervisor, signal.SIGCHLD)
    os._exit(code)


def _drop_streams() -> None:
    """Close our output: a thread in the kernel holds it, and its readers would wait for that."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def end_plainly() -> None:
    """Have this process end without taking Python apart, which takes seconds on a busy machine."""
    _plainly[0] = True


def _leave() -> None:
    if _hung or _plainly[0]:
        leave_now(_code[0])


def follow(parent: int, number: int) -> None:
    """Have this process get a signal when its parent ends, even if that is killed.

    For a process that was forked just now; what it goes on to execute keeps it.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it was killed before that
        os._exit(EXIT_ORPHAN)


def follow_no_more() -> None:
    """Have this process live on when its parent ends."""
    _LIBC.prctl(PR_SET_PDEATHSIG, 0)


_LIBC = ctypes.CDLL(None)


class _Patience:
    """How long a child that was asked to end may take, in its supervisor.

    Args:
        said: The child's page: whether it may be left behind, and how often it has answered.
        leave: The pipe whose closing tells the child that it is left.
    """

    _FOREVER_S = 3600.0

    def __init__(self, said: mmap.mmap, leave: int) -> None:
        self._said = said
        self._leave = leave
        self._answers = 0
        self._asked = 0
        self._due_s: float | None = None

    def hear(self, number: int) -> None:
        """Count a signal that asks for an end."""
        if number not in ENDING or is_echo(number):
            return
        self._forget_answered()
        self._asked += 1
        if self._asked == _AT_ONCE:
            self._due_s = time.monotonic() + PATIENCE_S

    def left_s(self) -> float:
        """Return for how long the supervisor may wait."""
        return self._FOREVER_S if self._due_s is None else max(0, self._due_s - time.monotonic())

    def is_over(self) -> bool:
        """Whether the child is to be left behind."""
        self._forget_answered()
        return bool(self._said[0]) and self._due_s is not None and self._due_s <= time.monotonic()

    def _forget_answered(self) -> None:
        if not self._said[0] or self._said[1] != self._answers:
            self._asked, self._due_s, self._answers = 0, None, self._said[1]

    def leave(self, child: int) -> int:
        """Leave the child behind, and return the exit code."""
        os.close(self._leave)
        signal.sigtimedwait({signal.SIGCHLD}, LAST_S)
        os.kill(child, signal.SIGKILL)  # nobody has waited for it: the number is its own
        signal.sigtimedwait({signal.SIGCHLD}, ECHO_S)
        ended, _ = os.waitpid(child, os.WNOHANG)
        why = "" if ended else f": process {child} hangs in the kernel, and ends when its call does"
        sys.stderr.write(f"replayer: interrupted{why}\n")
        return EXIT_INTERRUPTED


def _wait(child: int, word: int, patience: _Patience) -> int:
    while True:
        told = signal.sigtimedwait({*PASSED, signal.SIGCHLD}, patience.left_s())
        if told is None:
            if patience.is_over():
                return patience.leave(child)
            continue
        if told.si_signo == signal.SIGCHLD:
            code = _code_of(child, word)
            if code is not None:
                return code
            continue
        patience.hear(told.si_signo)
        # A terminal tells every process of the group itself, but its end to the session's leader.
        if told.si_code != SI_KERNEL or told.si_signo == signal.SIGHUP:
            with suppress(ProcessLookupError):
                os.kill(child, told.si_signo)


def _code_of(child: int, word: int) -> int | None:
    """Return the child's exit code, or the one that it would end with; None while it works."""
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        return _as_it(os.waitstatus_to_exitcode(status))
    try:
        told = os.read(word, 1)
    except BlockingIOError:
        return None
    return told[0] if told else None


def _as_it(code: int) -> int:
    """End by the signal that ended the child, if one did; else return its exit code."""
    if code < 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
