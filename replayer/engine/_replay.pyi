"""The contract of the native module's part for replaying traces: a stub alone."""

__all__ = ["trace_check_order"]

def trace_check_order(trace: str, log: str) -> str:
    """The event log of a replay held against the order of its trace: JSON."""
