"""What a run's figures hide: steps, drift, silences, groups, outliers, and what is to blame.

Reads records of runs and judges nothing: a finding is neither a pass nor a failure. Reports print
what is found.
"""

from replayer.analysis.composition import analyse
from replayer.analysis.drift import Slope, find_slope
from replayer.analysis.finding import (
    Acknowledged,
    Analysis,
    Drift,
    FirstTouch,
    Modes,
    Outliers,
    Promise,
    Silence,
    SlowPath,
    Step,
    Tail,
    TailOp,
)
from replayer.analysis.modes import Split, find_split
from replayer.analysis.series import Series, chart_series
from replayer.analysis.steps import Shift, find_shifts
from replayer.analysis.tails import exceedance

__all__ = [
    "Acknowledged",
    "Analysis",
    "Drift",
    "FirstTouch",
    "Modes",
    "Outliers",
    "Promise",
    "Series",
    "Shift",
    "Silence",
    "Slope",
    "SlowPath",
    "Split",
    "Step",
    "Tail",
    "TailOp",
    "analyse",
    "chart_series",
    "exceedance",
    "find_shifts",
    "find_slope",
    "find_split",
]
