"""What is judged and shown at the end of a run: read back from its folder, as any report is."""

import sys
from collections.abc import Sequence
from typing import Literal

from replayer.errors import drop_output
from replayer.load.targets import Target
from replayer.load.workload import Workload
from replayer.measure import RunFolder, load_run, with_results
from replayer.plan import describe_plan
from replayer.report import (
    ReportFiles,
    Style,
    compose,
    render_html,
    render_json,
    render_junit,
    render_table,
)
from replayer.verdict import Names, check_names, parse_threshold

__all__ = ["check_thresholds", "show_results"]


def check_thresholds(workload: Workload, targets: Sequence[Target]) -> None:
    """Refuse thresholds that are none, or on something that the run will not have.

    Raises:
        ReplayerError: With the value and the nearest known name.
    """
    thresholds = [parse_threshold(text, source) for text, source in workload.thresholds]
    names = Names(
        targets=tuple(target.name for target in targets),
        transactions=tuple(each["name"] for each in workload.plan.body["transactions"]),
        ops=describe_plan(workload.plan).ops,
    )
    check_names(thresholds, names)


def show_results(
    folder: RunFolder, form: Literal["tables", "json", "none"], files: ReportFiles
) -> int:
    """Judge the run in a folder, keep the judgement there, tell it, and return its exit code.

    Raises:
        ReplayerError: A report could not be written to its file, or printed; everything else is
            done then.
    """
    record = load_run(folder.path)
    document = compose(record)
    folder.write_run(
        with_results(record.run, summary=document.summary, verdict=document.verdict.outcome)
    )
    try:
        files.write(lambda: render_html([record]), lambda: render_junit(document))
    finally:
        if form == "json":
            _print(render_json(document))
        elif form == "tables":
            _print(render_table(document, Style.of(sys.stdout)))
    return document.verdict.exit_code


def _print(text: str) -> None:
    """Print; a reader that has gone changes neither the exit code nor the cleaning.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        drop_output()
