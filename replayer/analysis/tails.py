"""How unlikely a value is, given the tail of others: Hill's estimate of a power-law tail.

B. M. Hill, 'A simple general approach to inference about the tail of a distribution' (Annals of
Statistics 1975). For tails that are lighter than a power law the chance comes out too high, never
too low: such a judgement errs to the side of silence.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["exceedance"]

TAIL_SHARE = 0.1  # chosen: the tenth of the values that are its tail
FEWEST = 5  # values of a tail, at least: chosen
FLOOR = 0.02  # chosen: values are not told apart below 2 %


def exceedance(values: NDArray[np.float64], value: float) -> float:
    """Return the chance that one more value like these is at least as high as ``value``.

    From their ranks within the range of the values, from a power law beyond it.

    Args:
        values: Positive, at least one.
        value: Positive.
    """
    ranked = np.sort(values)
    above = int((ranked >= value).sum())
    if above:
        return (above + 1) / (ranked.size + 1)
    tail = max(int(ranked.size * TAIL_SHARE), FEWEST)
    if ranked.size <= tail:
        return 1 / (ranked.size + 1)
    begin = max(float(ranked[-tail - 1]), np.finfo(np.float64).tiny)
    mean_excess = max(float(np.log(ranked[-tail:] / begin).mean()), FLOOR)
    beyond = tail / ranked.size * (value / begin) ** (-1 / mean_excess)
    return float(min(beyond, 1 / (ranked.size + 1)))
