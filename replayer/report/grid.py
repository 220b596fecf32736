"""Aligned columns within a width: where they do not fit, the least needed are left out and named.

Knows nothing of what the cells mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replayer.errors import in_one_line
from replayer.report.style import Style, cut, text_width

__all__ = ["Column", "Grid", "lay_out_grid", "no_room_for"]

_GAP = 2
_NARROWEST = 80  # below this a table is cut by the terminal, not by us
_SHORTEST_NAME = 12
_WIDEST_CELL = 30  # chosen: the widest figure takes 14; longer are names of targets only


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: What stands above.
        need: Columns with the smallest need go first when there is no room.
    """

    title: str
    need: int


@dataclass(frozen=True)
class Grid:
    """A finished grid.

    Attributes:
        lines: The header and one line a row.
        left_out: Titles of columns that did not fit.
    """

    lines: tuple[str, ...]
    left_out: tuple[str, ...]


def lay_out_grid(columns: Sequence[Column], rows: Sequence[Sequence[str]], style: Style) -> Grid:
    """Align rows under their columns: the first to the left, the others to the right."""
    cells = [
        [in_one_line(row[0]), *(cut(in_one_line(cell), _WIDEST_CELL) for cell in row[1:])]
        for row in rows
    ]
    widths = [
        max(text_width(column.title), *(text_width(row[place]) for row in cells), 1)
        for place, column in enumerate(columns)
    ]
    room = max(style.width, _NARROWEST)
    kept = _fitting(columns, widths, room)
    others = sum(widths[place] + _GAP for place in kept[1:])
    widths[0] = min(widths[0], max(room - others, _SHORTEST_NAME))
    titles = [column.title for column in columns]
    lines = [_line(titles, kept, widths), *(_line(row, kept, widths) for row in cells)]
    return Grid(
        (style.paint(lines[0], "faint"), *lines[1:]),
        tuple(title for place, title in enumerate(titles) if place not in kept),
    )


def no_room_for(titles: Sequence[str]) -> str:
    """Say which columns were left out, and how to see them."""
    return f"no room for {', '.join(titles)}: use a wider terminal (in a pipe: COLUMNS) or --json"


def _fitting(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Return the places of the columns that are kept."""
    kept = list(range(len(columns)))
    droppable = sorted((column.need, place) for place, column in enumerate(columns) if place > 0)
    first = min(widths[0], max(_SHORTEST_NAME, room // 3))
    for _, place in droppable:
        if first + sum(widths[other] + _GAP for other in kept[1:]) <= room:
            break
        if len(kept) > _FEWEST_COLUMNS:
            kept.remove(place)
    return kept


_FEWEST_COLUMNS = 2


def _line(cells: Sequence[str], kept: Sequence[int], widths: Sequence[int]) -> str:
    first = cut(cells[0], widths[0])
    others = "".join(
        " " * (_GAP + widths[place] - text_width(cells[place])) + cells[place] for place in kept[1:]
    )
    return f"{first}{' ' * (widths[0] - text_width(first))}{others}".rstrip()
