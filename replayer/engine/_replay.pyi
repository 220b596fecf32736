"""The contract of the native module's part for replaying traces: a stub alone."""

__all__ = ["trace_census", "trace_check_order", "trace_history"]

def trace_census(folder: str, request: str | None) -> str:
    """What a trace, or its requests of a label, does: JSON."""

def trace_history(folder: str, row: int, limit: int) -> str:
    """The events before a row that touched the same things, newest first: JSON."""

def trace_check_order(trace: str, log: str) -> str:
    """The event log of a replay held against the order of its trace: JSON."""
