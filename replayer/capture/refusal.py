"""What can be wrong with a machine or a process when a capture is asked for."""

from replayer.errors import EXIT_ENVIRONMENT, EXIT_INCONCLUSIVE, ReplayerError

__all__ = ["NothingRecordedError", "TracerError"]


class TracerError(ReplayerError):
    """Nothing can be recorded here: strace is missing, too old, or not permitted."""

    exit_code = EXIT_ENVIRONMENT


class NothingRecordedError(ReplayerError):
    """The recording is empty."""

    exit_code = EXIT_INCONCLUSIVE
