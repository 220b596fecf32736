"""``replayer baseline``: what targets can do at the most, measured with fio."""

import argparse
import math
import re
from pathlib import Path

from pydantic_core import PydanticCustomError

from replayer.fio.baseline import run_baseline
from replayer.fio.jobs import DEFAULT_JOBS, shipped_jobs
from replayer.fio.run_record import BaselineOrder, Size
from replayer.run.options import (
    DEFAULT_STOP_TIMEOUT_S,
    add_junit_option,
    add_mount_option,
    add_printed_options,
    add_yes_option,
    may_ask,
    read_report_files,
    read_rounds,
    read_seed,
)
from replayer.scenario.units import read_duration, read_size

EXPLANATION = """\
JOB is a shipped job, or a job file of your own (.fio). Every option of
a file is checked first. An option that could lead outside the target
is refused with file and line. Files are made in a folder of the run on
the target and removed at the end.

shipped jobs
"""

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXPLANATION + "\n".join(f"  {name}" for name in shipped_jobs())
    parser.add_argument(
        "jobs", nargs="*", metavar="JOB", help=f"jobs to run (default: {' '.join(DEFAULT_JOBS)})"
    )
    _add_places(parser)
    parser.add_argument(
        "--size",
        type=_parse_size,
        metavar="SIZE",
        help="file size of each process, such as 100MiB; or, for all processes together, a share "
        "of the free space of the fullest target, such as 5%%",
    )
    parser.add_argument(
        "--runtime",
        type=_parse_time,
        metavar="TIME",
        help="run time of each job per target and round, such as 10s; jobs repeat their files "
        "until then. Jobs with verify= may end earlier",
    )
    parser.add_argument(
        "-s",
        "--stop-timeout",
        type=_parse_stop_timeout,
        metavar="TIME",
        default=float(DEFAULT_STOP_TIMEOUT_S),
        help=f"time for fio to finish when it must end (default: {DEFAULT_STOP_TIMEOUT_S} s). Then "
        "it is killed; if it hangs, it is abandoned 5 s later",
    )
    parser.add_argument(
        "--rounds",
        type=read_rounds,
        metavar="N",
        help="turns of each target, interleaved (default: 1 for one target, 3 for several)",
    )
    parser.add_argument(
        "--seed", type=read_seed, default=1, metavar="N", help="seed of random offsets"
    )
    _add_results(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the jobs and return the exit code."""
    return run_baseline(
        BaselineOrder(
            jobs=tuple(arguments.jobs),
            targets=tuple(arguments.target),
            devices=tuple(arguments.device),
            expendable=tuple(arguments.expendable),
            size=arguments.size,
            runtime_s=arguments.runtime,
            stop_timeout_s=arguments.stop_timeout,
            rounds=arguments.rounds,
            seed=arguments.seed,
            output=arguments.output,
            thresholds=tuple(arguments.threshold),
            results=arguments.results,
            files=read_report_files(arguments),
            quiet=arguments.quiet,
            asks=may_ask(arguments),
        )
    )


def _add_places(parser: argparse.ArgumentParser) -> None:
    add_mount_option(parser)
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="[NAME=]DEVICE",
        help="a block device to measure, read only; repeatable",
    )
    parser.add_argument(
        "--i-will-lose-the-data",
        dest="expendable",
        action="append",
        default=[],
        metavar="DEVICE",
        help="let jobs overwrite this device; write it exactly as in --device; a device in use is "
        "always refused",
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the run's records (default: new, in ./replayer-runs)",
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="LIMIT",
        help="a limit to judge, such as 'cache/read.p95 < 5ms' or "
        "'cache.rate > 1000/s'; repeatable",
    )
    add_printed_options(parser.add_mutually_exclusive_group())
    parser.add_argument(
        "--html",
        dest="report_html",
        metavar="FILE",
        help="write the report as one HTML page with charts to a new file",
    )
    add_junit_option(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_yes_option(parser)


def _parse_size(text: str) -> Size:
    share = _SHARE.fullmatch(text)
    if share is not None:
        value = float(share[1]) / 100
        if not 0 < value <= 1:
            message = f"must be a share above 0% and at most 100%, got {text}"
            raise argparse.ArgumentTypeError(message)
        return Size(None, value)
    try:
        size_bytes = read_size(text)
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size_bytes < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1B, got {text}")
    return Size(size_bytes, None)


def _parse_time(text: str) -> float:
    seconds = _parse_seconds(text)
    if not 1 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be at least 1s, got {text}")
    return seconds


def _parse_stop_timeout(text: str) -> float:
    return _parse_seconds(f"{text}s" if text.isdecimal() else text)


def _parse_seconds(text: str) -> float:
    try:
        return read_duration(text) / 1e9
    except PydanticCustomError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
