"""``replayer scenarios``: what can be run without writing anything."""

import argparse
import json
import sys

from replayer.measure.units import format_time_ns
from replayer.report.style import Style, fold
from replayer.scenario.loading import load_scenario
from replayer.scenario.model import Scenario
from replayer.scenario.shipped import shipped_scenarios


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """List the shipped scenarios."""
    loaded = {name: load_scenario(path) for name, path in shipped_scenarios().items()}
    if arguments.json:
        print(json.dumps([_describe(name, found) for name, found in loaded.items()], indent=2))
        return 0
    width = max((len(name) for name in loaded), default=0)
    ends = {name: show_end(scenario) for name, scenario in loaded.items()}
    wide = max(map(len, ("runs for", *ends.values())))
    lines = [f"{'scenario':<{width}}  users  {'runs for':<{wide}}  about"]
    for name, scenario in loaded.items():
        about = first_sentence(scenario.about)
        lines.append(f"{name:<{width}}  {scenario.users.count:>5}  {ends[name]:<{wide}}  {about}")
    print("\n".join(fold(lines, Style.of(sys.stdout), width + 2)))
    print("\nreplayer run NAME --target PATH   replayer check NAME", file=sys.stderr)
    return 0


def show_end(scenario: Scenario) -> str:
    """Return what ends a run: its duration, the transactions of each user, or what comes first."""
    if scenario.duration_ns is None:
        return f"{scenario.iterations} each"
    longest = format_time_ns(scenario.duration_ns)
    return longest if scenario.iterations is None else f"{scenario.iterations} each, max {longest}"


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    for mark in (": ", ". "):
        text = text.split(mark, 1)[0]
    return text.strip().rstrip(".") + "."


def _describe(name: str, scenario: Scenario) -> dict[str, object]:
    return {
        "name": name,
        "about": scenario.about,
        "users": scenario.users.count,
        "duration_ns": scenario.duration_ns,
        "transactions_per_user": scenario.iterations,
        "transactions": list(scenario.transactions),
        "assumptions": list(scenario.assumptions),
    }
