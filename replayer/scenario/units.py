"""Words with units, read into integers: bytes, nanoseconds, rates, permission bits, percentages.

Each type here is an annotated ``int`` or ``float`` for the models. Each reader raises a
``PydanticCustomError`` that names what was expected and what was written.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

SIZES: Mapping[str, int] = {
    "B": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4,
    "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4,
}  # fmt: skip
DURATIONS: Mapping[str, int] = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9,
    "min": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
"""With the micro sign and with the Greek letter."""
RATES: Mapping[str, int] = {"/s": 1, "/min": 60, "/m": 60, "/h": 3600}

MAX_VALUE = 2**62
"""What fits into a signed 64-bit number of the kernel with room for sums."""

LONGEST_S = 365 * 24 * 3600
"""Chosen: no run lasts for longer, and sums of such times fit."""
LONGEST = "a year (8760h)"

MOST_RATE, LEAST_RATE = 1_000_000_000.0, 1 / LONGEST_S
"""Chosen: gaps of a nanosecond, and of the longest run."""

MAX_WEIGHT = 2**32 - 1  # plan format 1

ALL_BITS = 0o7777
SHOWN = 60
"""Chosen: how much of a wrong value fits into a line."""

_Type = tuple[BeforeValidator, WithJsonSchema]

_MEASURE = re.compile(r"(?P<sign>-?)(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>[^\s0-9.]*)")


def read_size(value: object) -> int:
    """Read a size such as ``4KiB`` into bytes; a bare 0 needs no unit."""
    wanted = "a size such as 300B, 4KiB or 1MB"
    return _read(value, SIZES, wanted, (MAX_VALUE, "is too large: "))


def read_duration(value: object) -> int:
    """Read a time such as ``250ms`` into nanoseconds; a bare 0 needs no unit."""
    wanted = "a time such as 5us, 250ms, 10s or 2m"
    most = (LONGEST_S * DURATIONS["s"], f"must be at most {LONGEST}, got ")
    return _read(value, DURATIONS, wanted, most)


def wrong_run_time(seconds: float) -> str | None:
    """Return what is wrong with a run time, in words to follow its name; None: nothing."""
    if seconds < 1:
        return "must be at least 1s"
    return None if seconds <= LONGEST_S else f"must be at most {LONGEST}"


def read_rate(value: object) -> float:
    """Read a rate such as ``50/s`` into events per second."""
    number, unit = _split(value, RATES, "a rate such as 50/s or 90/min")
    if number <= 0:
        raise wrong(f"must be more than 0, got {value}")
    rate = float(number / RATES[unit])
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise wrong(f"must be from once a year to {int(MOST_RATE)}/s, got {show_value(value)}")
    return rate


def _read(value: object, units: Mapping[str, int], wanted: str, most: tuple[int, str]) -> int:
    if type(value) is int and value == 0:
        return 0
    number, unit = _split(value, units, wanted)
    scaled = number * units[unit]
    if scaled < 0:
        raise wrong(f"must be at least 0, got {value}")
    limit, refusal = most
    if scaled > limit:
        raise wrong(f"{refusal}{show_value(value)}")
    return round(scaled)


def _split(value: object, units: Mapping[str, int], wanted: str) -> tuple[Fraction, str]:
    match = _MEASURE.fullmatch(str(value).strip()) if isinstance(value, str | int | float) else None
    if match is None or isinstance(value, bool):
        raise wrong(f"must be {wanted}, got {show_value(value)}")
    unit = match["unit"]
    if unit not in units:
        reason = f"has the unknown unit {unit!r}" if unit else "has no unit"
        hint = f"known units: {', '.join(units)}"
        raise wrong(f"{show_value(value)} {reason}, expected {wanted}", hint)
    return Fraction(match["sign"] + match["number"]), unit


def wrong(says: str, hint: str = "") -> PydanticCustomError:
    """Return the refusal of a value, in words to follow its name."""
    return PydanticCustomError("wrong", "{says}", {"says": says, "hint": hint})


def show_value(value: object) -> str:
    """Return how a value of a scenario is shown in a message: short, and as YAML would have it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            return repr(value if len(value) <= SHOWN else value[: SHOWN - 3] + "...")
        case _:
            return str(value)


def _read_mode(value: object) -> int:
    """Read permission bits as chmod(1) does: octal digits, with or without 0o."""
    text = str(value).removeprefix("0o") if isinstance(value, str | int) else ""
    if isinstance(value, bool) or not re.fullmatch(r"[0-7]{1,5}", text) or int(text, 8) > ALL_BITS:
        raise wrong(f"must be octal permission bits such as 0o644, got {show_value(value)}")
    return int(text, 8)


def _read_percent(value: object) -> int:
    match = re.fullmatch(r"([0-9]{1,3})\s*%", value) if isinstance(value, str) else None
    if match is None or int(match[1]) > 100:  # noqa: PLR2004 - per cent
        raise wrong(f"must be a percentage from 0% to 100%, got {show_value(value)}")
    return int(match[1])


def _read_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(f"must be a whole number, got {show_value(value)}")
    return value


def _typed(reader: Callable[[object], object], *forms: Mapping[str, object]) -> _Type:
    return BeforeValidator(reader), WithJsonSchema({"anyOf": list(forms)})


def _text(pattern: str, example: str) -> Mapping[str, object]:
    return {"type": "string", "pattern": pattern, "examples": [example]}


_NUMBER = r"^[0-9]+(\.[0-9]+)?\s*"
_ZERO: Mapping[str, object] = {"const": 0}
_SIZE = _typed(read_size, _text(_NUMBER + f"({'|'.join(SIZES)})$", "4KiB"), _ZERO)
_DURATION = _typed(read_duration, _text(_NUMBER + f"({'|'.join(DURATIONS)})$", "250ms"), _ZERO)
_RATE = _typed(read_rate, _text(_NUMBER + f"({'|'.join(RATES)})$", "50/s"))
_OCTAL: Mapping[str, object] = {"type": "integer", "minimum": 0}
_MODE = _typed(_read_mode, _text("^(0o)?[0-7]{1,5}$", "0o644"), _OCTAL)
_PERCENT = _typed(_read_percent, _text(r"^[0-9]{1,3}\s*%$", "50%"))

Size = Annotated[int, _SIZE[0], _SIZE[1]]
"""Bytes."""
Duration = Annotated[int, _DURATION[0], _DURATION[1]]
"""Nanoseconds."""
Rate = Annotated[float, _RATE[0], _RATE[1]]
"""Events per second."""
Mode = Annotated[int, _MODE[0], _MODE[1]]
"""Permission bits."""
Percent = Annotated[int, _PERCENT[0], _PERCENT[1]]
"""0 to 100."""
_WHOLE = BeforeValidator(_read_count)
Count = Annotated[int, Field(ge=0, le=MAX_VALUE), _WHOLE]
"""A whole number, not negative."""
Positive = Annotated[int, Field(ge=1, le=MAX_VALUE), _WHOLE]
"""A whole number, at least 1."""
Seed = Annotated[int, Field(ge=0, lt=2**64), _WHOLE]
"""What random draws come from."""
Weight = Annotated[int, Field(ge=0, le=MAX_WEIGHT), _WHOLE]
"""How often one of several is drawn, beside the weights of the others."""
