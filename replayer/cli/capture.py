"""``replayer capture``: record a command, or running processes, as a trace."""

import argparse
import re
from pathlib import Path

from pydantic_core import PydanticCustomError

from replayer.capture.flow import capture
from replayer.capture.order import (
    LIMIT_BYTES,
    Attach,
    CaptureOrder,
    RawLog,
    RecordedCommand,
    Verbosity,
)
from replayer.errors import ReplayerError
from replayer.scenario.units import read_size

_PID = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
MOST_REHEARSALS = 10_000  # chosen: more tell nothing more
NAME = "capture"
HELP = "record what a command (or running processes) does with files, as a trace"

EXPLANATION = """\
The files below the roots are listed, the command runs under strace, and the
recording becomes the folder TRACE. The command's input, output and exit
status are its own; Ctrl-C reaches it as ever, and what was recorded until
then is kept.

what it costs
  Each recorded call (those that take a file name or a descriptor, and those
  that start or end processes) takes 10 to 30 microseconds longer, more where
  all CPUs are busy; all other calls run at full speed. Programs that do
  nothing but file calls on a fast local disk run 5 to 30 times as long, those
  that wait for a mount or compute hardly longer. What strace costs on this
  machine is measured first, in a tenth of a second, and taken off when the
  trace is made. The log takes about 110 bytes a call beside TRACE until it is
  compiled; where TRACE lies in a root, beside the root. With -p, all calls of
  the processes are stopped, the recorded ones or not, until Ctrl-C.

how true its pauses are
  What strace adds between two calls varies by more than most programs compute
  there. A replay at the recorded pace (closed) takes as long as the command
  did only if that is known from elsewhere: --rehearse 20 runs the command
  without strace first, 20 times, and as much is left of all pauses as it had
  CPU time then. So the command must find the same state each time: --prepare
  makes it. If it worked on one CPU at a time, it is recorded on one, where
  strace disturbs it least. 'replayer fit' then makes the whole as long as the
  command was, by replays where it ran.

what it does not see
  Files that are read or written through mmap, io_uring or libaio: a trace
  says so. No data is kept, only names, sizes and results. With -p and
  --keep-raw, the raw log holds the first 256 bytes of what was read and
  written.

examples
  replayer capture -o untar -- tar xf linux.tar     refused: which files?
  replayer capture -o untar --root linux -- tar xf linux.tar
  replayer capture -o copy --root site --rehearse 20 \\
    --prepare 'rm -rf site/new' -- cp -a site/old site/new
  replayer capture -o shop --root /srv/www -p "$(pgrep -o php-fpm)"
  replayer capture -o all --root /srv/www -p "$(pgrep -d, -x 'nginx|php-fpm')"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXPLANATION
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="TRACE", help="folder to make"
    )
    parser.add_argument(
        "--root",
        dest="roots",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="directory whose files are the trace; repeatable",
    )
    parser.add_argument(
        "-p",
        "--pid",
        dest="pids",
        action="extend",
        type=_parse_pids,
        default=[],
        metavar="PID",
        help="record this process and its children; repeatable, or PID,PID… : all in one trace",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave names (or, with a slash, paths below a root) out of the list of files; their "
        "calls are recorded all the same; repeatable",
    )
    parser.add_argument(
        "--keep-raw", action="store_true", help="keep strace's log and the list in TRACE/raw"
    )
    parser.add_argument(
        "--limit",
        type=_parse_limit,
        default=LIMIT_BYTES,
        metavar="SIZE",
        help="disk space for the log: what comes after is not recorded (default: 20 GB)",
    )
    parser.add_argument(
        "--note",
        default="",
        metavar="TEXT",
        help="description of the trace, instead of the command line",
    )
    _add_rehearsals(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="what to run, behind --")


def _add_rehearsals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rehearse",
        type=_parse_times,
        default=0,
        metavar="TIMES",
        help="first run the command TIMES times without strace, to learn how long it takes and "
        "computes by itself (it gets no input, and its output is not shown)",
    )
    parser.add_argument(
        "--prepare",
        metavar="COMMAND",
        help="with --rehearse: shell command to run before each time and before the recording; "
        "then the roots' file systems write out what is in memory (sync -f)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Record it and return its exit status."""
    order = CaptureOrder(
        target=arguments.output,
        roots=tuple(arguments.roots),
        what=_what(arguments),
        exclude=tuple(arguments.exclude),
        raw=RawLog.KEEP if arguments.keep_raw else RawLog.DROP,
        limit_bytes=arguments.limit,
        verbosity=Verbosity.QUIET if arguments.quiet else Verbosity.PROGRESS,
        note=arguments.note,
    )
    return capture(order)


def _parse_times(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_REHEARSALS:
        return int(text)
    message = f"'{text}' must be a number of times from 1 to {MOST_REHEARSALS:,}"
    raise argparse.ArgumentTypeError(message)


def _parse_pids(text: str) -> list[int]:
    """Parse numbers of processes, with commas, blanks or ends of lines between."""
    words = re.split(r"[,\s]+", text.strip())
    if all(_PID.fullmatch(word) for word in words):
        return [int(word) for word in words]
    message = f"'{text}' must be the number of a process, or several with commas between"
    raise argparse.ArgumentTypeError(message)


def _parse_limit(text: str) -> int:
    try:
        return read_size(text)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _what(arguments: argparse.Namespace) -> RecordedCommand | Attach:
    if bool(arguments.words) == bool(arguments.pids):
        raise ReplayerError(
            "a capture needs either a command behind -- or -p PID",
            hint="such as: replayer capture -o trace --root site -- tar xf site.tar",
        )
    if arguments.rehearse and arguments.pids:
        raise ReplayerError(
            "--rehearse runs a command again and again, and -p has none",
            hint="leave it out, or give the command behind --",
        )
    if arguments.prepare is not None and not arguments.rehearse:
        raise ReplayerError(
            "--prepare has nothing to do without --rehearse",
            hint="such as: --rehearse 20 --prepare 'rm -rf copy && mkdir copy'",
        )
    if arguments.words:
        return RecordedCommand(tuple(arguments.words), arguments.rehearse, arguments.prepare)
    return Attach(tuple(dict.fromkeys(arguments.pids)))
