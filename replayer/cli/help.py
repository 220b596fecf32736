"""``replayer help``: all options of a command."""

import argparse

from replayer.cli._parsers import KNOWN, ProgramParser, check_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "of",
        nargs="?",
        metavar="COMMAND",
        type=check_command,
        choices=tuple(KNOWN),
        help="a command (default: the program)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the help."""
    if arguments.of is None:
        print(ProgramParser(()).format_help(), end="")
    else:
        print(ProgramParser([arguments.of]).commands[arguments.of].format_help(), end="")
    return 0
