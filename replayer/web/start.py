"""The start page: what can be started, what it would do, and the same as a command line."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from flask import Blueprint, Response, jsonify, render_template, request

from replayer.errors import ReplayerError
from replayer.measure.facts import MountFacts, collect_facts
from replayer.measure.guarantee import Guarantee, guarantee_of
from replayer.measure.units import NS_PER_S, format_about, format_bytes, format_many, format_time_ns
from replayer.plan.summary import PlanSummary, TransactionExpectation, describe_plan
from replayer.run.options import Settings
from replayer.run.prepared_run import chosen_targets
from replayer.run.results import check_thresholds
from replayer.run.schedule import default_rounds
from replayer.run.targets import DEFAULT_FOLDER, NamedTarget
from replayer.run.threads import call_in_thread, call_within
from replayer.run.workload import make_workload
from replayer.web.form import CACHES, NO_BASELINE
from replayer.web.run_control import RunControl, with_hint

FACTS_S = 2.0  # chosen: a mount that answers no sooner is told as one that does not answer
MOST_OPS = 6  # chosen: the commonest ones say what a transaction is like
SHORT_S = 10  # chosen: of less, parts of a second are told
TOLD_OPTIONS = ("ro", "sync", "noac", "actimeo", "vers", "proto", "rsize", "wsize", "cache", "data")
"""Chosen: what of a mount's options changes what its users feel."""


def add_start(blueprint: Blueprint, control: RunControl) -> None:
    """Add what the start page asks for: facts of the targets, and what an order would do."""
    cards = TargetCards(
        is_default=not (control.form.settings.targets or control.form.settings.reuse)
    )

    @blueprint.route("/targets")
    def targets() -> Response:
        return jsonify([cards.of(target) for target in _targets(control)])

    @blueprint.route("/check", methods=["POST"])
    def check() -> Response:
        sent = {name: request.form.getlist(name) for name in request.form}
        try:
            settings = control.form.read(sent)
            # While one goes on, its process has nothing to do but to measure.
            lines = [] if control.run is not None else call_in_thread(foresee, settings)
        except ReplayerError as error:
            return jsonify({"success": False, "message": with_hint(error)})
        return jsonify({"success": True, "lines": lines, "command": command_of(settings)})


def render_start(control: RunControl) -> str:
    """Render the start page."""
    users, spawn_rate = control.load
    form = control.form
    given = form.settings.beside.baseline
    return render_template(
        "replayer/start.html",
        scenarios=[choice.name for choice in form.choices],
        targets=list(form.words),
        users=users,
        spawn_rate=spawn_rate,
        run_time=form.settings.run_time_s,
        caches=CACHES,
        cache=form.settings.cache or CACHES[0],
        limits="\n".join(form.settings.thresholds),
        baselines=[NO_BASELINE, *form.baselines],
        baseline=NO_BASELINE if given is None else given.name,
        has_scenarios=control.has_scenario_users,
        can_search=control.can_search,
    )


def _targets(control: RunControl) -> Sequence[NamedTarget]:
    return chosen_targets(control.form.settings) if control.has_targets else ()


class TargetCards:
    """What targets are. A mount that hangs keeps a thread: it is asked once, and never again."""

    def __init__(self, *, is_default: bool) -> None:
        self._is_default = is_default
        """Whether the target is the folder that the first run makes."""
        self._asked: dict[str, dict[str, Any]] = {}

    def of(self, target: NamedTarget) -> dict[str, Any]:
        """Describe a target as it is now."""
        own = {"name": target.name, "path": target.written or str(target.paths[0])}
        if target.name in self._asked:
            return self._asked[target.name]
        self._asked[target.name] = {**own, "wrong": "is being asked, and has not answered yet"}
        try:
            facts = self._facts(target.paths[0])
        except TimeoutError as error:
            self._asked[target.name] = {**own, "wrong": str(error)}
            return self._asked[target.name]
        except ReplayerError as error:
            facts = {"wrong": str(error)}
        del self._asked[target.name]
        return {**own, **facts}

    def _facts(self, path: Path) -> dict[str, str]:
        def ask() -> MountFacts | None:
            return None if self._is_default and not path.exists() else collect_facts(path)

        found = call_within(FACTS_S, ask, str(path))
        if found is None:
            return {"mount": "is made by the first run"}
        told = [each for each in found.all_options if each.split("=")[0] in TOLD_OPTIONS]
        return {
            "mount": f"{found.filesystem} {found.source}",
            "options": ", ".join(told),
            "free": f"{format_bytes(found.space.bytes_free)} free",
            "data": _where_data_is(guarantee_of(found)),
        }


def _where_data_is(promise: Guarantee) -> str:
    """Return where acknowledged data is, call by call."""
    return f"data after write: {promise.write}, close: {promise.close}, fsync: {promise.fsync}"


def foresee(settings: Settings) -> list[tuple[str, str]]:
    """Return what a run would do, as pairs of a label and a text.

    Raises:
        ReplayerError: It cannot be run.
    """
    if settings.scenario is None:
        return [("does", "the tasks of the locustfile")]
    targets = chosen_targets(settings)
    rounds = _rounds(settings, len(targets))
    workload = make_workload(settings, rounds)
    check_thresholds(workload, targets, workload.plan.transactions)
    in_turn = 1 if settings.duet else len(targets)
    return [*_foresee(describe_plan(workload.plan), workload.duration_ns, in_turn, rounds)]


def _rounds(settings: Settings, targets: int) -> int:
    is_judged = settings.beside.baseline is not None
    return settings.rounds or default_rounds(targets, duet=settings.duet, is_judged=is_judged)


def _foresee(
    summary: PlanSummary, duration_ns: int | None, in_turn: int, rounds: int
) -> Iterator[tuple[str, str]]:
    for each in summary.transactions:
        if each.share:
            yield each.name, _transaction(each)
    files = sum(each.files * each.copies for each in summary.datasets if each.laid_out)
    files += sum(each.files for each in summary.traces)
    laid_out = f"{format_many(files, 'file')}, {format_bytes(summary.laid_out_bytes)}"
    yield "lays out", f"{laid_out} on each target, before the clock starts"
    inodes = format_many(summary.inodes, "inode")
    yield "needs", f"{format_bytes(summary.space_bytes)} of free space, {inodes}"
    if duration_ns is None or summary.transactions_per_user is not None:
        yield "takes", "until each user has made its transactions"
    else:
        is_short = duration_ns < SHORT_S * NS_PER_S
        own = format_time_ns(duration_ns) if is_short else format_about(duration_ns / NS_PER_S)
        measured = f"{own} measured on each target"
        whole_ns = (duration_ns + rounds * summary.warm_up_ns) * in_turn
        whole = format_about(whole_ns / NS_PER_S)
        yield "takes", f"{measured}, about {whole} in all, and the time to lay out"
    if summary.warning is not None:
        yield "warning", summary.warning


def _transaction(found: TransactionExpectation) -> str:
    ops = sorted(found.ops.items(), key=lambda item: -item[1])[:MOST_OPS]
    mix = ", ".join(f"{count:,.4g} {name}" for name, count in ops)
    return (
        f"{found.share:.0%} · {found.ops_total:,.4g} calls ({mix}) · "
        f"reads {format_bytes(found.bytes_read)}, writes {format_bytes(found.bytes_written)}"
    )


def command_of(settings: Settings) -> str:
    """Return the command line that starts the same run; nothing where it takes other options."""
    more = (settings.neighbour, settings.keep, *settings.beside.credits)
    if settings.scenario is None or any(each is not None for each in more):
        return ""
    targets = len(settings.targets or settings.reuse or (DEFAULT_FOLDER,))
    pairs: Mapping[str, object] = {
        "-u": settings.users,
        "-r": None if settings.spawn_rate is None else f"{settings.spawn_rate:g}",
        "-t": None if settings.run_time_s is None else f"{settings.run_time_s}s",
        "--rounds": _rounds(settings, targets),  # or it goes on until it has decided
        "--cache": settings.cache,
        "--seed": settings.seed,
        "--remount-command": settings.remount_command,
        **_baseline_of(settings),
    }
    named = [word for name, value in pairs.items() if value is not None for word in (name, value)]
    return join(
        [
            *("replayer", "run", settings.scenario),
            *(f"--target={word}" for word in settings.targets),
            *(f"--reuse={word}" for word in settings.reuse),
            *(["--duet"] if settings.duet else []),
            *map(str, named),
            *(f"--set={change}" for change in settings.changes),
            *(f"--threshold={limit}" for limit in settings.thresholds),
        ]
    )


def _baseline_of(settings: Settings) -> dict[str, object]:
    """Return the options that hold a run against an earlier one."""
    kept = settings.beside.baseline
    if kept is None:
        return {}
    # A name is looked for where the shell is; a folder is found from anywhere.
    return {"--baseline": kept.path, "--tolerance": f"{100 * kept.tolerance:.4g}%"}
