"""The options of runs on several processes, and which options each role of a process accepts.

A process runs by itself, is a master, is a worker, or serves the page. An option without effect in
its role is refused, once the command line is parsed and before anything forks or connects.
"""

import argparse
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from replayer.errors import ReplayerError
from replayer.run.addresses import find_host, put_address, try_address
from replayer.run.options import LocustOptions, Parser
from replayer.run.web_options import LOOPBACK

DEFAULT_TIMEOUT_S = 10
"""Chosen: heartbeats come each second, and a busy machine may well miss a few."""
EVERYWHERE = "*"
EACH_CPU = -1  # Locust's number for as many as there are
OnLostWorker = Literal["fail", "continue"]
LOCUSTS: LocustOptions = {
    "processes": ("N", "number of worker processes on this machine (-1: one for each CPU)"),
    "master": (None, "lead workers; this process runs no users"),
    "expect_workers": ("N", "number of workers to wait for"),
    "expect_workers_max_wait": ("SECONDS", "longest time to wait for workers"),
    "master_bind_host": ("ADDRESS", "address where the master listens"),
    "master_bind_port": ("PORT", "port of the master (default: 5557)"),
    "worker": (None, "run as a worker, with the targets given here"),
    "master_host": ("HOST", "address of the master, for a worker"),
    "master_port": ("PORT", "port of the master, for a worker (default: 5557)"),
}

OF_WORKERS = frozenset({"worker", "master_host", "master_port"})


def add_fleet_options(parser: Parser) -> None:
    """Declare what Locust does not have."""
    parser.add_argument(
        "--on-lost-worker",
        choices=("fail", "continue"),
        default="fail",
        help="if a worker dies, hangs or leaves: fail with the results so far (default), or "
        "continue with the remaining users",
    )
    parser.add_argument(
        "--worker-timeout",
        type=_read_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help="time without a message after which a worker or master is lost (default: "
        f"{DEFAULT_TIMEOUT_S})",
    )
    parser.add_argument(
        "--keep-workers",
        action="store_true",
        help="let the workers wait for the next master when this one ends, instead of ending too",
    )


@dataclass(frozen=True)
class ClusterSettings:
    """What master and workers were asked to do."""

    forks: int = 0
    expect_workers: int = 1
    within_s: float = 0.0
    """For how long; 0: until they are there."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """After which silence a worker or master is lost."""
    on_lost_worker: OnLostWorker = "fail"
    is_forked: bool = False
    """Whether this worker is a fork of a command, and not the command itself."""
    has_page: bool = False
    keep_workers: bool = False
    """Whether workers outlive this master, and wait for the next one."""

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> "ClusterSettings":
        """Pick the settings out of a parsed command line."""
        return cls(
            forks=parsed.processes or 0,
            expect_workers=parsed.expect_workers,
            within_s=parsed.expect_workers_max_wait,
            timeout_s=parsed.worker_timeout,
            on_lost_worker=parsed.on_lost_worker,
            is_forked=bool(parsed.worker and parsed.processes),
            has_page=not parsed.headless,
            keep_workers=parsed.keep_workers,
        )


def arrange_modes(options: argparse.Namespace) -> None:
    """Check the mode, and see that processes of one machine find each other there alone.

    Called once the options are parsed, before Locust forks or connects.

    Raises:
        ReplayerError: Options that do not go together, or a port that is somebody else's.
    """
    if options.master and options.worker:
        message = "--master and --worker exclude each other"
        raise ReplayerError(message, hint="start the workers as separate processes")
    _check_processes(options.processes)
    if options.processes and not options.worker and options.master_bind_host == EVERYWHERE:
        # Two such runs at once are no trouble to each other, and nobody else can join.
        options.master_bind_host = options.master_host = LOOPBACK
        options.master_bind_port = options.master_port = _free_port()
    elif options.master:
        _try_once(options.master_bind_host, options.master_bind_port)
        where = put_address(options.master_bind_host, options.master_bind_port)
        _say(options, f"waits for workers at {where}; everybody who can reach that port can join")
    elif options.worker:
        where = put_address(options.master_host, options.master_port)
        _say(options, f"connects to its master at {where}")
        find_host("--master-host", options.master_host)


def _check_processes(count: int | None) -> None:
    """Refuse counts that Locust takes for one process, or ends at without a word of ours."""
    if count is not None and count < 1 and count != EACH_CPU:
        message = f"--processes must be at least 1, or {EACH_CPU} for one for each CPU, got {count}"
        raise ReplayerError(message, hint="leave it out for one process")


_said: set[str] = set()
"""What was said: the options are parsed again for each view of Locust's page."""
_tried: set[tuple[str, int]] = set()
"""Where it was tried to listen; the second time it is this process that does."""


def _try_once(host: str, port: int) -> None:
    if (host, port) not in _tried:
        _tried.add((host, port))
        try_address("--master-bind-port", host, port)


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet and text not in _said:
        _said.add(text)
        sys.stderr.write(f"replayer: {text}\n")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        port: int = found.getsockname()[1]
        return port


def _read_seconds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3600:  # noqa: PLR2004 - chosen: an hour
        message = f"must be a whole number of seconds from 1 to 3600, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


LOCUSTS_PORT = 5557
DEFAULTS: dict[str, object] = {
    "pace": "closed",
    "results": "screen",
    "on_lost_worker": "fail",
    "threshold": [],
    "changes": [],
    "reuse": [],
    "offer": [],
    "expect_workers": 1,
    "worker_timeout": DEFAULT_TIMEOUT_S,
    "master_host": LOOPBACK,
    "master_port": LOCUSTS_PORT,
    "master_bind_host": EVERYWHERE,
    "master_bind_port": LOCUSTS_PORT,
}
"""What argparse fills in where that is something."""
NOTHING = (None, False, "")
REPLAYS = ("check_order", "event_log", "pace", "speed", "rate", "loops", "requests")
CHANGES = ("changes",)
DECIDING = ("precision", "budget")
DUET = ("duet",)
ORDER = ("check_order", "event_log")
MASTERS = (
    *("threshold", "results", "report_html", "junit", "csv_prefix", "metrics"),
    *("on_lost_worker", "expect_workers", "json", "json_file", "html_file", "spawn_rate"),
    *DECIDING,
)
"""Options of Locust's are among them: a worker has figures of its own part alone."""
WORKERS = ("remount_command", "reuse")
FOUND = ("master_host", "master_port")
LISTENING = ("master_bind_host", "master_bind_port")
"""Where a worker looks for its master, and where a master waits for its workers."""
SEVERAL = (
    *("on_lost_worker", "worker_timeout", "expect_workers", "expect_workers_max_wait"),
    *(*FOUND, *LISTENING),
)
PAGES = ("offer", "web_secret_file")
NAMES = {
    "csv_prefix": "csv",
    "html_file": "html",
    "results": "json (--results)",
    "changes": "set (--verify)",
}


def refuse_idle_options(options: argparse.Namespace) -> None:
    """Refuse the first option that this process would not heed.

    Raises:
        ReplayerError: Names it, and where it belongs.
    """
    for names, message, hint in _idle(options):
        given = next((name for name in names if _is_given(options, name)), None)
        if given is not None:
            text = f"--{NAMES.get(given, given.replace('_', '-'))} {message}"
            raise ReplayerError(text, hint=hint)


def _idle(options: argparse.Namespace) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield options that do nothing here, why, and what to do."""
    yield from _idle_by_work(options)
    yield from _idle_by_role(options)
    if options.processes or not options.master:
        hint = "add --master, or leave it out; --processes end with their master"
        yield ("keep_workers",), "needs a master with workers of other machines", hint
    if not _is_page(options):
        yield PAGES, "needs the web page, and none is served", "add --web, or leave it out"


def _is_page(options: argparse.Namespace) -> bool:
    return not options.headless and not options.worker


def _idle_by_work(options: argparse.Namespace) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield those of what is not run."""
    page = _is_page(options)
    if page:
        yield (
            ("trace", *REPLAYS),
            "is not for the web page",
            "start replays on its Traces page",
        )
        yield DECIDING, "is not for the web page", "its runs have a fixed length"
        yield ("neighbour",), "is not for the web page", "use it with replayer run"
        yield DUET, "is not for the web page", "use it on the command line"
        yield ("keep_workers",), "has no effect with the web page", "its workers stay anyway"
    elif options.trace is None:
        yield REPLAYS, "needs a trace, and none is replayed", "add --trace, or leave it out"
    if not page and not options.worker and options.scenario is None:
        hint = "add --scenario, or leave it out"
        yield CHANGES, "needs a scenario, and none is run", hint


def _idle_by_role(options: argparse.Namespace) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield those of other roles."""
    if not (options.processes or options.master or options.worker):
        hint = "add --processes or --master, or leave it out"
        yield SEVERAL, "needs several processes, and this is one", hint
    else:
        yield (
            ORDER,
            "needs one process: the order of events across processes is not known",
            "replay it without --processes, --master and --worker",
        )
        yield (
            DUET,
            "needs one process: the targets are measured at the same moment",
            "leave out --processes, --master and --worker",
        )
    if options.processes and not options.worker:
        yield (
            ("expect_workers",),
            "has no effect with --processes",
            "the master waits for all of them",
        )
        if not _is_given(options, "master_bind_host"):
            hint = "add --master-bind-host to accept workers of other machines, or leave it out"
            message = "has no effect with --processes: master and workers connect by themselves"
            yield (*FOUND, *LISTENING), message, hint
    if (options.master or options.worker) and not options.processes:
        hint = "use --processes, or run replayer beside it on another machine"
        yield ("neighbour",), "needs the targets on this machine", hint
    if options.master:
        yield (
            FOUND,
            "has no effect on a master",
            "it listens at --master-bind-host and --master-bind-port",
        )
        yield WORKERS, "has no effect on a master: it uses no target", "give it to the workers"
    if options.worker:
        yield (
            LISTENING,
            "has no effect on a worker",
            "its master is at --master-host and --master-port",
        )
    if options.worker and not options.processes:
        yield (
            MASTERS,
            "has no effect on a worker: it has only a part of the run",
            "give it to the master",
        )


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return value not in NOTHING and value != DEFAULTS.get(name)
