"""``replayer study``: published studies on targets of one's own."""

import argparse
import json
import sys
from pathlib import Path

from replayer.errors import ReplayerError
from replayer.report.style import Style, fold
from replayer.run.options import add_printed_options
from replayer.study.flow import (
    StudyOptions,
    StudyRequest,
    announce,
    exit_code_of,
    resume_study,
    run_study,
)
from replayer.study.journal import Journal
from replayer.study.model import Study, load_studies, load_study
from replayer.study.results import fill_tables, find_stand_outs, find_verdicts, load_measured
from replayer.study.table import Remarks, render_study, render_study_screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "study",
        nargs="?",
        metavar="NAME",
        help="letter or name of a study (default: list the studies)",
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="a folder on a mount to measure; repeatable (default: show the published tables)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="finish within 3 minutes: shorter and smaller"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        choices=range(1, 101),
        metavar="N",
        help="turns of each target; not with --quick",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the study's records (default: new, in ./replayer-studies)",
    )
    parser.add_argument("--resume", type=Path, metavar="DIR", help="continue an interrupted study")
    add_printed_options(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> int:
    """Run, resume, show or list studies."""
    if arguments.resume is not None:
        _refuse_beside("--resume keeps the options of the study", arguments, *_OF_A_START, "study")
        journal = resume_study(arguments.resume, quiet=arguments.quiet)
        return _end(load_study(journal.state.study), journal, arguments)
    if arguments.study is None:
        _refuse_beside("no study is given", arguments, *_OF_A_START, "results", "quiet")
        _list_studies()
        return 0
    study = load_study(arguments.study)
    if not arguments.target:
        said = "without --target the published tables are shown and nothing is measured"
        _refuse_beside(said, arguments, *_OF_A_START, "quiet")
        _show(study, None, arguments)
        return 0
    if arguments.quick:
        _refuse_beside("--quick chooses them", arguments, "rounds")
    order = StudyRequest(
        study=study,
        source=_source(arguments.study, study),
        targets=tuple(arguments.target),
        quick=arguments.quick,
        rounds=arguments.rounds,
        output=arguments.output,
        quiet=arguments.quiet,
    )
    return _end(study, run_study(order), arguments)


_OF_A_START = ("target", "quick", "rounds", "output")
"""What is said once, when a study begins."""


def _refuse_beside(said: str, arguments: argparse.Namespace, *names: str) -> None:
    """Refuse words that would be without effect beside the others."""
    for name in names:
        value = getattr(arguments, name)
        if value and value != "screen":
            word = {"study": value, "results": f"--{value}"}.get(name, f"--{name}")
            message = f"{word} has no effect: {said}"
            raise ReplayerError(message, hint=f"leave {word} out; see replayer study --help")


def _end(study: Study, journal: Journal, arguments: argparse.Namespace) -> int:
    _show(study, journal, arguments)
    if not all(map(journal.is_done, study.steps)):
        print(
            "replayer: some steps are not done; continue with: replayer study --resume "
            f"{journal.path}",
            file=sys.stderr,
        )
    return exit_code_of(study, journal)


def _show(study: Study, journal: Journal | None, arguments: argparse.Namespace) -> None:
    steps = {} if journal is None else load_measured(study, journal)
    tables = fill_tables(study, steps, quick=journal is not None and journal.state.quick)
    remarks = Remarks(find_verdicts(steps), find_stand_outs(steps))
    style = Style.of(sys.stdout)
    if arguments.results == "screen" and journal is not None:
        print(render_study_screen(study, tables, journal, remarks, style), end="")
        return
    if arguments.results != "json":
        print(render_study(study, tables, journal, remarks, style), end="")
        return
    document = {
        "schema": "replayer-study-1",
        "study": study.model_dump(exclude={"tables", "steps"}),
        "state": None if journal is None else journal.state.model_dump(),
        "folder": None if journal is None else str(journal.path),
        "tables": [table.model_dump() for table in tables],
        "verdicts": [found.model_dump() for found in remarks.verdicts],
        "stand_outs": [found.model_dump() for found in remarks.stand_outs],
    }
    print(json.dumps(document, indent=2))


def _source(word: str, study: Study) -> str:
    return str(Path(word).absolute()) if word.endswith(".yaml") else study.name


def _list_studies() -> None:
    for study in load_studies():
        terms = StudyOptions(("target",), quick=False, rounds=None, steps=len(study.steps))
        title = f"{study.letter}  {study.name}: {study.title}"
        source = f"   {study.source}; one target takes {announce(study, terms)}"
        print("\n".join(fold((title, source), Style.of(sys.stdout))))
    print("\nreplayer study NAME --target PATH [--target PATH]… [--quick]", file=sys.stderr)
