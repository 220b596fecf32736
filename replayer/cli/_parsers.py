"""The parsers of command lines, and their help: in short with ``-h``, whole with ``--help``.

What a command does and its examples are in the table of ``_commands``; its options are declared by
its own module, which is imported when the command is asked for.
"""

import argparse
import difflib
import importlib
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import metadata
from inspect import cleandoc
from textwrap import indent
from typing import Any, NoReturn, Protocol, cast

from replayer.cli._commands import COMMANDS, PROGRAM, CommandHelp
from replayer.errors import EXIT_BUG, EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE, ReplayerError

NEAR = 0.8
"""Likeness of an option that is offered (chosen: --form is --format, --set is not --seed)."""
EXIT_CODES = {
    0: "it passes, or it is done",
    1: "a threshold failed",
    2: "the command line or a file of yours is wrong",
    EXIT_ENVIRONMENT: "the environment fails: a mount is gone, a disk is full, fio is missing",
    EXIT_INCONCLUSIVE: "it is inconclusive, or you interrupted it",
    EXIT_BUG: "a bug in replayer",
}
KNOWN = {name: known for section in COMMANDS.values() for name, known in section.items()}
"""The help of each command by its name."""


class Command(Protocol):
    """What each module of this package offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it and return the exit code."""


class CommandParser(argparse.ArgumentParser):
    """A parser that has two helps, and refuses in the manner of the rest of the program."""

    def __init__(self, *, known: CommandHelp, **options: Any) -> None:  # noqa: ANN401 - as argparse's
        """Take ``-1s`` for a value, which is refused as one, and not for an unknown option."""
        super().__init__(
            **options,
            description=f"{known.about[0].upper()}{known.about[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )
        self.known = known
        self.examples = cleandoc(known.examples)
        self._negative_number_matcher = re.compile(r"-\.?[0-9]")
        self._help = self.add_argument(
            "-h", "--help", action=_Help, help="print help: -h in short, --help in full"
        )

    def error(self, message: str) -> NoReturn:
        raise ReplayerError(message, hint=f"see {self.prog} --help")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Refuse words that mean nothing here; what was meant is perhaps one of the options."""
        option = words[0].partition("=")[0]
        known = {name.lower(): name for name in self._option_string_actions}
        near = difflib.get_close_matches(option.lower(), known, n=1, cutoff=NEAR)
        hint = f"did you mean {known[near[0]]}?" if near else f"see {self.prog} --help"
        message = f"unrecognized arguments: {' '.join(words)}"
        raise ReplayerError(message, hint=hint)

    def sections(self) -> Iterator[tuple[str, list[argparse.Action]]]:
        """Yield titles and arguments: words, common options, then those of each concern."""
        groups = [(group.title or "", group._group_actions) for group in self._action_groups]  # noqa: SLF001 - it has no public view
        (_, words), (_, options), *concerns = groups
        common = [self._option_string_actions[name] for name in self.known.common]
        first = [*(common or (a for a in options if a is not self._help)), self._help]
        yield "arguments", words
        yield "common options" if common else "options", first
        for title, actions in (*concerns, ("other options", options)):
            yield title, [action for action in actions if action not in first]

    def format_short(self) -> str:
        """Return what ``-h`` prints: usage, examples, the options that most people need."""
        first, common, *concerns = self.sections()
        is_all = not self.epilog and not any(actions for _, actions in concerns)
        return self._format(
            (first, common), "" if is_all else f"{self.prog} --help shows all options."
        )

    def format_help(self) -> str:
        """Return what ``--help`` prints."""
        return self._format(self.sections(), self.epilog or "")

    def usage_line(self) -> str:
        """Return the command with what it needs; options that may be left out are one word."""
        actions = [*(a for a in self._actions if a.option_strings and a.required)]
        words = [f"{a.option_strings[0]} {a.metavar}" for a in actions]
        words += [_put(a) for a in self._get_positional_actions()]
        return " ".join((self.prog, "[OPTION…]", *words))

    @property
    def own_options(self) -> Collection[str]:
        """The options that are not a command's."""
        return self._option_string_actions.keys()

    def _format(self, sections: Iterable[tuple[str, list[argparse.Action]]], ending: str) -> str:
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        formatter.add_text(f"usage: {self.usage_line()}")
        formatter.add_text(f"examples:\n{indent(self.examples, '  ')}")
        for title, actions in sections:
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(ending)
        return formatter.format_help()


class ProgramParser(CommandParser):
    """The parser of whole command lines; its help lists the commands."""

    def __init__(self, names: Iterable[str]) -> None:
        """Import the modules of the commands that are named."""
        super().__init__(known=PROGRAM, prog="replayer")
        self.add_argument("-V", "--version", action=_Version, help="print the version")
        codes = "\n".join(f"  {code:<2}  {text}" for code, text in EXIT_CODES.items())
        self.epilog = (
            f"exit codes:\n{codes}\n\nreplayer help COMMAND shows all options of a command."
        )
        added = self.add_subparsers(
            dest="command", metavar="COMMAND", required=True, parser_class=CommandParser
        )
        self.commands: dict[str, CommandParser] = {}
        for name in names:
            parser = added.add_parser(name, known=KNOWN[name], help=KNOWN[name].about)
            load_command(name).add_arguments(parser)
            self.commands[name] = parser

    def sections(self) -> Iterator[tuple[str, list[argparse.Action]]]:
        """Yield the commands, and the program's own options."""
        for title, commands in COMMANDS.items():
            yield title, [argparse.Action([], name, help=c.about) for name, c in commands.items()]
        yield "options", [action for action in self._actions if action.option_strings]

    def usage_line(self) -> str:
        """Return the form of every command line."""
        return "replayer COMMAND [OPTION…]"

    def format_short(self) -> str:
        """Return what ``-h`` prints."""
        return self._format(self.sections(), "replayer COMMAND -h shows what a command needs most.")


class _Help(argparse.Action):
    """Print the help, in short or whole."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:  # noqa: ANN401 - as argparse's
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        del namespace, values
        parser = cast("CommandParser", parser)
        print(parser.format_short() if option_string == "-h" else parser.format_help(), end="")
        parser.exit()


class _Version(_Help):
    """Print the version, looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"replayer {metadata.version('replayer')}")
        parser.exit()


def check_command(name: str) -> str:
    """Return the name of a command.

    Raises:
        ReplayerError: There is none of that name; the hint names the nearest one.
    """
    if name not in KNOWN:
        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(sorted(KNOWN))}"
        message = f"unknown command {name!r}"
        raise ReplayerError(message, hint=hint)
    return name


def load_command(name: str) -> Command:
    """Import the module of a command."""
    module = name.replace("-", "_")
    if keyword.iskeyword(module):
        # import.py could not be imported.
        module += "_"
    return cast("Command", importlib.import_module(f"replayer.cli.{module}"))


def _put(action: argparse.Action) -> str:
    word = str(action.metavar or action.dest)
    forms: dict[object, str] = {None: word, "?": f"[{word}]", "*": f"[{word}…]"}
    return forms.get(action.nargs, f"{word}…")
