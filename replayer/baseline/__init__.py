"""Baselines: fio's jobs on the user's targets, kept and ranked as runs of scenarios are.

What the targets can do at the most, beside what an application gets of it. fio itself is the
engine's (``replayer.fio``); what is here leads it through jobs, targets and rounds.
"""

from replayer.baseline.flow import run_baseline
from replayer.baseline.jobs import shipped_jobs
from replayer.baseline.order import Order

__all__ = ["Order", "run_baseline", "shipped_jobs"]
