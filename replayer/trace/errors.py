"""How the trace room refuses."""

from replayer.errors import EXIT_ENVIRONMENT, ReplayerError

__all__ = ["WRITABLE", "TraceError", "UnmadeTraceError"]


class TraceError(ReplayerError):
    """A log cannot be imported, or a folder is no trace that can be read."""


class UnmadeTraceError(TraceError):
    """Nothing can be made where a trace is to be."""

    exit_code = EXIT_ENVIRONMENT


WRITABLE = "name a trace in a folder that you can write"
"""What to do about a place that takes none."""
