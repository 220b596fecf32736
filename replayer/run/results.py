"""What is judged and shown at the end of a run: read back from its folder, as any report is."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from replayer.errors import EXIT_INCONCLUSIVE, ReplayerError, drop_output, in_lines
from replayer.measure.credits import with_credits
from replayer.measure.record import RunRecord, load_run
from replayer.measure.run import Run, with_results
from replayer.measure.runfolder import RunFolder
from replayer.plan.summary import describe_plan
from replayer.report.composition import compose, headlines_of
from replayer.report.description import say_verdict
from replayer.report.document import Document
from replayer.report.duet import with_duet
from replayer.report.first_screen import render_first_screen
from replayer.report.forms import ReportFiles
from replayer.report.html import render_html
from replayer.report.json_form import render_json
from replayer.report.junit import render_junit
from replayer.report.regression import judged_against
from replayer.report.style import Style
from replayer.report.table import render_table
from replayer.run.options import Beside, Results, Settings
from replayer.run.targets import NamedTarget
from replayer.run.workload import Workload
from replayer.run.writer import RunEnding, RunWriter
from replayer.verdict.threshold import Names, check_names, parse_threshold


def check_thresholds(
    workload: Workload, targets: Sequence[NamedTarget], transactions: tuple[str, ...] | None
) -> None:
    """Refuse thresholds that are none, or on something that the run will not have.

    Without ``transactions``, what users do shows only as they do it.

    Raises:
        ReplayerError: With the value and the nearest known name.
    """
    thresholds = [parse_threshold(text, source) for text, source in workload.thresholds]
    names = Names(
        targets=tuple(target.name for target in targets),
        transactions=transactions,
        ops=describe_plan(workload.plan).ops,
    )
    check_names(thresholds, names)


@dataclass(frozen=True)
class Shown:
    """What came of showing results."""

    exit_code: int
    problems: tuple[ReplayerError, ...] = ()
    """What could not be read, kept, written or printed."""
    verdict: Literal["pass", "fail", "inconclusive"] | None = None
    """What the run proves; None where that is not known."""
    why: str = ""


def end_run(
    writer: RunWriter, ending: RunEnding, settings: Settings, failure: ReplayerError | None
) -> Shown:
    """Write how a run ended, show its results, and say what went wrong, first why it failed."""
    refused = writer.end(ending)
    shown = show_results(
        writer.folder, writer.run, settings.results, settings.files, settings.beside
    )
    problems = say_problems([failure, refused, *shown.problems])
    if problems:
        return Shown(problems[0].exit_code, problems)
    if ending.status == "interrupted":
        say_interrupted(writer.folder)
    return shown


def show_results(
    folder: RunFolder,
    run: Run,
    form: Results,
    files: ReportFiles,
    beside: Beside | None = None,
) -> Shown:
    """Judge a run, keep the judgement, and tell it; what refuses costs nothing else.

    ``run`` is how it ended, for where its folder has taken no more.
    """
    try:
        record = load_run(folder.path, run)
        if beside is not None and beside.baseline is not None:
            record = judged_against(record, beside.baseline)
        record, lacking = _with_credits(record, beside)
        record = with_duet(record)
        document = compose(record)
    except ReplayerError as error:
        return Shown(EXIT_INCONCLUSIVE, (error,))
    verdict = document.verdict
    judged = with_results(
        record.run,
        summary=document.summary,
        verdict=verdict.outcome,
        headlines=headlines_of(document),
    )
    problems = (
        *lacking,
        *_refused(partial(folder.write_run, judged)),
        *files.write(lambda: render_html([record]), lambda: render_junit(document)),
        *_refused(partial(_print, document, form)),
    )
    return Shown(verdict.exit_code, problems, verdict.outcome, say_verdict(document))


def _with_credits(
    record: RunRecord, beside: Beside | None
) -> tuple[RunRecord, tuple[ReplayerError, ...]]:
    """Lay a cloud's metrics beside a run; a file that went bad meanwhile costs nothing else."""
    try:
        return with_credits(record, () if beside is None else beside.credits), ()
    except ReplayerError as error:
        return record, (error,)


def say_problems(found: Iterable[ReplayerError | None]) -> tuple[ReplayerError, ...]:
    """Say what went wrong, each once, and return it."""
    problems = {str(problem): problem for problem in found if problem is not None}
    for problem in problems.values():
        sys.stderr.write(f"{in_lines(problem)}\n")
    return tuple(problems.values())


def say_interrupted(folder: RunFolder) -> None:
    """Say that a run's figures are not those of all of it."""
    text = f"replayer: interrupted: the figures include what ran until then ({folder.path})"
    sys.stderr.write(f"{text}\n")


def _refused(step: Callable[[], None]) -> Iterator[ReplayerError]:
    try:
        step()
    except ReplayerError as error:
        yield error


def _print(document: Document, form: Results) -> None:
    """Print; a reader that has gone changes neither the exit code nor the cleaning.

    Raises:
        OutsideError: It cannot be written.
    """
    try:
        if form == "json":
            print(render_json(document), flush=True)
        elif form != "none":
            render = render_table if form == "details" else render_first_screen
            print(render(document, Style.of(sys.stdout)), flush=True)
    except BrokenPipeError:
        drop_output()
