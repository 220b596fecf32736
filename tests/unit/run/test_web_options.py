"""What is refused before a page is served."""

import argparse
from pathlib import Path

import pytest

from replayer.errors import ReplayerError
from replayer.run.web_options import check_web_options, read_secret

NONE: dict[str, object] = {
    "class_picker": False,
    "autostart": False,
    "report_html": None,
    "junit": None,
    "results": "screen",
    "web_host": "127.0.0.1",
    "web_login": False,
}


def test_a_page_of_this_machine_needs_nothing() -> None:
    check_web_options(argparse.Namespace(**NONE))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("report_html", "a.html", "--html"),
        ("junit", "a.xml", "--junit"),
        ("results", "json", "--json"),
    ],
)
def test_reports_that_a_page_would_not_write_are_refused(name: str, value: str, says: str) -> None:
    with pytest.raises(ReplayerError, match=f"^{says}: is not for the web page"):
        check_web_options(argparse.Namespace(**{**NONE, name: value}))


@pytest.mark.parametrize("around", ["", "\n", " \r\n"])
def test_white_space_around_a_secret_is_none_of_it_wherever_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    said = f"{around}correct horse battery{around}"
    file = tmp_path / "secret"
    file.write_text(said)
    monkeypatch.setenv("REPLAYER_WEB_SECRET", said)
    for named in (None, str(file)):
        secret = read_secret(argparse.Namespace(web_secret_file=named))
        assert secret == "correct horse battery"  # noqa: S105 - of this test alone


def test_white_space_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYER_WEB_SECRET", " " * 20)
    with pytest.raises(ReplayerError, match="the secret is missing"):
        read_secret(argparse.Namespace(web_secret_file=None))
