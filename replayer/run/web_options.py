"""The options of the web page, declared once for ``replayer run`` and ``replayer web``.

Locust's own (host, port, login, TLS) keep their names; those that Locust does not have are added to
its parser. What they ask for is checked here, before anything listens.
"""

import argparse
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.run.addresses import MOST_PORT
from replayer.run.options import LocustOptions, Parser

LOOPBACK = "127.0.0.1"
SECRET_VARIABLE = "REPLAYER_WEB_SECRET"  # noqa: S105 - where it is looked for, not what it is
LEAST_SECRET = 12
"""Chosen: with one attempt a second, guessing letters and digits takes longer than the universe."""
LOCUSTS: LocustOptions = {
    "web_host": ("ADDRESS", f"address where the page listens (default: {LOOPBACK})"),
    "web_port": ("PORT", "port of the page (default: 8089)"),
    "web_base_path": ("PREFIX", "path prefix of the page, such as /load"),
    "web_login": (None, "ask for a secret before showing anything"),
    "tls_cert": ("FILE", "certificate for https"),
    "tls_key": ("FILE", "private key of the certificate"),
}


def add_page_options(parser: Parser) -> None:
    """Declare what Locust does not have."""
    parser.add_argument(
        "--web-secret-file",
        metavar="FILE",
        help=f"file with the secret of --web-login (default: ${SECRET_VARIABLE})",
    )
    parser.add_argument(
        "--offer",
        action="append",
        default=[],
        metavar="SCENARIO",
        help="also offer this scenario on the page; repeatable",
    )


def refuse_page_options(arguments: argparse.Namespace) -> None:
    """Refuse options of the page where none is served.

    Raises:
        ReplayerError: Names the first one.
    """
    names = (*LOCUSTS, "web_secret_file", "offer")
    given = next((name for name in names if getattr(arguments, name)), None)
    if given is not None and not arguments.web:
        message = f"--{given.replace('_', '-')} needs the web page, and none is served"
        raise ReplayerError(message, hint="add --web, or leave it out")


def check_web_options(options: argparse.Namespace) -> None:
    """Refuse a page that others could use, and what the page does not do.

    Raises:
        ReplayerError: With what is missing.
    """
    for chosen, name in (
        (options.class_picker, "--class-picker"),
        (options.autostart, "--autostart"),
        (options.report_html, "--html"),
        (options.junit, "--junit"),
        (options.results == "json", "--json"),
    ):
        if chosen:
            message = f"{name}: is not for the web page"
            raise ReplayerError(message, hint="leave it out: the page starts runs on request")
    if not is_loopback(options.web_host) and not options.web_login:
        raise ReplayerError(
            f"--web-host {options.web_host or '*'}: needs a login, because other machines could "
            "put load on your mounts",
            hint=f"add --web-login and a secret in ${SECRET_VARIABLE} or --web-secret-file",
        )
    if options.web_login:
        read_secret(options)


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine alone; an empty one means every interface."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_secret(options: argparse.Namespace) -> str:
    """Return the secret of the login.

    It is no option itself: command lines are shown to every user of a machine, and are kept in run
    folders.

    Raises:
        ReplayerError: There is none, or it is too short.
    """
    secret = os.environ.get(SECRET_VARIABLE, "").strip()  # as what is sent, and the file
    where = f"${SECRET_VARIABLE}"
    if options.web_secret_file is not None:
        where = options.web_secret_file
        secret = _read(Path(options.web_secret_file))
    if not secret:
        message = "--web-login: the secret is missing"
        hint = f"set {SECRET_VARIABLE} in the environment, or give a file: --web-secret-file FILE"
        raise ReplayerError(message, hint=hint)
    if len(secret) < LEAST_SECRET:
        message = (
            f"{where}: the secret must have at least {LEAST_SECRET} characters, got {len(secret)}"
        )
        raise ReplayerError(message, hint="for example: head -c 24 /dev/urandom | base64")
    return secret


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayerError(f"{file}: the secret cannot be read: {error}") from error


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
        help=f"serve figures for Prometheus at /metrics during the run (default host: {LOOPBACK}); "
        "a web page always has them at /metrics",
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
