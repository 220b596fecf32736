"""fio as one more engine: its job files checked, run in a run's folder, its results recorded.

fio's own processes touch the mount; nothing here does. Results go into the run folder in the forms
that the native engine writes, and from there to every report.
"""

from replayer.fio.amounts import (
    bytes_needed,
    depth,
    processes,
    processes_at_once,
    seconds_needed,
)
from replayer.fio.checking import check_job_file, check_values
from replayer.fio.clock import verifies_after
from replayer.fio.fence import find_confinement
from replayer.fio.jobfile import JobFile, JobFileError, Section, parse_job_file
from replayer.fio.options import FILE_CALLS
from replayer.fio.process import FioProcess, Launch, children_of, tasks_of
from replayer.fio.program import FioError, Program, find_fio
from replayer.fio.recorder import Gain, Recorder
from replayer.fio.snapshot import WAYS, JobState, Share, Snapshot, parse_snapshot
from replayer.fio.writing import Scale, folders_of, render_job_file, scaled

__all__ = [
    "FILE_CALLS",
    "OPS",
    "FioError",
    "FioProcess",
    "Gain",
    "JobFile",
    "JobFileError",
    "JobState",
    "Launch",
    "Program",
    "Recorder",
    "Scale",
    "Section",
    "Share",
    "Snapshot",
    "bytes_needed",
    "check_job_file",
    "check_values",
    "children_of",
    "depth",
    "find_confinement",
    "find_fio",
    "folders_of",
    "parse_job_file",
    "parse_snapshot",
    "processes",
    "processes_at_once",
    "render_job_file",
    "scaled",
    "seconds_needed",
    "tasks_of",
    "verifies_after",
]

OPS = (*WAYS.values(), *FILE_CALLS.values())
"""What jobs do, under the names that it is kept by."""
