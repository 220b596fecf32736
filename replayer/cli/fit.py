"""``replayer fit TRACE --target DIR``: pauses that make a replay as long as the command was."""

import argparse
import json
import signal
from dataclasses import asdict
from pathlib import Path

from replayer.capture.progress import say
from replayer.measure.units import format_time_ns
from replayer.run.fitting import FitOrder, fit_pauses
from replayer.run.options import read_rounds
from replayer.trace.facts import load_facts

EXPLANATION = """\
A recording has the times of file calls and the CPU time between them.
It does not have the time that other calls take without the tracer.

This command replays the trace with shorter and longer pauses, on the
file system of the recording. It stops when 'replay --pace closed'
takes as long as the command did in its rehearsals, and stores these
pauses in the trace. Replays on other targets have the same pauses;
only the file calls take another time.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXPLANATION
    parser.add_argument("trace", metavar="TRACE", help="a trace's folder")
    parser.add_argument(
        "--target",
        type=Path,
        required=True,
        metavar="DIR",
        help="a folder on the file system where the command was recorded",
    )
    parser.add_argument(
        "--rounds",
        type=read_rounds,
        default=7,
        metavar="N",
        help="number of replays per setting; the median counts (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> int:
    """Fit, and say how well."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # copies are removed then, too
    trace = load_facts(arguments.trace, Path())
    tell = _ignore if arguments.quiet else say
    fit = fit_pauses(FitOrder(trace, arguments.target, arguments.rounds, tell))
    if arguments.json:
        print(json.dumps(asdict(fit), indent=2))
        return 0
    wanted_ns = trace.untraced_ns or fit.closed_ns
    print(
        f"{arguments.trace}: pauses are now {fit.pauses_percent} % of the recorded ones. On "
        f"{fit.filesystem} a closed replay takes {format_time_ns(fit.closed_ns)} "
        f"({fit.closed_ns / wanted_ns:.2f} of the command's {format_time_ns(wanted_ns)}). Without "
        f"pauses it takes {format_time_ns(fit.asap_ns)} (medians of {fit.rounds})."
    )
    return 0


def _ignore(_: str) -> None:
    """Say nothing."""
