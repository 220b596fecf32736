"""How the trace room refuses."""

from replayer.errors import ReplayerError

__all__ = ["TraceError"]


class TraceError(ReplayerError):
    """A log cannot be imported, or a folder is no trace that can be read."""
