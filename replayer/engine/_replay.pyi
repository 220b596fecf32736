"""The contract of the native module's part for replays: a stub alone, there is no such module.

``Engine.divergences`` returns JSON: counts ``performances``, ``events``, ``compared`` and
``matched``; ``omitted`` and ``allowed`` by reason; ``diverged``, a list of ``target``,
``transaction``, ``op``, ``recorded``, ``got`` and ``count``; ``drift_ns``: how much later than due
the last event of a timed performance ended; ``examples``, 20 and the first of each target, with
``target``, ``user``, ``performance``, ``trace``, ``row``, ``thread``, ``op``, ``path``,
``recorded``, ``got``, ``result_recorded`` and ``result_got``; ``targets``, a list of the same
counts by target.
"""

__all__ = ["trace_check_order"]

def trace_check_order(trace: str, log: str) -> str:
    """Whether the performances of an event log (its directory) kept the order of their trace.

    JSON: ``performances``, ``events``, ``edges``, ``violated`` and ``first``: null, or the first
    violation. ValueError: it is no trace; OSError: the kernel.
    """
