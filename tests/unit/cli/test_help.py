"""Help: short and whole, with examples that the program takes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from replayer import cli
from replayer.cli import main, parse_words
from replayer.cli._commands import PROGRAM
from replayer.cli._parsers import KNOWN, ProgramParser

FREE_TO_RUN = {"check", "help", "locustfile", "scenarios", "schema", "show"}
"""Commands that need no target and no file, and write none."""
SHELL = ("|", ">", "&&")


def examples_of(text: str) -> list[list[str]]:
    """Return the words of each command line of ours among examples."""
    lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
    found = []
    for line in lines:
        begun = line.partition("$(")[2].partition(")")[0] or line
        if begun.startswith("replayer "):
            words = shlex.split(begun)[1:]
            found.append(words[: next((i for i, w in enumerate(words) if w in SHELL), None)])
    return found


EXAMPLES = [words for known in (PROGRAM, *KNOWN.values()) for words in examples_of(known.examples)]


def printed(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ending:
        main(words)
    assert ending.value.code == 0
    return capsys.readouterr().out


def test_every_module_of_a_command_is_in_the_table() -> None:
    modules = {path.stem.rstrip("_") for path in Path(cli.__file__).parent.glob("[a-z]*.py")}
    assert {name.replace("-", "_") for name in KNOWN} == modules


@pytest.mark.parametrize("name", KNOWN)
def test_every_command_has_at_least_two_examples(name: str) -> None:
    assert KNOWN[name].examples.count("# ") >= 2
    assert any(words[0] == name for words in EXAMPLES)


@pytest.mark.parametrize("words", EXAMPLES, ids=shlex.join)
def test_an_example_is_a_command_line_that_the_program_takes(words: list[str]) -> None:
    assert parse_words(words).command == words[0]


@pytest.mark.parametrize(
    "words", [words for words in EXAMPLES if words[0] in FREE_TO_RUN], ids=shlex.join
)
def test_an_example_that_needs_nothing_runs(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", KNOWN)
def test_help_begins_with_what_the_command_does_its_form_and_its_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("-h", "--help"):
        about, usage, examples, *_ = printed(name, option, capsys=capsys).split("\n\n")
        assert about.lower() == f"{KNOWN[name].about.lower()}."
        assert usage.startswith(f"usage: replayer {name} ")
        assert examples.startswith("examples:\n  # ")


@pytest.mark.parametrize("name", KNOWN)
def test_the_whole_help_has_every_option_and_the_short_one_the_common_ones(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ProgramParser([name]).commands[name]
    options = {word for word in parser.own_options if word.startswith("--")}
    common = set(KNOWN[name].common) or options
    shown = {
        option: {
            word.rstrip(",")
            for line in printed(name, option, capsys=capsys).splitlines()
            if line.startswith("  -")
            for word in line.split("  ")[1].split()
            if word.startswith("--")
        }
        for option in ("-h", "--help")
    }
    assert shown == {"-h": common | {"--help"}, "--help": options}


def test_the_short_help_says_where_the_rest_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("run", "-h", capsys=capsys).endswith(
        "\nreplayer run --help shows all options.\n"
    )
    assert "--help shows all" not in printed("run", "--help", capsys=capsys)
    assert "--help shows all" not in printed("scenarios", "-h", capsys=capsys)


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "run"]) == 0
    assert capsys.readouterr().out == printed("run", "--help", capsys=capsys)
    assert main(["help"]) == 0
    whole = capsys.readouterr().out
    assert whole == printed("--help", capsys=capsys)
    assert "\nexit codes:\n" in whole


def test_the_program_lists_every_command_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed("-h", capsys=capsys).splitlines()
    for name, known in KNOWN.items():
        assert f"  {name:<14} {known.about}" in lines


def test_the_list_of_commands_imports_none_of_them() -> None:
    asked = (
        "import sys; from replayer.cli import main\n"
        "try: main(['-h'])\n"
        "finally: print([n for n in ('pydantic', 'numpy', 'locust', 'gevent', 'replayer.run')"
        " if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_printed(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(option, capsys=capsys).startswith("replayer 0.")


def test_verbose_is_locusts_log() -> None:
    assert parse_words(["run", "small-reads", "-v"]).loglevel == "INFO"
    assert parse_words(["run", "small-reads"]).loglevel is None


@pytest.mark.parametrize("name", KNOWN)
def test_every_option_is_explained_in_sentences_of_at_most_25_words(name: str) -> None:
    parser = ProgramParser([name]).commands[name]
    for _, actions in parser.sections():
        for action in actions:
            assert action.help
            assert action.help[0].islower() or action.help.startswith("1 ")
            assert not action.help.endswith(".")
            for sentence in re.split(r"[.:;] ", action.help):
                assert len(sentence.split()) <= 25, action.help
