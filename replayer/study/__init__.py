"""Published studies, run again on the user's targets and shown beside what was published.

A study is data (``scenarios/studies``): its steps are baselines and scenarios, its tables name
figures of their run folders. Steps run as commands of their own; nothing here measures.
"""

from replayer.study.flow import StudyRequest, exit_code_of, resume_study, run_study
from replayer.study.measured import find_stand_outs, find_verdicts, load_measured
from replayer.study.model import Study, load_studies, load_study
from replayer.study.results import fill_tables
from replayer.study.table import Remarks, render_study

__all__ = [
    "Remarks",
    "Study",
    "StudyRequest",
    "exit_code_of",
    "fill_tables",
    "find_stand_outs",
    "find_verdicts",
    "load_measured",
    "load_studies",
    "load_study",
    "render_study",
    "resume_study",
    "run_study",
]
