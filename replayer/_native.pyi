"""The contract of the native module: types, units and failures of every call.

Every time is in nanoseconds on CLOCK_MONOTONIC (or the counter behind it) unless its name says
otherwise. Kernel errors are raised as OSError with errno and path. A ValueError means that an
argument breaks the contract. All long calls release the GIL.

``Engine.divergences`` returns JSON: counts ``performances``, ``events``, ``compared`` and
``matched``; ``omitted`` and ``allowed`` by reason; ``diverged``, a list of ``target``,
``transaction``, ``op``, ``recorded``, ``got`` and ``count``; ``drift_ns``: how much later than due
the last event of a timed performance ended; ``examples``, 20 and the first of each target, with
``target``, ``user``, ``performance``, ``trace``, ``row``, ``thread``, ``op``, ``path``,
``recorded``, ``got``, ``result_recorded`` and ``result_got``; ``targets``, a list of the same
counts by target.
"""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias, final

__all__ = [
    "BUILD_PROFILE",
    "OPS",
    "Engine",
    "Finding",
    "FlightRecording",
    "Histogram",
    "Interval",
    "Outcome",
    "Plan",
    "ProbeRecording",
    "Recording",
    "Row",
    "Sandbox",
    "Space",
    "Stuck",
    "Task",
    "Transaction",
    "clock_ns",
    "confinement",
    "evict_machine_caches",
    "gap_cost",
    "make_quick_calls",
    "read_log",
    "read_slices",
    "trace_calls",
    "trace_check_order",
    "trace_events",
    "trace_formats",
    "trace_history",
    "trace_import",
    "trace_is_applicable",
    "trace_names",
    "trace_open",
    "trace_rewrite",
    "trace_statistics",
]

BUILD_PROFILE: Final[str]
"""``release`` or ``debug``; a debug engine may not measure."""

_Kind: TypeAlias = Literal["look", "alter", "attribute", "use", "read", "write", "mark", "end"]
_Contents: TypeAlias = Literal["none", "reads", "writes", "copies", "alters"]
OPS: Final[tuple[tuple[str, _Kind, _Contents, str, frozenset[str]], ...]]
"""The table of ops: name, kind, contents, the op that does the same, flags (``replayer.ops``)."""

def clock_ns() -> float:
    """What a look at the engine's clock costs: the least of several.

    The engine looks twice for each op; where that is dear (above 500 ns: a system call) it looks
    once, and an op begins when the one before it has ended.
    """

def confinement() -> Literal["jailed", "guarded"]:
    """How path calls are kept inside the run's folder in this process.

    ``jailed``: each native thread has the run's folder as its root (needs CAP_SYS_CHROOT), one
    call per op. ``guarded``: each path is resolved with openat2(RESOLVE_BENEATH) first, two or
    three calls per op.
    """

def evict_machine_caches() -> bool:
    """Sync and drop the machine's page, dentry and inode caches; False when not permitted."""

@final
class Histogram:
    """An HDR histogram of nanoseconds, 3 significant digits, 1 ns to 24 h."""

    def __new__(cls, v2: bytes | None = None) -> Histogram:
        """An empty one, or one from its compressed V2 form (HdrHistogram V2 + zlib)."""
    def record(self, value_ns: int, count: int = 1) -> None: ...
    def add(self, other: Histogram) -> None: ...
    def copy(self) -> Histogram: ...
    @staticmethod
    def merged(parts: Iterable[Histogram]) -> Histogram:
        """The sum, as if every value had been recorded into one."""
    def split(self, value_ns: int) -> tuple[Histogram, Histogram]:
        """The buckets up to the one that holds a value, and those above."""
    def to_v2(self) -> bytes: ...  # the compressed V2 form
    def percentile(self, percent: float) -> int:
        """The highest value equivalent to the one at that percentile; 0 when empty."""
    def buckets(self) -> list[tuple[int, int]]:
        """(value, count) of every recorded bucket, ascending; values are highest equivalents."""
    @property
    def count(self) -> int: ...
    @property
    def min(self) -> int: ...  # the lowest value of the first bucket; 0 when empty, as the others
    @property
    def max(self) -> int: ...  # the highest value of the last bucket
    @property
    def max_at_least(self) -> int: ...  # the lowest value of the last bucket
    @property
    def mean(self) -> float: ...  # the mean of the buckets' middles, by a sum that is rounded once
    @property
    def stdev(self) -> float: ...

_Phase: TypeAlias = Literal["warm-up", "measured", "alone"]

@final
class Row:
    """What was measured of one key in one interval."""

    def __new__(
        cls,
        target: int,
        round: int,
        phase: _Phase,
        transaction: str,
        op: str,
        outcome: str,
        expected: bool,
        bytes: int,
        histogram: Histogram,
    ) -> Row: ...
    @property
    def target(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def phase(self) -> _Phase: ...
    @property
    def transaction(self) -> str: ...
    @property
    def op(self) -> str:
        """An op of OPS, or a time of transactions.

        ``transaction`` (latency: end - intended), ``transaction.service`` (end - start),
        ``transaction.lag`` (start - intended).
        """
    @property
    def outcome(self) -> str:
        """``ok``, an errno name, ``SHORT``, ``cancelled``; of transactions also ``failed``."""
    @property
    def expected(self) -> bool: ...  # false when it counts as an error
    @property
    def bytes(self) -> int: ...
    @property
    def histogram(self) -> Histogram: ...  # the same object each time

@final
class Interval:
    """One second (or what is left of one at a boundary) of recordings."""

    def __new__(cls, start_ns: int, end_ns: int, users: int, rows: Sequence[Row]) -> Interval: ...
    @property
    def start_ns(self) -> int:
        """Since the engine's begin."""
    @property
    def end_ns(self) -> int: ...
    @property
    def users(self) -> int:
        """Users running at its end."""
    @property
    def rows(self) -> tuple[Row, ...]: ...

@final
class Recording:
    """histograms.hlog, timeline.csv and events.jsonl of a run folder, as an engine writes its own.

    No call fails: what a file does not take waits (16 MiB), and is appended when there is room.
    """

    def __new__(cls, folder: PathLike[str], begin_epoch_ns: int) -> Recording: ...
    def append(self, interval: Interval) -> None:
        """Append an interval: one write for each file."""
    def append_events(self, lines: str) -> None: ...
    def finish(self) -> None:
        """Append what waits."""
    @property
    def error(self) -> tuple[str, int] | None:
        """The first file that has not taken everything at once, and the errno."""

def read_log(
    path: PathLike[str],
) -> tuple[list[Row], list[tuple[int, int, _Phase, str, list[tuple[float, float]]]], int]:
    """Read a histograms.hlog; one that is missing holds nothing. OSError: it cannot be read.

    Returns a row for each key, added up, without bytes; begin and end in seconds of the intervals
    of each target, round, phase and transaction; and the number of lines that are cut short or
    damaged.
    """

def read_slices(
    path: PathLike[str], begins_s: Sequence[float], bins: tuple[int, int], keys: Sequence[Row]
) -> list[tuple[bytes, bytes, bytes]]:
    """Read the keys of some rows of a histograms.hlog, their intervals apart in time.

    ``begins_s``: of each slot, ascending. ``bins``: how many an octave has, and how many there are.
    Returns slots, bins and counts of each key, as arrays of 64-bit integers.
    """

@final
class Transaction:
    """One finished transaction, for event listeners."""

    @property
    def user(self) -> int: ...
    @property
    def target(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def end_ns(self) -> int:
        """Since the engine's begin."""
    @property
    def latency_ns(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def error(self) -> str | None:
        """None, or 'op errno path' of the op that failed."""

@final
class Stuck:
    """An op that has been in the kernel for longer than the limit."""

    @property
    def user(self) -> int: ...
    @property
    def target(self) -> int: ...
    @property
    def op(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def age_ns(self) -> int: ...

@final
class Outcome:
    """The answer to one submitted command of an interactive user."""

    @property
    def ticket(self) -> int: ...
    @property
    def value(self) -> int:
        """What the call returned (bytes, offset; size for stat), 0 if it returns nothing."""
    @property
    def outcome(self) -> str:
        """``ok``, an errno name, ``SHORT``, or ``END``: the call went well and found the end."""
    @property
    def expected(self) -> bool:
        """Whether the step allows it; the end is as good as data where it allows ``ok``."""
    @property
    def service_ns(self) -> int: ...

@final
class Engine:
    """The users of one plan on one or more targets: native threads, recorded natively."""

    def __new__(
        cls,
        plan: Plan,
        targets: Sequence[Sequence[Sandbox]],
        *,
        record: str | None = None,
        interval_ns: int = 1_000_000_000,
        stuck_after_ns: int = 5_000_000_000,
        null: bool = False,
        event_log: str | None = None,
        turn: tuple[int, int] = ...,
        abreast: bool = ...,
    ) -> Engine:
        """Make an engine; nothing runs yet.

        Args:
            plan: What to run.
            targets: For each target the run's folder through each of its mount points; user u uses
                number u % n.
            record: An existing directory for histograms.hlog, timeline.csv and events.jsonl.
            interval_ns: Length of an interval, at least 1 ms.
            stuck_after_ns: An op longer than this is reported while it hangs.
            null: Make no system call at all: measures the engine's own cost.
            event_log: An existing directory for the times of every replayed event.
            turn: (i, n): of scheduled arrivals it takes every n-th, from the i-th (from 0) on.
            abreast: User u works on target u % n of n alone, as user u // n of the plan.

        Raises:
            RuntimeError: This is a debug build.
        """
    @property
    def doorbell(self) -> int:
        """An eventfd (non-blocking), readable when anything waits to be drained.

        So it is when a user has no more to do in the segment; ``drain_finished`` silences it.
        """
    @property
    def begin_epoch_ns(self) -> int: ...  # wall-clock time of its begin, for reports only
    def now_ns(self) -> int: ...  # monotonic, since its begin
    def begin_segment(
        self, target: int, round: int, warm_up_ns: int, measured_ns: int | None = None,
        *, beside: Sequence[int] = ..., phase: _Phase = ...,
    ) -> None:  # fmt: skip
        """Let the users run on a target (those ``beside``, too); with ``abreast`` others wait.

        Their streams restart at (seed, round, user). Recorded as ``warm-up`` for that long, then as
        ``phase``. When that has lasted for ``measured_ns``, no user begins a transaction any more.
        Scheduled transactions that began in the warm-up and ended after it are not recorded.
        RuntimeError: a segment is open.
        """
    def measure(self) -> None:
        """End the warm-up now (all users are there)."""
    def end_segment(self, grace_ns: int) -> list[Stuck]:
        """End the segment and return the users given up on, who take no further part.

        Asks every user to finish its transaction, cancels those that have not after the grace, and
        gives up on those still in the kernel 2 s later. Interactive users are not part of segments.
        Idle when it returns. Cancelled transactions are recorded as ``cancelled``, and so is what
        those do who were given up on: each with the time that it had lasted.
        events.jsonl gets a line ``ending``: from when on no transaction began, and how many of the
        schedule (``unbegun``) had been due before that never did.
        """
    def start_user(self, user: int) -> None:
        """Start the native thread of a user; it runs as soon as a segment is open."""
    def stop_user(self, user: int) -> None:
        """Let it finish its transaction, then end its thread; unknown users are no error."""
    def cancel_user(self, user: int) -> None:
        """End it before its next op, and interrupt a waiting call (EINTR) with a signal."""
    def running_users(self) -> int:
        """Users whose thread has not ended, but for those that were given up on."""
    def busy_users(self) -> int:
        """Users with more to do in this segment; 0 when all used up ``stop.transactions``."""
    def stuck(self) -> list[Stuck]:
        """Ops in the kernel for longer than the limit, longest first, at most 100."""
    def drain_transactions(self) -> tuple[list[Transaction], int]:
        """Finished transactions since the last call, oldest first, and how many were dropped.

        The queue holds 65,536; it is not filled unless ``watch_transactions``.
        """
    def watch_transactions(self, *, watched: bool) -> None:
        """Queue finished transactions for ``drain_transactions`` or not (the default)."""
    def drain_finished(self) -> list[int]:
        """Users whose thread has ended, or that were given up on, since the last call."""
    def drain_intervals(self) -> list[Interval]:
        """Intervals since the last call, oldest first; beyond 600 the oldest are merged."""
    def totals(self) -> list[Row]:
        """Everything recorded since the engine's begin, per key."""
    def record_error(self) -> tuple[str, int] | None:
        """The file whose writing failed first and the errno; None while all is well."""
    def divergences(self) -> str:
        """What replays found so far, as JSON (see ``_replay.pyi``)."""
    def verification(self) -> str | None:
        """What verifying found so far, as JSON; None when the plan does not ask for it.

        ``reads``, ``verified_bytes``, ``unverified_bytes``, ``mixed_bytes``, ``ns``, ``blocks`` (by
        outcome: TORN, SWAPPED, LOST, STALE), ``blind``, and ``last``: null until ``read_back``,
        then the same of what that read (but for ``ns``, which is 0), with ``files`` (read to their
        end), ``unclear_files`` (nothing is certain of them), ``failed_files`` (not to be opened or
        read), ``left_files`` (time was over), ``cached_bytes`` (still in the page cache when they
        were read), ``unsynced_files`` (fsync failed), ``took_ns``, and ``wrong``, the first 20
        files that were: ``target``, ``outcome`` (the worst) and ``path``.
        """
    def read_back(self, target: int, threads: int, *, budget_ns: int) -> Task:
        """Read what users wrote on a target in its last segment, once, and judge it.

        To be asked when no user works there any more. Each file is read through the mount point of
        whoever wrote it last, after fsync and posix_fadvise(DONTNEED). When the time is over, or
        the task is cancelled, the rest is left; ``verification`` tells what was found until then.
        RuntimeError: the plan does not ask for ``verify``.
        """
    def start_interactive(self, user: int, target: int) -> None:
        """Start a user that does what ``submit`` says (for locustfiles in Python), nothing else."""
    def submit(self, user: int, command: bytes) -> int:
        """Queue a command (at most 1,024 wait) and return its ticket.

        A command is JSON: ``{"begin": "checkout"}``, ``{"end": "checkout", "failed": false}``, or a
        timed step of plan format 1 in which ``path`` and ``to`` are strings (relative, resolved
        inside the sandbox) and ``file`` is the slot that an ``open`` with ``"slot": k`` filled;
        draws are constants or plain numbers (that of ``lseek``'s ``offset`` may be below 0). Events
        of calls on a slot have the path that it was opened by. Ops outside of a transaction are
        recorded under the transaction ``-``. Transaction names are free (at most 256 different
        ones). ValueError: it is no command; the message names the key and the bound. RuntimeError:
        the user is not interactive, or its queue is full.
        """
    def drain_outcomes(self) -> list[Outcome]:
        """Answers since the last call, oldest first."""
    def overhead_ns(self, ops: int) -> float: ...  # of its own per op, now: null target, one thread
    def run_queue_delay_ns(self) -> int:
        """Time that users were ready but had no CPU, since the begin (64 threads, scaled up)."""
    def in_call_ns(self) -> int:
        """Time that the users spent in calls since the begin, all users together."""
    def outside_ns(self) -> int:
        """Time in which users worked for replays outside of calls, all users together.

        Looking at the clock in pauses, and making and removing the files of a performance.
        """
    def interrupt(self) -> None:
        """Wake and cancel every user at once (second Ctrl-C)."""
    def close(self) -> list[Stuck]:
        """End all users (cancelling them), write the last interval, close the files. Idempotent."""

@final
class Plan:
    """A plan of format 1 (see replayer/plan/FORMAT.md), checked and ready to run."""

    def __new__(cls, document: bytes, traces: Sequence[str] = ()) -> Plan:
        """Parse a JSON document; ValueError: with the place in it, the value and the bound.

        ``traces``: the folders of its traces, in their order; their checksums are compared.
        """
    @property
    def replay_lanes(self) -> int:
        """Threads that one user needs at most for its replays, its own one included (0: none)."""
    @property
    def transactions(self) -> tuple[str, ...]: ...
    @property
    def datasets(self) -> tuple[str, ...]: ...

@final
class ProbeRecording:
    """File calls, told by a probe in the kernel (RuntimeError: why it cannot be, what it needs)."""

    def __new__(cls, path: str | PathLike[str], ring_bytes: int, limit_bytes: int) -> Self: ...
    def restart(self, path: str | PathLike[str], limit_bytes: int) -> None: ...  # after finish
    def record_pages(self, roots: Sequence[int]) -> None: ...  # by inode; mapped files below
    def arm(self) -> None: ...  # for the next process that this thread starts, and descendants
    def attach_to(self, processes: Sequence[int]) -> None: ...
    def progress(self) -> str: ...  # JSON: records, bytes, lost, live, is_full, trouble
    def processes(self) -> list[int]: ...
    def finish(self) -> None: ...

@final
class FlightRecording:
    """The latest calls, in memory (ValueError: ``when`` names no call; else as above)."""

    # Bytes of the ring, time and bytes to keep; a call, its limit in ns, and roots of its file.
    def __new__(
        cls, kept: tuple[int, int, int], when: tuple[str, int, list[Path]] | None
    ) -> Self: ...
    def attach_to(self, processes: Sequence[int]) -> None: ...
    def watch(self) -> str: ...  # JSON: live, lost, kept_ns, bytes, calls over the limit (slow)
    def dump(self, path: Path) -> str: ...  # JSON: begin_(wall_)ns, kept_ns, pending, places
    def finish(self) -> None: ...

@final
class Space:
    """What statfs says of a target."""

    @property
    def bytes_total(self) -> int: ...
    @property
    def bytes_free(self) -> int: ...  # available to this user
    @property
    def inodes_total(self) -> int: ...  # 0 where the file system does not count them
    @property
    def inodes_free(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def kind(self) -> int: ...  # the f_type magic number

@final
class Finding:
    """The result of a task: what was done, and what did not fit."""

    @property
    def files(self) -> int: ...
    @property
    def directories(self) -> int: ...
    @property
    def links(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def mismatches(self) -> int:
        """Entries that are missing or differ in type, size, mode or target (verify only)."""
    @property
    def first_mismatch(self) -> str | None: ...  # path and reason, for a person
    @property
    def elapsed_ns(self) -> int: ...

@final
class Task:
    """Work under way on native threads: poll it, cancel it, collect its result."""

    @property
    def done_entries(self) -> int: ...
    @property
    def total_entries(self) -> int: ...  # 0 while not known yet (removal)
    @property
    def done_bytes(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    def stuck(self, after_ns: int) -> list[tuple[str, str, int]]:
        """Calls in the kernel for longer than that, longest first: op, path, age in ns."""
    def cancel(self) -> None: ...  # stops between two entries: result raises InterruptedError
    def result(self) -> Finding:
        """Wait, then return the finding or raise the first error (OSError with its path)."""

@final
class Sandbox:
    """A run's own folder, PATH/replayer-RUN, seen through one mount point."""

    @staticmethod
    def create(parent: str, run: str, note: str) -> Sandbox:
        """Create the folder (mode 0700) and its marker ``.replayer-run``, holding ``note`` (JSON).

        OSError: of the parent, or the folder exists. ValueError: of ``run`` ([A-Za-z0-9_-]+).
        """
    @staticmethod
    def open(path: str) -> Sandbox:
        """Open a folder made by ``create``; one without the marker is refused.

        OSError: ENOENT, ENOTDIR, ELOOP (a symlink). ValueError: it has no marker (a regular file).
        """
    @property
    def path(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def device(self) -> int: ...  # st_dev of the folder
    def space(self) -> Space: ...
    def lay_out(self, plan: Plan, threads: int) -> Task:
        """Create every laid-out dataset, and the empty directories of the others.

        Directories first, then files in parallel. Never overwrites: an existing file is the error
        EEXIST. Files are created O_EXCL, filled, given their mode and closed.
        """
    def verify(self, plan: Plan, threads: int) -> Task: ...  # extra entries are mismatches, too
    def warm(self, plan: Plan, threads: int) -> Task: ...  # reads each file, stats every entry
    def evict(self, plan: Plan, threads: int) -> Task: ...  # fsync, posix_fadvise(DONTNEED)
    def wipe(self, threads: int) -> Task: ...  # removes everything inside but the marker
    def remove(self, threads: int) -> Task: ...  # all and the folder; crosses no link and no mount

def trace_check_order(trace: str, log: str) -> str:
    """Whether an event log kept its trace's order: JSON, see replayer/trace/reading.py."""

def make_quick_calls(count: int) -> None: ...  # that follow each other at once (OSError)
def gap_cost(log: Path) -> tuple[int, int, int] | None: ...  # gaps; ns: untold, told
def trace_formats() -> list[str]: ...  # names of those that logs can be imported from
def trace_is_applicable(name: str, head: bytes) -> str: ...  # ``yes``, ``no`` or ``need more``
def trace_import(
    files: Sequence[str],
    target: str,
    roots: Sequence[bytes],
    options: str,
    progress: Callable[[int], None],
) -> str:
    """Import logs into a new trace folder, whole or not at all; the text of its trace.json.

    ``options``: see replayer/trace/importing.py. ``progress`` is told the lines; may raise.
    """

def trace_open(directory: str) -> str: ...  # trace.json, once it is checked; errors as above
def trace_statistics(folder: str, request: str | None) -> str:
    """What a trace, or the requests of one label in it, asks for, as JSON: see FORMAT.md."""

def trace_history(folder: str, row: int, limit: int) -> str: ...  # JSON: see trace/reading.py
def trace_events(folder: str) -> tuple[list[bytes], list[tuple[str, str]]]:
    """Columns of all events as this machine orders bytes, then path and label of each path.

    uint32 thread, int64 start and duration (ns, -1: not known), uint8 op (in ``OPS``), int32 path
    (a row of ``paths``, -1: none), int64 result.
    """

_TreeRow: TypeAlias = tuple[int, str, int, int | None, bytes | None]
_Piece: TypeAlias = tuple[int, str, int, int, int, int, int]  # of requests, without ``events``

_Calls: TypeAlias = tuple[list[bytes], list[bytes], list[_TreeRow], list[_Piece]]

def trace_calls(folder: str) -> _Calls: ...  # columns (replayer/synth/requests.py), then paths

_Link: TypeAlias = tuple[int, bytes]  # row of its path, what it says
_Text: TypeAlias = tuple[int, int | None, bytes]  # of events: op (in ``OPS``), row of their path
_Names: TypeAlias = tuple[list[bytes], list[_Link], list[_Text], list[str], list[int]]
_Renamed: TypeAlias = tuple[list[bytes], list[bytes], list[bytes], list[str], list[int]]

def trace_names(folder: str) -> _Names: ...  # paths, links, texts, labels, owners, each once
def trace_rewrite(
    folder: str,
    target: str,
    told: _Names,  # by ``trace_names``
    renamed: _Renamed,
    shift_ns: int,
    document: str,
) -> str: ...  # a new folder with other names; its trace.json
