"""Removing a run's folder when no master orders it: the worker that made it does, or its heir."""

import gevent

from replayer.errors import ReplayerError
from replayer.load.ground import AWAY, HANGING, Ground
from replayer.load.interruption import InterruptedRunError

__all__ = ["remove_patiently"]

REMOVALS = 10
AGAIN_S = 1.0
"""Chosen: workers find out within a second of each other that their master is gone."""


def remove_patiently(ground: Ground, *, hung: bool) -> list[str]:
    """Remove a folder; other workers may be at work there for a moment longer.

    Args:
        ground: Where it is.
        hung: Calls hang, and it is not known on which target.

    Returns:
        What is left, in lines.
    """
    if hung or ground.is_hanging:
        return ground.say_left(HANGING)
    if not ground.sandboxes:
        return ground.say_left(AWAY)
    loss = ground.find_loss()
    return _try_to_remove(ground) if loss is None else [loss.remedy]


def _try_to_remove(ground: Ground) -> list[str]:
    for left in reversed(range(REMOVALS + 1)):
        try:
            ground.remove()
        except ReplayerError as error:
            if not left or isinstance(error, InterruptedRunError):  # its user has had enough
                return ground.say_left(str(error))
            gevent.sleep(AGAIN_S)
        else:
            break
    return []
