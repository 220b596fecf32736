"""``replayer capture``: record a command, or running processes, as a trace."""

import argparse
import re
from pathlib import Path

from pydantic_core import PydanticCustomError

from replayer.capture.dump_door import ask_for_dump
from replayer.capture.flow import capture
from replayer.capture.order import (
    LIMIT_BYTES,
    Attach,
    CallLimit,
    CaptureOrder,
    FlightOrder,
    RawLog,
    RecordedCommand,
    RecorderChoice,
    Verbosity,
)
from replayer.capture.processes import group_of_unit, processes_of_group
from replayer.errors import ReplayerError
from replayer.scenario.units import read_duration, read_size

_PID = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_WHEN = re.compile(r"\s*([a-z0-9_]+)\s*>\s*(.+)", re.ASCII)
RING_BYTES = 256 * 10**6  # chosen: about 3 million calls
MOST_REHEARSALS = 10_000  # chosen: more tell nothing more

EXPLANATION = """\
replayer lists the files below the roots, then runs the command and
records its file calls. The command keeps its input, output and exit
status. Ctrl-C interrupts it as usual, and the recording until then is
kept. TRACE/capture.json says which recorder made the trace. Where a
mount hangs, a second Ctrl-C ends replayer within 2 seconds.

two recorders
  eBPF is taken where it can be used. The kernel tells of each
  call, and no program is stopped. It needs Linux 5.14 with BTF on
  an x86-64, and CAP_BPF and CAP_PERFMON (root has them), and in a
  container the PID namespace of the machine. A recorded call
  takes 0.5 to 1 microsecond longer, a call of any other program
  0.1 to 0.3. Pauses are as they were, so --rehearse and 'replayer
  fit' are not needed. A call that finds no room in the ring is
  counted, and the trace ends before it. If replayer is killed,
  the recording ends and the recorded programs go on.

  strace is taken otherwise, and one line says why and what eBPF
  needs. It works for any user and kernel. With --rehearse it is
  taken, too. --recorder ebpf or --recorder strace takes that one,
  or fails.

what strace costs
  Each recorded call takes 10 to 30 microseconds longer, and more when
  all CPUs are busy. Calls with a file name or a descriptor are
  recorded, and starts and ends of processes. All other calls run at
  full speed. With -p, strace stops all calls of the processes,
  recorded or not, until Ctrl-C.

  A program that makes only file calls on a fast local disk runs 5 to
  30 times as long. A program that computes or waits for a mount runs
  hardly longer. The overhead of strace on this machine is measured
  first, in 0.1 s, and subtracted from the trace.

disk space
  The log takes about 110 bytes a call until it is compiled. It is
  beside TRACE, or beside the root if TRACE is in a root.

accuracy of strace's pauses
  The overhead of strace between two calls varies by more than most
  programs compute there. --rehearse 20 first runs the command 20 times
  without strace, and reduces the pauses to the CPU time of these runs.
  The command must find the same state each time: --prepare restores
  it.

  A command that uses one CPU at a time is recorded on one CPU, where
  strace disturbs it least. After that, 'replayer fit' adjusts the
  pauses by replays on the same file system.

flight recorder
  --ring 5m records running processes with eBPF until Ctrl-C, and
  keeps the last 5 minutes in memory: at most --limit (256 MB), and as
  much again while a trace is written. A trace is written by
  'replayer capture --dump', by kill -USR1, by --when, and at the end.
  The recording goes on, and later traces are TRACE-2, TRACE-3 and so
  on. Files that changed since the trace begins are known from calls
  alone. Calls that have not returned are listed in capture.json.

what it does not record
  Requests of io_uring and libaio with strace; with eBPF, those of
  io_uring before Linux 6.0, and those on files without a descriptor:
  the trace counts them as blind spots. Of mmap, eBPF records the
  pages that had to be mapped first (Linux 6.11 and later), and strace
  none. Contents of files: the trace has names, sizes and results
  only. With strace, -p and --keep-raw, the raw log has the first 256
  bytes of each read and write.

more examples
  replayer capture -o copy --root site --rehearse 20 \\
    --prepare 'rm -rf site/new' -- cp -a site/old site/new
  replayer capture -o shop --root /srv/www -p "$(pgrep -o php-fpm)"
  replayer capture -o all --root /srv/www \\
    -p "$(pgrep -d, -x 'nginx|php-fpm')"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXPLANATION
    parser.add_argument(
        "-o", "--output", type=Path, metavar="TRACE", help="trace folder to create (required)"
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
    _add_recorded(parser)
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave names (or, with a slash, paths below a root) out of the list of files; calls "
        "on them are still recorded; repeatable",
    )
    parser.add_argument(
        "--keep-raw", action="store_true", help="keep the recorder's log and the list in TRACE/raw"
    )
    parser.add_argument(
        "--limit",
        type=_parse_limit,
        metavar="SIZE",
        help="disk space for the log; later calls are not recorded (default: 20 GB); with --ring, "
        "memory for the calls that are kept (default: 256 MB)",
    )
    parser.add_argument(
        "--note",
        default="",
        metavar="TEXT",
        help="description of the trace, instead of the command line",
    )
    _add_flight(parser)
    _add_rehearsals(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="command to run, after --")


def _add_recorded(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p",
        "--pid",
        dest="pids",
        action="extend",
        type=_parse_pids,
        default=[],
        metavar="PID",
        help="record this process and its children; repeatable, or PID,PID: all are one trace",
    )
    parser.add_argument(
        "--recorder",
        choices=[choice.value for choice in RecorderChoice],
        default=RecorderChoice.AUTO.value,
        help="what records: eBPF, which stops no program; strace; or eBPF where it can be used and "
        "strace otherwise (default: %(default)s)",
    )
    parser.add_argument(
        "--cgroup",
        dest="cgroups",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="record all processes of this control group and their children; repeatable",
    )
    parser.add_argument(
        "--unit",
        dest="units",
        action="append",
        default=[],
        metavar="UNIT",
        help="the same of a systemd unit, such as nginx.service; repeatable",
    )


def _add_flight(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ring",
        type=_parse_duration,
        metavar="TIME",
        help="flight recorder: keep the calls of the last TIME (such as 5m) in memory, and write "
        "a trace on demand; needs -p, --cgroup or --unit, and eBPF",
    )
    parser.add_argument(
        "--when",
        type=_parse_when,
        metavar="'CALL > TIME'",
        help="with --ring: write a trace when such a call on a file of the roots takes longer "
        "('open > 2s', or 'any > 2s'); once per TIME of --ring, 10 times at most",
    )
    parser.add_argument(
        "--dump",
        nargs="?",
        type=_parse_process,
        const=0,
        metavar="PID",
        help="have the running flight recorder of this user (or process PID) write a trace, and "
        "print its name",
    )


def _add_rehearsals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rehearse",
        type=_parse_times,
        default=0,
        metavar="TIMES",
        help="record with strace, and first run the command TIMES times without it, to measure its "
        "elapsed and CPU time (without input; its output is not shown)",
    )
    parser.add_argument(
        "--prepare",
        metavar="COMMAND",
        help="with --rehearse: shell command to run before each run and before the recording; "
        "then the file systems of the roots are synced (sync -f)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Record it and return its exit status."""
    if arguments.dump is not None:
        print(ask_for_dump(arguments.dump or None))
        return 0
    if arguments.output is None:
        raise ReplayerError("-o TRACE is missing", hint="name the trace folder to create")
    order = CaptureOrder(
        target=arguments.output,
        roots=tuple(arguments.roots),
        what=_what(arguments),
        exclude=tuple(arguments.exclude),
        raw=RawLog.KEEP if arguments.keep_raw else RawLog.DROP,
        limit_bytes=arguments.limit or LIMIT_BYTES,
        verbosity=Verbosity.QUIET if arguments.quiet else Verbosity.PROGRESS,
        note=arguments.note,
        recorder=RecorderChoice(arguments.recorder),
        flight=_flight(arguments),
    )
    return capture(order)


def _flight(arguments: argparse.Namespace) -> FlightOrder | None:
    if arguments.ring is None:
        if arguments.when is not None:
            raise ReplayerError("--when has no effect without --ring", hint="such as: --ring 5m")
        return None
    if arguments.words:
        raise ReplayerError(
            "--ring records running processes, and not a command",
            hint="use -p PID, --cgroup DIR or --unit UNIT",
        )
    if arguments.recorder == RecorderChoice.STRACE.value:
        raise ReplayerError(
            "--ring needs eBPF: strace stops the processes at each call",
            hint="use --recorder ebpf",
        )
    return FlightOrder(arguments.ring, arguments.limit or RING_BYTES, arguments.when)


def _parse_duration(text: str) -> int:
    try:
        length_ns = read_duration(text)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if length_ns <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' must be more than 0")
    return length_ns


def _parse_when(text: str) -> CallLimit:
    found = _WHEN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' must be a call and a time, such as 'open > 2s'")
    return CallLimit(found[1], _parse_duration(found[2].strip()))


def _parse_process(text: str) -> int:
    if _PID.fullmatch(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' must be the number of a process")


def _parse_times(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_REHEARSALS:
        return int(text)
    message = f"'{text}' must be a number of runs from 1 to {MOST_REHEARSALS:,}"
    raise argparse.ArgumentTypeError(message)


def _parse_pids(text: str) -> list[int]:
    """Parse numbers of processes, with commas, blanks or ends of lines between."""
    words = re.split(r"[,\s]+", text.strip())
    if all(_PID.fullmatch(word) for word in words):
        return [int(word) for word in words]
    message = f"'{text}' must be the number of a process, or several separated by commas"
    raise argparse.ArgumentTypeError(message)


def _parse_limit(text: str) -> int:
    try:
        return read_size(text)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _what(arguments: argparse.Namespace) -> RecordedCommand | Attach:
    groups = [*arguments.cgroups, *map(group_of_unit, arguments.units)]
    pids = [*arguments.pids, *(pid for group in groups for pid in processes_of_group(group))]
    if bool(arguments.words) == bool(pids):
        raise ReplayerError(
            "a capture needs either a command after -- or -p PID",
            hint="such as: replayer capture -o trace --root site -- tar xf site.tar",
        )
    if arguments.rehearse and pids:
        raise ReplayerError(
            "--rehearse runs the command repeatedly, and -p has no command",
            hint="leave --rehearse out, or give the command after --",
        )
    if arguments.rehearse and arguments.recorder == RecorderChoice.EBPF.value:
        raise ReplayerError(
            "--rehearse corrects the pauses of strace, and those of eBPF need no correction",
            hint="leave --rehearse out, or record with --recorder strace",
        )
    if arguments.prepare is not None and not arguments.rehearse:
        raise ReplayerError(
            "--prepare has no effect without --rehearse",
            hint="such as: --rehearse 20 --prepare 'rm -rf copy && mkdir copy'",
        )
    if arguments.words:
        return RecordedCommand(tuple(arguments.words), arguments.rehearse, arguments.prepare)
    return Attach(tuple(dict.fromkeys(pids)))
