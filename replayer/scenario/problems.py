"""How a scenario is refused: one line with file, line, name, value and bound, then a hint.

Nothing here reads files; the readers of this room raise what is defined here.
"""

import difflib
from collections.abc import Iterable

from replayer.errors import ReplayerError


class ScenarioError(ReplayerError):
    """A scenario (or an option that changes it) says something that cannot be run.

    Attributes:
        place: ``file:line`` or the option that is wrong.
    """

    def __init__(self, place: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{place}: {message}", hint=hint)
        self.place = place


def nearest_hint(name: str, known: Iterable[str], *, kind: str) -> str:
    """Return a hint that names the known word nearest to a mistaken one; ``kind`` is a plural."""
    words = list(known)
    near = difflib.get_close_matches(name, words, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    if not words:
        return f"there are no {kind} here"
    return f"known {kind}: {', '.join(words[:40])}"
