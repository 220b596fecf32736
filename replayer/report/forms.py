"""The forms of a report and of a comparison, one line each: commands and the page offer these.

A page of HTML is a form apart: it draws distributions, so it needs the records themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from replayer.report.comparison import Comparison
from replayer.report.comparison_text import render_comparison_markdown, render_comparison_table
from replayer.report.csv_form import render_csv
from replayer.report.document import Document
from replayer.report.json_form import render_comparison_json, render_json
from replayer.report.junit import render_junit
from replayer.report.markdown import render_markdown
from replayer.report.style import Style
from replayer.report.table import render_table

_Shown = TypeVar("_Shown")


@dataclass(frozen=True)
class Form(Generic[_Shown]):
    """One form.

    Attributes:
        suffix: Of a file of that form.
        media_type: What a browser is sent.
        render: Makes the text, ending with a newline.
    """

    suffix: str
    media_type: str
    render: Callable[[_Shown, Style], str]


def _each(render: Callable[[Document], str]) -> Callable[[Sequence[Document], Style], str]:
    return lambda documents, _: "\n".join(map(render, documents))


FORMS: dict[str, Form[Sequence[Document]]] = {
    "table": Form(
        "txt",
        "text/plain",
        lambda documents, style: "\n".join(render_table(document, style) for document in documents),
    ),
    "json": Form("json", "application/json", lambda documents, _: render_json(*documents)),
    "markdown": Form("md", "text/markdown", _each(render_markdown)),
    "csv": Form("csv", "text/csv", lambda documents, _: render_csv(*documents)),
    "junit": Form("xml", "application/xml", lambda documents, _: render_junit(*documents)),
}

COMPARISON_FORMS: dict[str, Form[Comparison]] = {
    "table": Form("txt", "text/plain", render_comparison_table),
    "json": Form("json", "application/json", lambda found, _: render_comparison_json(found)),
    "markdown": Form("md", "text/markdown", lambda found, _: render_comparison_markdown(found)),
}


def suffixes(forms: Mapping[str, Form[_Shown]]) -> dict[str, str]:
    """Return the form's name by the suffix of a file."""
    return {".html": "html", **{f".{form.suffix}": name for name, form in forms.items()}}
