"""``replayer cost RUN --prices FILE``: what targets cost a month and a million page views."""

import argparse
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.measure.history import RUN_HELP, find_run
from replayer.measure.record import load_run
from replayer.measure.summarise import summarise
from replayer.report.cost import load_prices, render_costs, work_out

EXPLANATION = """\
No prices are built in: they change, and differ by region and contract.
Write yours into a file (these are placeholders):

  currency: USD
  stored_gb: 20
  views_per_month: 5000000   # default: the measured rate, all month long
  views: [front_page, single_post]   # transactions that are page views
  targets:
    efs: {per_gb_month: 0.30, per_gb_read: 0.03, per_gb_written: 0.06}
    zfs: {per_month: 180}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXPLANATION
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--prices", type=Path, required=True, metavar="FILE", help="your prices, in YAML"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Work out the costs and print them."""
    prices = load_prices(arguments.prices)
    record = load_run(find_run(arguments.run))
    if record.damage:
        message = f"{arguments.run}: {record.damage[0]}"
        raise ReplayerError(message, hint="the cost needs the complete record of a run")
    costs = work_out(record, summarise(record), prices)
    print(costs.model_dump_json(indent=2) if arguments.json else render_costs(costs).rstrip("\n"))
    return 0
