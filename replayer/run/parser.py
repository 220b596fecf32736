"""What argparse, a group of its arguments and Locust's parser have in common.

Options are declared for all of them; what they mean never lives here.
"""

from typing import Any, Protocol

__all__ = ["Parser"]


class Parser(Protocol):
    """Something that takes declarations of arguments."""

    def add_argument(self, *name_or_flags: str, **kwargs: Any) -> object:  # noqa: ANN401 - theirs
        """Declare one argument."""

    def add_mutually_exclusive_group(self) -> "Parser":
        """Return where arguments are declared of which at most one may be given."""
