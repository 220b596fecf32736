"""The option for figures that a monitoring system fetches: where they are served."""

import argparse
from dataclasses import dataclass

from replayer.errors import ReplayerError
from replayer.run.addresses import MOST_PORT
from replayer.run.parser import Parser
from replayer.run.web_options import LOOPBACK

__all__ = ["Address", "add_metrics_option", "read_address"]


@dataclass(frozen=True)
class Address:
    """Where to listen."""

    host: str
    port: int


def add_metrics_option(parser: Parser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        help="serve figures for Prometheus at /metrics while it runs (default host: "
        f"{LOOPBACK}); a web page has them at /metrics anyway",
    )


def read_address(options: argparse.Namespace) -> Address | None:
    """Return where to listen; None when nobody asked.

    Raises:
        ReplayerError: It is no address.
    """
    text: str | None = options.metrics
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) <= MOST_PORT:
        message = f"--metrics {text!r}: the port must be a number from 1 to {MOST_PORT}"
        raise ReplayerError(message, hint="write --metrics 9646, or --metrics ADDRESS:9646")
    return Address(host.strip("[]") or LOOPBACK, int(port))
