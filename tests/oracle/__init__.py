"""A slow, obvious engine in Python: the oracle that the native engine is held against.

It does what replayer/plan/FORMAT.md says, sentence by sentence, one user after the other, without
pacing and without a clock. It never measures and nothing of the product runs on it; the tests
compare its samples and the tree that it leaves with the native engine's.
"""

from tests.oracle.content import make_pool, thinned
from tests.oracle.layout import EntryState, lay_out, tree
from tests.oracle.randomness import (
    Stream,
    mix64,
    ops_stream,
    shuffled,
    stage_stream,
)
from tests.oracle.run import ReferenceRun, in_turns, run_plan
from tests.oracle.user import Sample

__all__ = [
    "EntryState",
    "ReferenceRun",
    "Sample",
    "Stream",
    "in_turns",
    "lay_out",
    "make_pool",
    "mix64",
    "ops_stream",
    "run_plan",
    "shuffled",
    "stage_stream",
    "thinned",
    "tree",
]
