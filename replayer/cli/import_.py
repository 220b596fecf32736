"""``replayer import``: a log of file accesses becomes a trace folder."""

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from replayer.cli.show import render_trace
from replayer.report.style import Style, fold
from replayer.run.options import Parser
from replayer.trace.errors import TraceError
from replayer.trace.importing import (
    MARKER,
    ImportOptions,
    explain_empty,
    formats,
    import_trace,
    load_windows,
)
from replayer.trace.reading import count_trace

LARGEST_PROCESS = 2**31 - 1
"""Of ``pid_t``: no log names another."""
_MASK = re.compile("0?[0-7]{1,3}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="logs of one capture, plain or compressed (gz, xz, zst); several logs (strace -ff) "
        "are merged by time and need the stamps of -tt or -ttt",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="TRACE", help="trace folder to create"
    )
    parser.add_argument(
        "--root",
        dest="roots",
        action="append",
        type=Path,
        required=True,
        metavar="DIR",
        help="directory on the traced machine whose files are the trace; repeatable",
    )
    parser.add_argument(
        "--format",
        choices=sorted(formats()),
        help="format of the files (default: detected)",
    )
    _add_knowledge(parser)
    parser.add_argument("--strict", action="store_true", help="fail on lines that cannot be parsed")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _add_knowledge(parser: argparse.ArgumentParser) -> None:
    known = parser.add_argument_group("what the log does not contain")
    known.add_argument(
        "--tree",
        type=Path,
        metavar="FILE",
        help="files below the roots before the capture: tab-separated path, type, size, mode, "
        "link (capital type letters: names are escaped as in C)",
    )
    known.add_argument(
        "--keep",
        choices=("needed", "all"),
        default="needed",
        help="files of --tree to keep in the trace (default: those that events need)",
    )
    _add_processes(known)
    known.add_argument(
        "--requests",
        type=Path,
        metavar="FILE",
        help="times of requests: tab-separated start, end (seconds on the log's clock), label. "
        "Overlaps that need a guess, and requests without events, are counted as blind spots",
    )
    known.add_argument(
        "--marker",
        default=MARKER,
        metavar="PATH",
        help="path whose lookups mark requests: PATH/NAME starts request NAME, PATH/end ends it "
        "(default: %(default)s)",
    )
    known.add_argument(
        "--call-stretch-ns", type=int, metavar="N", help="time that the tracer added to each call"
    )
    known.add_argument(
        "--gap-stretch-ns", type=int, metavar="N", help="time that the tracer added between calls"
    )
    known.add_argument("--note", default="", metavar="TEXT", help="origin of the log")


def _add_processes(known: Parser) -> None:
    """Declare what is known of the processes: where they worked, and what they called the roots."""
    known.add_argument(
        "--cwd",
        dest="directories",
        action="append",
        default=[],
        metavar="[PID=]DIR",
        help="working directory at the start, of one process or of all; repeatable",
    )
    known.add_argument(
        "--umask",
        dest="umasks",
        action="append",
        default=[],
        metavar="[PID=]MASK",
        help="umask at the start, octal (default: 022), of one process or of all; repeatable",
    )
    known.add_argument(
        "--alias",
        dest="aliases",
        action="append",
        default=[],
        metavar="LINK=DIR",
        help="a symlink outside the roots that leads to the root DIR; repeatable",
    )
    known.add_argument(
        "--process-root",
        dest="process_roots",
        action="append",
        default=[],
        metavar="PID=DIR",
        help="root directory at the start, of a process that has another one; repeatable",
    )
    known.add_argument(
        "--mounts",
        action="append",
        default=[],
        metavar="PID=DIR",
        help="a process has other mounts: names of its files that the log shows are below DIR, a "
        "name that nothing else has; --alias says which of them lead to roots; repeatable",
    )
    known.add_argument(
        "--cover",
        dest="covers",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="a name below an --alias on which something else is mounted; repeatable",
    )


def run(arguments: argparse.Namespace) -> int:
    """Import, and say what came of it."""
    options = ImportOptions(
        roots=arguments.roots,
        aliases=[_parse_alias(text) for text in arguments.aliases],
        format=arguments.format,
        manifest=arguments.tree,
        directories=[_parse_directory(text) for text in arguments.directories],
        umasks=[_parse_umask(text) for text in arguments.umasks],
        process_roots=[_parse_place("--process-root", text) for text in arguments.process_roots],
        mounts=[_parse_place("--mounts", text) for text in arguments.mounts],
        covers=arguments.covers,
        windows=[] if arguments.requests is None else load_windows(arguments.requests),
        marker=arguments.marker,
        call_stretch_ns=arguments.call_stretch_ns,
        gap_stretch_ns=arguments.gap_stretch_ns,
        keep=arguments.keep,
        strict=arguments.strict,
        note=arguments.note,
    )
    progress = _Progress()
    trace = import_trace(arguments.files, arguments.output, options, progress.show)
    progress.end()
    _report(trace, arguments)
    if not trace["counts"]["events"]:
        message, hint = explain_empty(trace["counts"])
        raise TraceError(f"{arguments.output}: {message}", hint=hint)
    return 0


def _report(trace: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps(trace, indent=2))
        return
    pauses = count_trace(arguments.output, None).pauses
    lines = render_trace(trace, pauses, str(arguments.output))
    print("\n".join(fold(lines, Style.of(sys.stdout))))


def _parse_alias(text: str) -> tuple[Path, Path]:
    link, found, root = text.rpartition("=")
    if not (found and link.startswith("/") and root.startswith("/")):
        message = f"--alias must be LINK=DIR with absolute paths, got {text}"
        raise TraceError(message, hint="for example --alias /var/www/site=/srv/releases/7")
    return Path(link), Path(root)


def _parse_directory(text: str) -> tuple[int | None, Path]:
    task, found, directory = text.partition("=")
    if found and _is_process(task):
        return int(task), Path(directory)
    if not text.startswith("/"):
        message = f"--cwd must be DIR or PID=DIR with an absolute directory, got {text}"
        raise TraceError(message, hint="for example --cwd /srv/app or --cwd 4711=/srv/app")
    return None, Path(text)


def _parse_place(option: str, text: str) -> tuple[int, Path]:
    task, found, directory = text.partition("=")
    if not (found and _is_process(task) and directory.startswith("/")):
        message = f"{option} must be PID=DIR with an absolute directory, got {text}"
        raise TraceError(message, hint=f"for example {option} 4711=/srv/jail")
    return int(task), Path(directory)


def _parse_umask(text: str) -> tuple[int | None, int]:
    task, found, mask = text.rpartition("=")
    if (found and not _is_process(task)) or not _MASK.fullmatch(mask):
        message = f"--umask must be MASK or PID=MASK, 0 to 777 (octal), got {text}"
        raise TraceError(message, hint="for example --umask 027 or --umask 4711=002")
    return int(task) if found else None, int(mask, 8)


def _is_process(text: str) -> bool:
    return text.isdecimal() and int(text) <= LARGEST_PROCESS


class _Progress:
    """Lines so far, on a terminal only."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._shown = False

    def show(self, lines: int) -> None:
        if lines and sys.stderr.isatty():
            rate = lines / max(time.monotonic() - self._begin, 1e-9)
            print(f"\r{lines:,} lines, {rate:,.0f} a second", end="", file=sys.stderr)
            self._shown = True

    def end(self) -> None:
        if self._shown:
            print(file=sys.stderr)
