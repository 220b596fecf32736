"""``replayer man``: the manual page, made of the same parsers as the help."""

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import metadata

from replayer.cli._parsers import EXIT_CODES, KNOWN, CommandParser, ProgramParser

DESCRIPTION = """\
A scenario says what an application does: its files, transactions and users. A trace is a recording
of its file calls. A target is a folder on a mount.

replayer lays out the files below each target, runs the users and times every file call. Targets
take turns, so that all of them see the same conditions. Each run writes a folder with all figures.
The first screen says which target to use, by how much, and how sure that is.
"""
ENVIRONMENT = {
    "COLUMNS": "Width of what is printed into a pipe.",
    "REPLAYER_DEBUG": "If set, a bug shows its traceback.",
    "REPLAYER_WEB_SECRET": "The secret of --web-login.",
}
FILES = {
    "./replayer-runs": "Folders of runs, unless --output names another.",
    "./replayer-data": "Where runs without --target work.",
}
SEE_ALSO = ("fio(1)", "nfs(5)", "strace(1)")
WIDTH = 75
"""Chosen: lines of the source stay below 80, escapes included."""
ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
"""What groff would print as another character, which no shell takes (groff_char(7))."""
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: the command has no arguments."""
    del parser


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    del arguments
    print("\n".join(_page(ProgramParser(KNOWN))))
    return 0


def _page(parser: ProgramParser) -> Iterator[str]:
    version = f"replayer {metadata.version('replayer')}"
    yield f'.TH REPLAYER 1 {datetime.now(UTC):%Y-%m-%d} "{version}" "User Commands"'
    yield from (".SH NAME", f"replayer \\- {_escaped(parser.known.about)}")
    yield from (".SH SYNOPSIS", _escaped(parser.usage_line()))
    yield from (".SH DESCRIPTION", *_paragraphs(DESCRIPTION))
    yield from (".SH EXAMPLES", *_verbatim(parser.examples))
    yield ".SH COMMANDS"
    for title, actions in parser.sections():
        yield from _section(parser, title, actions)
    for command in parser.commands.values():
        yield from _command(command)
    for title, entries in (
        ("EXIT STATUS", {str(code): text for code, text in EXIT_CODES.items()}),
        ("ENVIRONMENT", ENVIRONMENT),
        ("FILES", FILES),
    ):
        yield f".SH {title}"
        yield from (line for name, text in entries.items() for line in _entry(name, text))
    yield from (".SH SEE ALSO", _escaped(", ".join(SEE_ALSO)))


def _command(parser: CommandParser) -> Iterator[str]:
    yield f".SH {_escaped(parser.prog.upper())}"
    yield from (*_paragraphs(parser.description or ""), ".P", _escaped(parser.usage_line()))
    yield from (".SS examples", *_verbatim(parser.examples))
    for title, actions in parser.sections():
        yield from _section(parser, title, actions)
    if parser.epilog:
        yield from (".SS notes", *_verbatim(parser.epilog))


def _section(
    parser: CommandParser, title: str, actions: Iterable[argparse.Action]
) -> Iterator[str]:
    form = parser._get_formatter()  # noqa: SLF001 - argparse has no other door to these texts
    lines = [
        line
        for action in actions
        for line in _entry(form._format_action_invocation(action), form._expand_help(action))  # noqa: SLF001 - as above
    ]
    if lines:
        yield from (f".SS {_escaped(title)}", *lines)


def _entry(name: str, text: str) -> Iterator[str]:
    """Yield a name, with its options in bold, and what it means."""
    yield ".TP"
    marked = _OPTION.sub(lambda found: f"\0{found[0]}\1", name)
    yield _escaped(marked).replace("\0", "\\fB").replace("\1", "\\fR")
    yield from _folded(text)


def _paragraphs(text: str) -> Iterator[str]:
    for index, paragraph in enumerate(text.strip().split("\n\n")):
        if index:
            yield ".P"
        yield from _folded(paragraph)


def _verbatim(text: str) -> Iterator[str]:
    yield from (".EX", *(_escaped(line) for line in text.rstrip().splitlines()), ".EE")


def _folded(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False, break_long_words=False):
        yield _escaped(line)


def _escaped(line: str) -> str:
    """Return a line as groff prints it unchanged."""
    text = "".join(ESCAPES.get(char, char) for char in line)
    return f"\\&{text}" if text.startswith(".") else text
