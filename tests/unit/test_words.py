"""Words of the command line that mean nothing are refused, with what may have been meant."""

import pytest

from replayer import cli


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        ("rnu", "unknown command 'rnu'", "did you mean run?"),
        ("help rnu", "unknown command 'rnu'", "did you mean run?"),
        ("frobnicate", "unknown command 'frobnicate'", "commands: baseline, capacity, "),
        (
            "run small-reads --cahce cold",
            "unrecognized arguments: --cahce",
            "did you mean --cache?",
        ),
        ("-v", "unrecognized arguments: -v", "did you mean -V?"),
        ("--foo run small-reads", "unrecognized arguments: --foo", "see replayer --help"),
        ("report x --form=html", "unrecognized arguments: --form=html", "did you mean --format?"),
        ("replay x --set a=1", "unrecognized arguments: --set a=1", "see replayer replay --help"),
        ("", "arguments are required: COMMAND", "see replayer --help"),
    ],
)
def test_what_was_meant_is_offered(
    words: str, says: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words.split()) == 2
    message, offered = capsys.readouterr().err.splitlines()
    assert message.startswith("replayer: ")
    assert says in message
    assert hint in offered
