"""Text of others in Markdown: it is shown as it is, and nobody is called by it."""

import html
import re
import string

import pytest
from markdown_it import MarkdownIt

from replayer.report.markdown import escape

TEXTS = (
    "@team",
    "a~~b~~",
    "&lt;x&gt;",
    "/srv/$a/$b$",
    "user@host:/srv",
    "**x** _y_ `z` [l](u) <b> # |",
    string.punctuation,
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_shown_as_it_is(text: str) -> None:
    shown = MarkdownIt("commonmark").enable("strikethrough").renderInline(escape(text))
    assert html.unescape(re.sub(r"<!-- -->|</?span>", "", shown)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_github_finds_neither_names_nor_formulas_in_it(text: str) -> None:
    """It looks for them in what is shown, backslashes or not."""
    parts = re.split(r"<!-- -->|</?span>", escape(text))
    assert not any(re.search(r"@\w", part) for part in parts)
    assert not any("$" in part and part != "$" for part in parts)
