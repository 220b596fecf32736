"""The supervisor: a parent that can end where its child cannot.

A thread in a call that nothing interrupts (a dead server behind FUSE, a frozen disk) keeps its
process from being reaped until the call returns, after SIGKILL and after _exit alike. A shell waits
as long. So a command that touches mounts works in a child. The supervisor touches no mount: it
passes signals on, and ends when its child has ended or says that it would if it could.
"""

import atexit
import ctypes
import os
import signal
import sys
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
SI_KERNEL = 0x80  # sigaction(2): sent by the kernel, as a terminal's Ctrl-C is
PR_SET_PDEATHSIG = 1  # prctl(2)
EXIT_ORPHAN = 4
ECHO_S = 0.3
"""What comes again so soon is the same wish (chosen: people press Ctrl-C less often than that)."""

_hung: list[str] = []
_heard_s: dict[int, float] = {}
# Of this process, and set by functions here: each is the one thing in its list.
_code = [0]
_raised = [False]
_plainly = [False]
_was_deaf = [False]
_word: list[tuple[int, int, int]] = []
"""In a child: the supervisor's process, the pipe for the exit code, and who may write to it."""


def keep(work: Callable[[], int]) -> int:
    """Do work in a child, and return its exit code.

    Returns in both processes: in the child when the work is done, in the supervisor when the child
    has ended or left.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED, signal.SIGCHLD})
    supervisor = os.getpid()
    atexit.register(_leave)  # the first to be registered is the last to be done
    child = os.fork()
    if child:
        os.close(writing)
        end_with(_wait(child, reading))
        end_plainly()
        return _code[0]
    os.close(reading)
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
        # A thread in the kernel holds every descriptor: readers of our output wait for its end.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        if child == os.getpid():  # a worker that it has forked ends for itself alone
            os.write(pipe, bytes([code]))
            os.kill(supervisor, signal.SIGCHLD)
    os._exit(code)


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


def _wait(child: int, word: int) -> int:
    while True:
        told = signal.sigwaitinfo({*PASSED, signal.SIGCHLD})
        if told.si_signo == signal.SIGCHLD:
            code = _code_of(child, word)
            if code is not None:
                return code
        # A terminal tells every process of the group itself, but its end to the session's leader.
        elif told.si_code != SI_KERNEL or told.si_signo == signal.SIGHUP:
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
