"""What is refused before a page is served."""

import argparse

import pytest

from replayer.errors import ReplayerError
from replayer.load.web_options import check_web_options

NONE: dict[str, object] = {
    "class_picker": False,
    "autostart": False,
    "report_html": None,
    "junit": None,
    "results": "tables",
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
    with pytest.raises(ReplayerError, match=f"^{says}: does not go with the web page"):
        check_web_options(argparse.Namespace(**{**NONE, name: value}))
