"""HTML and SVG elements as strings, escaped on the way: the only place that writes a ``<``."""

from html import escape

__all__ = ["Markup", "join", "tag"]


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | float | None) -> Markup:
    """Return an element; children that are no ``Markup`` are escaped, as attributes are.

    ``class_`` stands for ``class``, and other underscores for hyphens; None leaves one out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = join(*children)
    if not inside and name not in _NEVER_EMPTY:
        return Markup(f"<{name}{written}/>" if name in _VOID else f"<{name}{written}></{name}>")
    return Markup(f"<{name}{written}>{inside}</{name}>")


def join(*parts: str | None) -> Markup:
    """Return parts one after another, escaped where they are no markup; None is left out."""
    return Markup(
        "".join(
            part if isinstance(part, Markup) else escape(_printable(part))
            for part in parts
            if part is not None
        )
    )


_NEVER_EMPTY = frozenset({"script", "style"})
_VOID = frozenset({"meta", "br", "line", "rect", "circle", "path", "polyline", "col"})


def _text(value: str | float) -> str:
    return _printable(value) if isinstance(value, str) else f"{value:.6g}"


def _printable(text: str) -> str:
    """Return text without control characters, which names and paths may hold."""
    return "".join(
        char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
