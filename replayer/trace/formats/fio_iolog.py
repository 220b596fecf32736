"""Imports fio's iolog, versions 2 and 3."""

from typing import Final, Literal, cast

from replayer.trace import native

__all__ = ["ABOUT", "NAME", "is_applicable"]

NAME: Final = "fio-iolog"
ABOUT: Final = "fio's iolog, versions 2 and 3"


def is_applicable(head: bytes) -> Literal["yes", "no", "need more"]:
    """Tell from its beginning whether a file has this format."""
    return cast('Literal["yes", "no", "need more"]', native.is_applicable(NAME, head))
