"""``replayer doctor PATH…``: how a mount is mounted, what that means, and how it feels."""

import argparse
import json
import sys
from pathlib import Path

from replayer.doctor.examination import Examination, examine, render_examination
from replayer.doctor.probe import Probe, run_probe
from replayer.errors import EXIT_ENVIRONMENT, ReplayerError, in_lines
from replayer.report.style import Style
from replayer.run.interruption import Interruption, Level

PROBE_S = 8.0  # chosen: with making and removing its files about ten seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder on a mount")
    parser.add_argument(
        "--no-probe",
        dest="probe_s",
        action="store_const",
        const=None,
        default=PROBE_S,
        help="inspect the options only; write nothing",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Examine the paths one after another; one that cannot be examined keeps no other from it.

    What cannot be probed, such as a mount for reading, is told of all the same.
    """
    found: list[Examination] = []
    codes: list[int] = []
    interruption = Interruption()
    interruption.watch()
    for path in arguments.paths:
        try:
            found.append(examine(path, interruption))
            if arguments.probe_s is not None:
                probe = _probed(path, arguments.probe_s, interruption)
                found[-1] = found[-1].model_copy(update={"probe": probe})
                codes.append(EXIT_ENVIRONMENT if _has_failed(probe) else 0)
        except ReplayerError as error:
            print(in_lines(error), file=sys.stderr, flush=True)
            codes.append(error.exit_code)
        if interruption.level > Level.NONE:
            break
    interruption.unwatch()
    if arguments.json:
        print(json.dumps([item.model_dump(mode="json") for item in found], indent=2))
    else:
        style = Style.of(sys.stdout)
        print("\n".join(render_examination(item, style) for item in found), end="")
    return max(codes, default=0)


def _probed(path: Path, seconds: float, interruption: Interruption) -> Probe:
    if sys.stderr.isatty():
        print(f"probing {path} for {seconds:g} s …", file=sys.stderr)
    return run_probe(path, interruption, seconds)


def _has_failed(probe: Probe) -> bool:
    """Whether the mount refused calls of the probe, or answered none in time."""
    return not probe.ops or bool(probe.hung) or any(op.errors for op in probe.ops)
