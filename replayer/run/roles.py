"""Which options go with which role of a process: what would change nothing is refused.

A process plays a run by itself, leads workers, is a worker, or serves the page. Called once the
command line is parsed, before anything forks, connects or listens; pure.
"""

import argparse
from collections.abc import Iterator, Sequence

from replayer.errors import ReplayerError
from replayer.run.cluster_options import DEFAULT_TIMEOUT_S, EVERYWHERE
from replayer.run.web_options import LOOPBACK

__all__ = ["refuse_idle_options"]

LOCUSTS_PORT = 5557
DEFAULTS: dict[str, object] = {
    "pace": "closed",
    "results": "tables",
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
ORDER = ("check_order", "event_log")
MASTERS = (
    *("threshold", "results", "report_html", "junit", "csv_prefix", "metrics"),
    *("on_lost_worker", "expect_workers", "json", "json_file", "html_file", "spawn_rate"),
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
    if not _is_page(options):
        yield PAGES, "is about the web page, and none is served", "add --web, or leave it out"


def _is_page(options: argparse.Namespace) -> bool:
    return not options.headless and not options.worker


def _idle_by_work(options: argparse.Namespace) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield those of what is not run."""
    page = _is_page(options)
    if page:
        yield (
            ("trace", *REPLAYS),
            "does not go with the web page",
            "its Traces page starts replays",
        )
    elif options.trace is None:
        yield REPLAYS, "is about a trace, and none is replayed", "add --trace, or leave it out"
    if not page and not options.worker and options.scenario is None:
        hint = "add --scenario, or leave it out"
        yield CHANGES, "is about a scenario, and none is run", hint


def _idle_by_role(options: argparse.Namespace) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield those of other roles."""
    if not (options.processes or options.master or options.worker):
        hint = "add --processes or --master, or leave it out"
        yield SEVERAL, "is about several processes, and this is one", hint
    else:
        yield (
            ORDER,
            "needs one process: the order of events is not known across several",
            "replay it without --processes, --master and --worker",
        )
    if options.processes and not options.worker:
        yield ("expect_workers",), "does nothing beside --processes", "all of them are waited for"
        if not _is_given(options, "master_bind_host"):
            hint = "add --master-bind-host to let workers of other machines in, or leave it out"
            message = "does nothing beside --processes, which meet by themselves"
            yield (*FOUND, *LISTENING), message, hint
    if options.master:
        yield FOUND, "does nothing on a master", "it listens at --master-bind-host and -port"
        yield WORKERS, "does nothing on a master: it touches no target", "say it to the workers"
    if options.worker:
        yield LISTENING, "does nothing on a worker", "its master is at --master-host and -port"
    if options.worker and not options.processes:
        yield MASTERS, "does nothing on a worker: it has a part alone", "say it to the master"


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return value not in NOTHING and value != DEFAULTS.get(name)
