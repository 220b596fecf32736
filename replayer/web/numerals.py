"""Whole numbers that are sent: Python refuses to read some thousand digits."""

__all__ = ["whole_number"]

MOST_DIGITS = 18
"""Chosen: what the kernel counts has no more."""


def whole_number(text: str) -> int | None:
    """Return what was sent as a number; None if it is none that can be meant."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
