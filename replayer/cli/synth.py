"""``replayer synth``: a scenario of the requests in a trace."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError
from replayer.measure.units import format_bytes, format_count, format_many
from replayer.report.style import Style, fold
from replayer.synth.requests import read_traffic
from replayer.synth.scenario import Synthesis, synthesize
from replayer.trace.errors import TraceError
from replayer.trace.shipped import find_trace

ENDINGS = (".yaml", ".yml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("trace", metavar="TRACE", help="trace folder with requests")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="scenario to create (.yaml); a folder of its name beside it holds its tables",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Write the scenario, and say what is in it."""
    output = arguments.output
    if output.suffix not in ENDINGS:
        message = f"-o must end in {' or '.join(ENDINGS)}, got {output}"
        raise ReplayerError(message, hint="for example -o mine.yaml")
    if output.exists():
        raise ReplayerError(f"{output} exists", hint="choose another name with -o")
    folder = find_trace(arguments.trace, Path.cwd())
    traffic = read_traffic(folder)
    if not traffic.requests:
        message = f"{arguments.trace}: has no requests that could become transactions"
        raise TraceError(message, hint="replay it as a whole: replayer replay TRACE")
    place = os.path.relpath(folder, output.parent) if Path(arguments.trace).exists() else None
    found = synthesize(traffic, _name(output), place or arguments.trace, output.stem)
    _write(found, output)
    sizes = {name: len(text.encode()) for name, text in found.files.items()}
    size = len(found.text.encode()) + sum(sizes.values())
    if arguments.json:
        print(json.dumps(_described(found, size), indent=2))
        return 0
    print("\n".join(fold([*_told(found, output, size)], Style.of(sys.stdout))))
    return 0


def _name(output: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", output.stem.lower()).strip("-")[:48].strip("-") or "mine"


def _write(found: Synthesis, output: Path) -> None:
    beside = output.parent / output.stem
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        for name, text in found.files.items():
            (output.parent / name).write_text(text)
        with output.open("x") as file:
            file.write(found.text)
    except OSError as error:
        message = f"{error.filename}: cannot be created: {error.strerror}"
        failed = ReplayerError(message, hint="choose another name with -o")
        failed.exit_code = EXIT_ENVIRONMENT
        raise failed from error


def _described(found: Synthesis, size: int) -> dict[str, object]:
    return {
        "bytes": size,
        "transactions": [
            {
                "name": group.name,
                "label": group.label,
                "requests": group.requests,
                "ways": [
                    {"requests": count, "calls": sum(visit.calls for visit in visits)}
                    for count, visits, _ in group.ways
                ],
                "replayed_for": sorted(group.changes),
            }
            for group in found.groups
        ],
        "left_out": dict(found.left_out),
    }


def _told(found: Synthesis, output: Path, size: int) -> Iterator[str]:
    yield f"{output}: {format_many(len(found.groups), 'transaction')}, {format_bytes(size)} in all"
    for group in found.groups:
        many = format_many(group.requests, "request")
        if group.changes:
            why = ", ".join(sorted(group.changes))
            yield f"  {group.name}: {many}, replayed as recorded ({why})"
        else:
            calls = [sum(visit.calls for visit in visits) for _, visits, _ in group.ways]
            span = f"{min(calls)} to {max(calls)}" if min(calls) < max(calls) else f"{calls[0]}"
            yield f"  {group.name}: {many}, {format_many(len(calls), 'way')} of {span} calls"
    if found.left_out:
        ordered = sorted(found.left_out.items(), key=lambda item: -item[1])
        told = ", ".join(f"{format_count(count)} {op}" for op, count in ordered)
        yield f"left out, as scenarios have no word for them: {told}"
