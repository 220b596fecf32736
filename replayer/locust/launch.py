"""Starting Locust: our own command line becomes a call of its ``main``.

Our options are parsed once. Locust's parser reads its own words alone, and gets the values of ours
as defaults: what it hands on is the same as after ``locust -f``.
"""

import argparse
import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from replayer.errors import OutsideError, ReplayerError
from replayer.locust import LOCUSTFILE
from replayer.locust.user_code import OURS, place_of, put
from replayer.paths import is_file, is_folder
from replayer.run.csv_files import csv_prefix
from replayer.run.options import locust_words
from replayer.run.roles import LOCUSTS as FLEET
from replayer.run.web_options import LOCUSTS as PAGE
from replayer.run.web_options import refuse_page_options
from replayer.supervisor import uninterrupted

_parsed: dict[str, object] = {}
"""What our own parser has read; empty after ``locust -f``."""
_command_line: list[str] = []
"""Where it has read that."""


def hand_over(arguments: argparse.Namespace) -> int:
    """Run what the parsed arguments ask for under Locust, and return its exit code."""
    if hasattr(arguments, "web"):
        refuse_page_options(arguments)
    if arguments.locustfile is not None:
        _check_locustfiles(arguments.locustfile)
    _parsed.update(vars(arguments))
    _command_line[:] = ["replayer", *sys.argv[1:]]
    sys.argv = [f"replayer {arguments.command}", *_locust_words(arguments)]
    if arguments.loglevel is None:
        logging.basicConfig(level=logging.ERROR, format="%(message)s")
        logging.getLogger("locust.stats_logger").disabled = True
        logging.getLogger("locust.main").addFilter(_is_whole)
    return _run_locust(arguments)


def parsed_already() -> Mapping[str, object]:
    """Return the options that our own parser has read, by name; none after ``locust -f``."""
    return _parsed


def command_line() -> tuple[str, ...]:
    """Return the command line as it was typed: ours, or Locust's."""
    return tuple(_command_line or sys.argv)


def _is_whole(record: logging.LogRecord) -> bool:
    """Whether a line says it all: that of a master who is not there has no reason in it."""
    return not record.getMessage().endswith(": ")


def _check_locustfiles(words: str) -> None:
    """Refuse locustfiles that are not there; addresses of pages are left to Locust."""
    for word in map(str.strip, words.split(",")):
        if word.startswith(("http://", "https://")):
            continue
        path = Path(word)
        if not is_folder(path) and not (is_file(path) and path.suffix == ".py"):
            message = f"-f {word}: no such locustfile"
            raise ReplayerError(
                message, hint="give a Python file (.py) or a folder of Python files"
            )


def _run_locust(arguments: argparse.Namespace) -> int:
    """Run Locust's main, and return the exit code.

    Raises:
        ReplayerError: A person's own file cannot be imported.
        OutsideError: This is a worker, and no master answers it.
    """
    main = import_locust()
    try:
        main()
    except SystemExit as leaving:
        return code_of(leaving, arguments)
    except Exception as error:
        _refuse_own_file(error)
        raise
    return 0


def import_locust() -> Callable[[], None]:
    """Import Locust, which patches the standard library, and return its main."""
    # Imports that are cut short end in whatever words.
    with uninterrupted(), _packages_known():
        from locust.main import main  # noqa: PLC0415 - see above

        from replayer.locust import listeners  # noqa: F401, PLC0415 - as above
    return main


@contextmanager
def _packages_known() -> Iterator[None]:
    """Read once what packages offer each other: gevent asks for each module that it patches."""
    ask, found = metadata.entry_points, metadata.entry_points()
    metadata.entry_points = found.select
    try:
        yield
    finally:
        metadata.entry_points = ask


def code_of(leaving: SystemExit, arguments: argparse.Namespace) -> int:
    """Return the exit code of a run that ended; what kept one from beginning is a refusal."""
    frame = traceback.extract_tb(leaving.__traceback__)[-1]
    is_locusts = Path(frame.filename).is_relative_to(_locusts_folder())
    # An end that Locust or we ourselves have chosen is nobody else's mistake.
    if not is_locusts and not Path(frame.filename).is_relative_to(OURS):
        _refuse_own_file(leaving)
    if not is_locusts or frame.name == "shutdown":
        return leaving.code if isinstance(leaving.code, int) else 1
    if isinstance(leaving.__context__, KeyboardInterrupt):
        raise leaving.__context__
    if isinstance(leaving.__context__, ConnectionError):
        host, port = arguments.master_host or "127.0.0.1", arguments.master_port or 5557
        raise OutsideError(
            f"no master answers at {host}:{port}",
            hint="start a master there (--master), or give its address with --master-host and "
            "--master-port",
        ) from leaving
    return ReplayerError.exit_code  # Locust has said why


def _refuse_own_file(error: BaseException) -> None:
    """Refuse a person's own file that raises when it is imported."""
    place = place_of(error)
    if place is not None:
        message = f"{place}: {put(error)}"
        raise ReplayerError(message, hint="a locustfile must be importable") from error


def _locusts_folder() -> Path:
    import locust  # noqa: PLC0415 - see above

    return Path(locust.__file__).parent


def _locust_words(arguments: argparse.Namespace) -> list[str]:
    files = ",".join(filter(None, (str(LOCUSTFILE), arguments.locustfile)))
    values = {
        "--locustfile": files,
        "--users": arguments.users,
        "--spawn-rate": arguments.spawn_rate,
        "--run-time": arguments.run_time,
        "--stop-timeout": arguments.stop_timeout,
        "--csv": None if arguments.csv is None else csv_prefix(arguments.csv),
        "--loglevel": arguments.loglevel,
    }
    given = [f"{name}={value}" for name, value in values.items() if value is not None]
    quiet = [] if arguments.loglevel else ["--skip-log-setup"]
    mode = ["--headless"]
    if getattr(arguments, "web", False):
        mode = locust_words(arguments, PAGE)
    several = locust_words(arguments, FLEET) if hasattr(arguments, "processes") else []
    return [*mode, "--only-summary", *quiet, *given, *several]
