"""Which options go with which role of a process: what would change nothing is refused.

A process plays a run by itself, leads workers, is a worker, or serves the page. Called once the
command line is parsed, before anything forks, connects or listens; pure.
"""

import argparse
from collections.abc import Iterator, Sequence

from replayer.errors import ReplayerError

__all__ = ["refuse_idle_options"]

DEFAULTS: dict[str, object] = {
    "pace": "closed",
    "results": "tables",
    "on_lost_worker": "fail",
    "threshold": [],
    "reuse": [],
    "offer": [],
}
"""What argparse fills in where that is something."""
NOTHING = (None, False, "")
REPLAYS = ("check_order", "event_log", "pace", "speed", "rate", "loops", "requests")
ORDER = ("check_order", "event_log")
MASTERS = (
    *("threshold", "results", "report_html", "junit", "csv_prefix", "metrics"),
    *("on_lost_worker", "json", "json_file", "html_file"),
)
"""Options of Locust's are among them: a worker has figures of its own part alone."""
WORKERS = ("remount_command", "reuse")
PAGES = ("offer", "web_secret_file")
NAMES = {"csv_prefix": "csv", "html_file": "html", "results": "json (--results)"}


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
    page = not options.headless and not options.worker
    if page:
        yield (
            ("trace", *REPLAYS),
            "does not go with the web page",
            "its Traces page starts replays",
        )
    elif options.trace is None:
        yield REPLAYS, "is about a trace, and none is replayed", "add --trace, or leave it out"
    if options.processes or options.master or options.worker:
        yield (
            ORDER,
            "needs one process: the order of events is not known across several",
            "replay it without --processes, --master and --worker",
        )
    if options.master:
        yield WORKERS, "does nothing on a master: it touches no target", "say it to the workers"
    if options.worker and not options.processes:
        yield MASTERS, "does nothing on a worker: it has a part alone", "say it to the master"
    if not page:
        yield PAGES, "is about the web page, and none is served", "add --web, or leave it out"


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return value not in NOTHING and value != DEFAULTS.get(name)
