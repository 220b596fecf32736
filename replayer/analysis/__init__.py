"""What a run's figures hide: steps, drift, silences, groups, outliers, and what is to blame.

Reads records of runs and judges nothing: a finding is neither a pass nor a failure. Reports print
what is found.
"""

from replayer.analysis.acknowledgement import find_acknowledged
from replayer.analysis.composition import analyse
from replayer.analysis.drift import exceedance, find_slope
from replayer.analysis.finding import (
    Acknowledged,
    Analysis,
    Between,
    Drift,
    FirstTouch,
    Modes,
    Outliers,
    Silence,
    Step,
    Tail,
    Unfinished,
)
from replayer.analysis.modes import find_split
from replayer.analysis.resampling import (
    DRAWS,
    LEAST_SLOTS,
    Figure,
    Interval,
    Resampled,
    ratio_interval,
    resample,
    resample_mixture,
)
from replayer.analysis.slots import (
    Distribution,
    Subject,
    Widening,
    read_distributions,
)
from replayer.analysis.steps import Shift, find_shifts

__all__ = [
    "DRAWS",
    "LEAST_SLOTS",
    "Acknowledged",
    "Analysis",
    "Between",
    "Distribution",
    "Drift",
    "Figure",
    "FirstTouch",
    "Interval",
    "Modes",
    "Outliers",
    "Resampled",
    "Shift",
    "Silence",
    "Step",
    "Subject",
    "Tail",
    "Unfinished",
    "Widening",
    "analyse",
    "exceedance",
    "find_acknowledged",
    "find_shifts",
    "find_slope",
    "find_split",
    "ratio_interval",
    "read_distributions",
    "resample",
    "resample_mixture",
]
