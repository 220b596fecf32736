"""Tables, facts and badges of the page: text in, markup out."""

from collections.abc import Iterable, Sequence

from replayer.report.charts import Markup, tag

__all__ = ["badge", "facts", "table"]


def badge(word: str) -> Markup:
    """Return a word in a frame of its colour."""
    return tag("span", word, class_=f"badge {word}")


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str | Markup]], classes: str = ""
) -> Markup:
    """Return a table whose first column names the row; it scrolls where it is too wide."""
    head = tag("tr", *(tag("th", title, scope="col") for title in titles))
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    inner = tag("table", tag("thead", head), tag("tbody", *body), class_=classes or None)
    return tag("div", inner, class_="scroll", tabindex="0")


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Return names and texts as a list of definitions."""
    parts: list[Markup] = []
    for label, text in pairs:
        parts += [tag("dt", label.strip()), tag("dd", text)]
    return tag("dl", *parts)
