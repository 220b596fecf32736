"""What plan format 1 can hold: the sizes, times and counts of a step, and how many pickers.

The engine refuses what is beyond it, but cannot say where a scenario has it from.
"""

from replayer.plan.bindings import refuse
from replayer.plan.scope import Book
from replayer.scenario import calls as c
from replayer.scenario.document import Key
from replayer.scenario.references import draws_of

MAX_NUMBER = 2**63 - 1
MAX_PICKERS = 2**16
MAX_READ_BYTES = 2**30
MAX_WRITE_BYTES = 2**34 - 4096  # what writes are sliced from is as large, and 4096 bytes


def check_bounds(book: Book, step: c.StepPart, key: Key) -> None:
    """Check that a step asks for no more than an engine can do in one call.

    Raises:
        PlanError: It can draw a larger number.
    """
    for draw_key, draw in draws_of(step, key):
        _check(book, draw_key, book.largest(draw), MAX_NUMBER)
    if isinstance(step, c.Read | c.AtOffset) and step.do != "pwrite":
        _check(book, (*key, "size"), book.largest(step.size), MAX_READ_BYTES)
    written = largest_write(book, step)
    where = "block" if isinstance(step, c.Write) else "size"
    _check(book, (*key, where), written, MAX_WRITE_BYTES)


def check_pickers(book: Book) -> None:
    """Check that the transactions do not pick files in more ways than steps can refer to.

    Raises:
        PlanError: They do.
    """
    found = len(book.pickers.rows)
    if found > MAX_PICKERS:
        message = f"pick and name files in {found:,} different ways, at most {MAX_PICKERS:,} fit"
        hint = "each path of a script is one: take a shorter script"
        raise refuse(book, ("transactions",), message, hint)


def largest_write(book: Book, step: c.StepPart) -> int:
    """Return how many bytes one call of a step writes at most."""
    match step:
        case c.Write():
            pieces = [step.block] if step.first is None else [step.first, step.block]
            return min(book.largest(step.size), max(map(book.largest, pieces)))
        case c.AtOffset(do="pwrite") | c.Setxattr():
            return book.largest(step.size)
        case _:
            return 0


def _check(book: Book, key: Key, value: int, most: int) -> None:
    if value > most:
        message = f"must be at most {most:,} for one call, and can be {value:,}"
        raise refuse(book, key, message)
