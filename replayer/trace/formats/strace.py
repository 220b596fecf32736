"""Imports strace text of every flavour: -f, -ff, -t to -ttt, -r, -T, -y, raw calls, old kernels."""

from typing import Final, Literal, cast

from replayer.trace import native

__all__ = ["ABOUT", "NAME", "is_applicable"]

NAME: Final = "strace"
ABOUT: Final = (
    "strace text of every flavour: -f, -ff, -t to -ttt, -r, -T, -y, raw calls, old kernels"
)


def is_applicable(head: bytes) -> Literal["yes", "no", "need more"]:
    """Tell from its beginning whether a file has this format."""
    return cast('Literal["yes", "no", "need more"]', native.is_applicable(NAME, head))
