"""The frame of a chart: its axes, grid and names, in one view box that every chart has.

Colours are classes of the page's style sheet, so that light and dark are its affair. A mark that
has a ``data-tip`` shows it under the pointer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replayer.measure import format_time_ns
from replayer.report.charts.markup import Markup, tag
from replayer.report.charts.scale import Scale

__all__ = [
    "BOTTOM",
    "COLOURS",
    "HEIGHT",
    "LEFT",
    "RIGHT",
    "TOP",
    "WIDTH",
    "Axis",
    "colour",
    "draw",
    "polyline",
    "show_time",
]

WIDTH, HEIGHT = 480, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 462, 12, 218
"""The plot's own part of the picture: chosen, room for ``100 ms`` on the left and names below."""
_CHARACTER = 6.4
"""The width of one of a tick's text: chosen, digits of usual fonts at the style sheet's size."""
COLOURS = 8  # of the style sheet; further lines are dashed


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        scale: Where values lie.
        title: What it is; shown below the axis that goes across only.
        show: A tick's value as text.
        ticks: Where ticks go; None leaves it to the scale.
    """

    scale: Scale
    title: str
    show: Callable[[float], str]
    ticks: Sequence[float] | None = None

    def places(self) -> Sequence[float]:
        """Return the values of the ticks."""
        return self.scale.ticks() if self.ticks is None else self.ticks


def show_time(value_ns: float) -> str:
    """Return a time as a tick says it: ``20 ms``."""
    number, _, unit = format_time_ns(value_ns).partition(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


def draw(title: str, across: Axis, up: Axis, marks: Sequence[Markup]) -> Markup:
    """Return a whole chart; its title is also what a screen reader says."""
    return tag(
        "figure",
        tag("figcaption", title),
        tag(
            "svg",
            *_across(across),
            *_up(up),
            tag("g", *marks),
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=title,
        ),
    )


def colour(number: int) -> str:
    """Return the classes of the line of that number."""
    return f"c{number % COLOURS}" + (" dashed" if number >= COLOURS else "")


def polyline(points: Sequence[tuple[float, float]], classes: str) -> Markup:
    """Return a line through points."""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return tag("polyline", points=text, class_=f"line {classes}")


def _across(axis: Axis) -> list[Markup]:
    marks = [tag("line", x1=LEFT, y1=BOTTOM, x2=RIGHT, y2=BOTTOM, class_="axis")]
    free = 0.0
    for tick in axis.places():
        x, text = axis.scale.place(tick), axis.show(tick)
        marks.append(tag("line", x1=x, y1=TOP, x2=x, y2=BOTTOM, class_="grid"))
        half = _CHARACTER * len(text) / 2
        centre = min(x, WIDTH - half)
        if centre - half < free:
            continue  # it would lie on the one before
        free = centre + half + _CHARACTER / 2
        marks.append(tag("text", text, x=centre, y=BOTTOM + 16, class_="tick middle"))
    middle = (LEFT + RIGHT) / 2
    return [*marks, tag("text", axis.title, x=middle, y=HEIGHT - 8, class_="name middle")]


def _up(axis: Axis) -> list[Markup]:
    marks = []
    for tick in axis.places():
        y = axis.scale.place(tick)
        marks.append(tag("line", x1=LEFT, y1=y, x2=RIGHT, y2=y, class_="grid"))
        marks.append(tag("text", axis.show(tick), x=LEFT - 6, y=y + 4, class_="tick end"))
    return marks
