"""``replayer share``: a trace that can be given away."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from replayer.measure.units import format_count, format_many
from replayer.report.style import Style, fold
from replayer.scenario.loading import load_known
from replayer.trace.errors import TraceError
from replayer.trace.naming import Directory, read_known
from replayer.trace.sharing import Shared, load_key, make_key, share_trace
from replayer.trace.shipped import find_trace

KNOWN = {"wordpress": "wordpress-6.1.9", "linux": "linux-6.1-subtree"}
"""What everybody knows, and the list of its files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("trace", metavar="TRACE", help="trace folder to make it from")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="TRACE", help="trace folder to create"
    )
    parser.add_argument(
        "--keep-known",
        action="append",
        choices=sorted(KNOWN),
        default=[],
        help="keep the names of files that everybody has; repeatable",
    )
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        help="draw the names from this key again (default: a new key that is forgotten)",
    )
    keys.add_argument("--new-key", type=Path, metavar="FILE", help="keep the new key in a new file")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Write the trace, and say what was changed."""
    folder = find_trace(arguments.trace, Path.cwd())
    if arguments.output.exists():
        raise TraceError(f"{arguments.output} exists", hint="choose another name with -o")
    key = make_key(arguments.new_key) if arguments.key is None else load_key(arguments.key)
    shared = share_trace(folder, arguments.output, key, [*_known(arguments.keep_known)])
    if arguments.json:
        told = {"names": shared.names, "kept": shared.kept, "unordered": shared.unordered}
        print(json.dumps({**shared.document, "shared": told}, indent=2))
        return 0
    lines = [*_told(shared, arguments.output)]
    print("\n".join(fold(lines, Style.of(sys.stdout))))
    return 0


def _known(names: list[str]) -> Iterator[Directory]:
    for name in dict.fromkeys(names):
        yield read_known(entry.path for entry in load_known(KNOWN[name]))


def _told(shared: Shared, output: Path) -> Iterator[str]:
    changed = shared.names - shared.kept
    yield (
        f"{output}: {format_many(changed, 'name')} changed, {format_count(shared.kept)} kept; "
        "owners, times and the names of requests are others, too"
    )
    if shared.unordered:
        yield f"{format_many(shared.unordered, 'name')} have another place among those that stay"
    yield (
        "still there: calls, sizes, results, the time between calls, how long names are (to 4 "
        "bytes), common endings, and how files lie in folders"
    )
