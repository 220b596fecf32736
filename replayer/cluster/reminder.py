"""How often a wait is told of: when it gets on, and ever more rarely while it does not."""

__all__ = ["Reminder"]

FIRST_S = 5.0  # chosen: whoever starts workers along with their master need not be told
RARELY_S = 300.0
"""Chosen: a log of a night's waiting then has some hundred lines."""
AT_MOST_EVERY_S = 1.0  # chosen: workers that come one after the other are told of together


class Reminder:
    """One wait, for a number to grow.

    Args:
        now_s: When it begins.
    """

    def __init__(self, now_s: float) -> None:
        self._said_s = now_s
        self._said: int | None = None
        self._pause_s = FIRST_S

    def is_due(self, count: int, now_s: float) -> bool:
        """Whether to say now how far it is; who is told so says it."""
        silent_s = now_s - self._said_s
        changed = self._said is not None and count != self._said
        if silent_s < (AT_MOST_EVERY_S if changed else self._pause_s):
            return False
        known = self._said is not None and not changed
        self._pause_s = min(2 * self._pause_s, RARELY_S) if known else 2 * FIRST_S
        self._said, self._said_s = count, now_s
        return True
