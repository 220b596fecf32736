"""What can be wrong with a machine or a process when a capture is asked for."""

from pathlib import Path

from replayer.errors import EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE, ReplayerError

__all__ = ["LostLogError", "NothingRecordedError", "TracerError"]


class TracerError(ReplayerError):
    """Nothing can be recorded here: strace is missing, too old, or not permitted."""

    exit_code = EXIT_ENVIRONMENT


class NothingRecordedError(ReplayerError):
    """The recording is empty."""

    exit_code = EXIT_INCONCLUSIVE


class LostLogError(ReplayerError):
    """What strace writes is gone, or cannot be reached.

    Args:
        path: Where it was.
        reason: What became of it, in words to follow its name.
    """

    exit_code = EXIT_ENVIRONMENT

    def __init__(self, path: Path, reason: str) -> None:
        message = f"{path}: the log {reason}: what was recorded is lost"
        super().__init__(message, hint="-o says where it is written: name a disk of this machine")
