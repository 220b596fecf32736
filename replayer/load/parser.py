"""What argparse, a group of its arguments and Locust's parser have in common.

Options are declared for all of them; what they mean never lives here.
"""

from typing import Any, Protocol

__all__ = ["Parser"]


class Parser(Protocol):
    """Something that takes declarations of arguments."""

    def add_argument(self, *name_or_flags: str, **kwargs: Any) -> object:  # noqa: ANN401 - theirs
        """Declare one argument."""
