"""Removing a run's folder when no master orders it: its maker does, or the successor."""

import gevent

from replayer.errors import ReplayerError
from replayer.run.interruption import InterruptedRunError
from replayer.run.target_dir import AWAY, HANGING, TargetDir

__all__ = ["remove_patiently"]

REMOVALS = 10
AGAIN_S = 1.0
"""Chosen: workers find out within a second of each other that their master is gone."""


def remove_patiently(target_dir: TargetDir, *, hung: bool) -> list[str]:
    """Remove a folder; other workers may be at work there for a moment longer.

    Args:
        target_dir: Where it is.
        hung: Calls hang, and it is not known on which target.

    Returns:
        What is left, in lines.
    """
    if hung or target_dir.is_hanging:
        return target_dir.say_left(HANGING)
    if not target_dir.sandboxes:
        return target_dir.say_left(AWAY)
    loss = target_dir.find_loss()
    return _try_to_remove(target_dir) if loss is None else [loss.remedy]


def _try_to_remove(target_dir: TargetDir) -> list[str]:
    for left in reversed(range(REMOVALS + 1)):
        try:
            target_dir.remove()
        except ReplayerError as error:
            if not left or isinstance(error, InterruptedRunError):  # its user has had enough
                return target_dir.say_left(str(error))
            gevent.sleep(AGAIN_S)
        else:
            break
    return []
