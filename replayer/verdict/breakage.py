"""Errors that say that the ground broke away: no space, read-only, the mount gone.

They are none of the program that a scenario stands for, nor of how fast a file system is: a run
that fails by them has to be run again. Nothing is judged here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from replayer.measure import OutcomeSummary, TargetSummary, format_count

__all__ = ["breakages_among", "say_breakages"]

_MEANINGS: Mapping[str, str] = {
    "ENOSPC": "there was no space or no inode left",
    "EDQUOT": "the quota was used up",
    "EROFS": "it was read-only",
    "ESTALE": "what was open was gone from the server",
    "ENOTCONN": "the mount was gone",
    "ECONNABORTED": "the mount was gone",
    "EHOSTDOWN": "the server was down",
    "ETIMEDOUT": "the server did not answer",
    "EIO": "the mount could not read or write",
}


def breakages_among(outcomes: Iterable[OutcomeSummary]) -> Counter[str]:
    """Count the unexpected outcomes that say so, by their errno names."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        if not outcome.expected and outcome.outcome in _MEANINGS:
            found[outcome.outcome] += outcome.count
    return found


def say_breakages(target: TargetSummary) -> str:
    """Say in a sentence what broke on a target, worst first."""
    found = breakages_among(each for op in target.overall.ops for each in op.outcomes)
    told = (
        f"{_MEANINGS[name]} ({format_count(count)} calls ended with {name})"
        for name, count in found.most_common()
    )
    return f"{target.name} broke during the run: {', '.join(told)}"
