"""Quantities for people: times, rates and bytes in three digits and the unit that fits.

Text only; nothing is measured or compared with what is printed here.
"""

NS_PER_S = 1_000_000_000
DASH = "\N{EN DASH}"
"""What stands for a figure that there is none of."""
_TIMES = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_BYTES = ((1, "B"), (10**3, "kB"), (10**6, "MB"), (10**9, "GB"), (10**12, "TB"))
_COUNTS = ((1, ""), (10**3, "k"), (10**6, "M"), (10**9, "G"))
_DIGITS = 3  # chosen: as many as the histograms hold
AT_LEAST = "\N{GREATER-THAN OR EQUAL TO} "
"""Before a figure that is a lower bound."""
_WHOLE = 100.0  # from here on there is no place behind the point


def format_time_ns(value_ns: float) -> str:
    """Return a time: ``317 ns``, ``1.23 ms``, ``94.0 s``."""
    return _scaled(value_ns, _TIMES)


def format_at_least_ns(value_ns: float) -> str:
    """Return a time that is a lower bound: ``≥ 94.0 s``."""
    return f"{AT_LEAST}{format_time_ns(value_ns)}"


def format_bytes(value: float) -> str:
    """Return an amount of bytes in powers of ten: ``4.10 kB``."""
    return _scaled(value, _BYTES)


def format_rate(value_per_s: float) -> str:
    """Return how many a second: ``0.250/s``, ``12.3k/s``."""
    return _scaled(value_per_s, _COUNTS).replace(" ", "") + "/s"


def format_count(value: int) -> str:
    """Return a count with its thousands set apart: ``12,345``."""
    return f"{value:,}"


def format_number(value: float) -> str:
    """Return a number: three digits, and all of a whole one: ``0.25``, ``1``, ``3,600``."""
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:.{_DIGITS}g}"


def format_seconds(value_s: float) -> str:
    """Return a time that was asked for, or kept to: ``0.25 s``, ``30 s``, ``3,600 s``."""
    return f"{format_number(value_s)} s"


def format_about(value_s: float) -> str:
    """Return a time for who waits: ``40 s``, ``2.5 min``, ``30 min``, ``9.4 h``."""
    if value_s < _MINUTES_FROM_S:
        return f"{value_s:.0f} s"
    value, unit = value_s / 60, "min"
    if value_s >= _HOURS_FROM_S:
        value, unit = value / 60, "h"
    return f"{value:.1f} {unit}".replace(".0 ", " ") if value < 10 else f"{value:,.0f} {unit}"  # noqa: PLR2004 - chosen


_MINUTES_FROM_S, _HOURS_FROM_S = 2 * 60, 2 * 3600  # chosen


def format_many(count: int, one: str, many: str | None = None) -> str:
    """Return a count with what is counted: ``1 user``, ``12,345 users``, ``2 entries``."""
    return f"{format_count(count)} {one if count == 1 else many or one + 's'}"


def format_share(value: float) -> str:
    """Return a share in percent: ``0.25 %``, ``5,850 %``."""
    percent = float(f"{value * 100:.{_DIGITS}g}")
    return f"{percent:,.0f} %" if percent >= _WHOLE else f"{percent:g} %"


def format_duration(value_s: float) -> str:
    """Return a time of the run: ``0.125 s``, ``3,260 s``."""
    return f"{_significant(value_s)} s" if value_s > 0 else "0 s"


def format_factor(value: float) -> str:
    """Return how many times: ``1.83 times``, ``410 times``."""
    return f"{_significant(value)} times"


def format_ratio(value: float) -> str:
    """Return a ratio without more digits than it has: ``1.22``, ``814``, ``0.087``."""
    if value < _LEAST_OF_TWO:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < _MOST_OF_TWO else _significant(float(f"{value:.3g}"))


def format_times(ratio: float | None) -> str:
    """Return a ratio with the sign of a multiple; a dash where there is none, as to 0."""
    return DASH if ratio is None else f"\N{MULTIPLICATION SIGN}{format_ratio(ratio)}"


_LEAST_OF_TWO, _MOST_OF_TWO = 0.1, 9.995  # between them two decimals are two or three digits


def _scaled(value: float, scale: tuple[tuple[int, str], ...]) -> str:
    """Print a value in the largest unit that leaves at least one whole, as rounded for printing."""
    rounded = float(f"{value:.{_DIGITS}g}")
    factor, unit = next((step for step in reversed(scale) if rounded >= step[0]), scale[0])
    if factor == 1 and rounded == int(rounded):
        return f"{int(rounded)} {unit}".strip()
    return f"{_significant(rounded / factor)} {unit}".strip()


def _significant(value: float) -> str:
    """Print three digits, or all before the point; rounding may bring one more there."""
    rounded = float(f"{value:.{_DIGITS}g}")
    if rounded >= 1:
        return f"{value:,.{max(_DIGITS - len(str(int(rounded))), 0)}f}"
    return f"{value:.{_DIGITS}g}"
