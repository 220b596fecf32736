"""A mount looked over: how it is mounted, what its manuals say about that, and a short probe.

Advice comes from the mount's type and options alone and names its source. The probe makes real
calls through the engine, in a folder of its own that is removed again.
"""

from replayer.doctor.advice import Advice, advise
from replayer.doctor.examination import Examination, examine, render_examination
from replayer.doctor.probe import Probe, ProbedOp, run_probe

__all__ = [
    "Advice",
    "Examination",
    "Probe",
    "ProbedOp",
    "advise",
    "examine",
    "render_examination",
    "run_probe",
]
