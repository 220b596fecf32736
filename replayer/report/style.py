"""Text for a terminal: width, colour, characters that the stream can hold, and columns.

Renderers write Unicode and mark text by role; here roles become escape codes or nothing. If the
columns of a grid do not fit, the least needed are left out and named.
"""

import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Literal, Self, TextIO

from rich.cells import cell_len

from replayer.errors import in_one_line

Role = Literal["pass", "fail", "inconclusive", "heading", "faint"]

_ANSI: dict[Role, str] = {
    "pass": "\x1b[32m",
    "fail": "\x1b[31m",
    "inconclusive": "\x1b[33m",
    "heading": "\x1b[1m",
    "faint": "\x1b[2m",
}
_END = "\x1b[0m"
_ASCII = str.maketrans(
    {
        "\N{EN DASH}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{MICRO SIGN}": "u",
        "\N{HORIZONTAL ELLIPSIS}": "~",
        "\N{MIDDLE DOT}": "-",
        "\N{GREATER-THAN OR EQUAL TO}": ">=",
    }
)
_LABEL = re.compile(r"\s*\S+(?: \S+)*  +|\s*")
"""What stands before the text of a line: a label and at least two blanks, or blanks alone."""
_NARROWEST = 80  # below this a terminal wraps, not we
_PIPE_WIDTH = 120  # chosen: a pipe has no width; what most editors and logs show unwrapped


@dataclass(frozen=True)
class Style:
    """What a text may look like: columns, codes by role (none: no colour), encoding."""

    width: int = _PIPE_WIDTH
    codes: dict[Role, str] = field(default_factory=dict)
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO) -> Self:
        """Return the style that suits a stream: colour on a terminal only, see https://no-color.org."""
        encoding = stream.encoding or "ascii"
        is_terminal = stream.isatty()
        width = shutil.get_terminal_size((80 if is_terminal else _PIPE_WIDTH, 24)).columns
        if not is_terminal:
            return cls(width=width, encoding=encoding)
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return cls(width=width, codes={} if plain else _ANSI, encoding=encoding)

    @classmethod
    def coloured(cls, width: int) -> Self:
        """Return a style with colour for any stream."""
        return cls(width=width, codes=_ANSI)

    def paint(self, text: str, role: Role) -> str:
        """Mark a text by its role."""
        code = self.codes.get(role)
        return f"{code}{text}{_END}" if code else text

    def fit(self, text: str) -> str:
        """Return the text with characters that the stream cannot hold replaced."""
        try:
            text.encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return text.translate(_ASCII).encode("ascii", errors="replace").decode()
        return text


PLAIN = Style()
"""No colour, 120 columns, Unicode."""


def text_width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Return the text, shortened to so many columns if it is longer."""
    from rich.text import Text  # noqa: PLC0415 - slow to import, as the table

    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line.plain


def fold(lines: Iterable[str], style: Style, indent: int | None = None) -> Iterator[str]:
    """Yield lines; a line that is too wide continues below the text behind its label.

    No word is broken: a path can still be copied. ``indent`` says where else the next lines begin.
    """
    width = max(style.width, _NARROWEST)
    for line in lines:
        if text_width(line) <= width:
            yield line
            continue
        label = _LABEL.match(line) if indent is None else None
        begin = label.end() if label else indent or 0
        yield from textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * begin,
            break_long_words=False,
            break_on_hyphens=False,
        )


_GAP = 2  # columns
_SHORTEST_NAME = 12  # columns
_WIDEST_CELL = 30  # chosen: the widest figure takes 14; longer are names of targets only
_FEWEST_COLUMNS = 2


@dataclass(frozen=True)
class Column:
    """A column; those with the smallest need go first if there is no room."""

    title: str
    need: int


@dataclass(frozen=True)
class Grid:
    """A finished grid: the header and one line a row, and titles that did not fit."""

    lines: tuple[str, ...]
    left_out: tuple[str, ...]


def lay_out_grid(columns: Sequence[Column], rows: Sequence[Sequence[str]], style: Style) -> Grid:
    """Align rows under their columns: the first to the left, the others to the right."""
    # Only where there is a table: they are slow to import, and most commands print lines alone.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    def one_line(text: str) -> Text:
        return Text(text, no_wrap=True, overflow="ellipsis")

    texts = [[in_one_line(cell) for cell in row] for row in rows]
    room = max(style.width, _NARROWEST)
    kept = _fitting(columns, texts, room)
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    for place in kept:
        # Only the first column may be narrower than its cells.
        table.add_column(
            one_line(columns[place].title),
            justify="right" if place else "left",
            no_wrap=place > 0,
            max_width=_WIDEST_CELL if place else None,
        )
    for row in texts:
        table.add_row(*(one_line(row[place]) for place in kept))
    console = Console(width=room, color_system=None, file=StringIO())
    with console.capture() as printed:
        console.print(table)
    header, *lines = (line.rstrip() for line in printed.get().splitlines())
    left_out = (column.title for place, column in enumerate(columns) if place not in kept)
    return Grid((style.paint(header, "faint"), *lines), tuple(left_out))


def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the places of the columns that are kept."""
    widths = [
        max(text_width(column.title), *(text_width(row[place]) for row in rows), 1)
        for place, column in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    first = min(widths[0], max(_SHORTEST_NAME, room // 3))
    for place in sorted(kept[1:], key=lambda place: columns[place].need):
        others = sum(min(widths[other], _WIDEST_CELL) + _GAP for other in kept[1:])
        if first + others <= room or len(kept) == _FEWEST_COLUMNS:
            break
        kept.remove(place)
    return kept
