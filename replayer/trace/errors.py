"""How the trace room refuses."""

from collections.abc import Iterator
from contextlib import contextmanager

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError

__all__ = ["WRITABLE", "TraceError", "UnmadeTraceError", "translated"]


class TraceError(ReplayerError):
    """A log cannot be imported, or a folder is no trace that can be read."""


class UnmadeTraceError(TraceError):
    """No trace can be made at this place."""

    exit_code = EXIT_ENVIRONMENT


WRITABLE = "name a trace in a folder that you can write to"
"""The hint for a place that takes no trace."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the native module into errors of this room.

    Raises:
        TraceError: The native module has refused.
    """
    try:
        yield
    except ValueError as error:
        message, hint = error.args if len(error.args) == 2 else (str(error), "")  # noqa: PLR2004 - a pair
        raise TraceError(message, hint=hint) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise TraceError(message) from error
