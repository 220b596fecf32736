"""``replayer schema``: the JSON Schemas of scenario files, run documents and comparisons."""

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "kind",
        metavar="KIND",
        choices=("scenario", "run", "comparison"),
        help="which schema to print: scenario, run or comparison",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema as JSON."""
    if arguments.kind == "scenario":
        from replayer.scenario.json_schema import scenario_schema as schema  # noqa: PLC0415
    elif arguments.kind == "comparison":
        from replayer.report.json_form import comparison_schema as schema  # noqa: PLC0415
    else:
        from replayer.report.json_form import run_schema as schema  # noqa: PLC0415
    print(json.dumps(schema(), indent=2, sort_keys=False))
    return 0
