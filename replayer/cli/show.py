"""``replayer show``: what a trace holds and how far it can be trusted."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from replayer.measure.units import format_bytes, format_count, format_many, format_time_ns
from replayer.report.replay import ADVICE, NOTED_SHARE, format_counts
from replayer.report.style import Style, fold
from replayer.trace.reading import Pauses, believed, count_trace, load_trace
from replayer.trace.sharing import private_parts
from replayer.trace.shipped import find_trace

COLUMN = 15
MOST_REQUESTS = 12
"""Chosen: labels of requests that fit on a screen."""
ORDER_GUESSED = "tasks in an order that is a guess"
"""The blind spot of logs of ``strace -ff`` whose stamps do not tell their order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a trace folder, or the name of a shipped trace such as wordpress/front-warm",
    )
    parser.add_argument(
        "--private",
        action="store_true",
        help="show what it gives away of the machine and the site that it was recorded on",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Check the trace's checksums and show it."""
    folder = find_trace(arguments.trace, Path.cwd())
    if arguments.private:
        return _show_private(folder, as_json=arguments.json)
    trace, pauses = load_trace(folder), count_trace(folder, None).pauses
    if arguments.json:
        print(json.dumps({**trace, "pauses": asdict(pauses)}, indent=2))
        return 0
    with believed(folder):
        lines = [*render_trace(trace, pauses, arguments.trace)]
    print("\n".join(fold(lines, Style.of(sys.stdout))))
    return 0


def _show_private(folder: Path, *, as_json: bool) -> int:
    found = private_parts(folder).kinds
    if as_json:
        print(
            json.dumps(
                {kind: {"count": count, "some": some} for kind, (count, some) in found.items()}
            )
        )
        return 0
    lines = []
    for kind, (count, some) in found.items():
        more = f", and {format_count(count - len(some))} more" if count > len(some) else ""
        lines += [f"{kind}: {', '.join(some)}{more}"]
    lines += ["", "hint: replayer share makes a trace without them"]
    print("\n".join(fold(lines, Style.of(sys.stdout))))
    return 0


def render_trace(trace: Mapping[str, Any], pauses: Pauses, name: str) -> Iterator[str]:
    """Yield the lines that describe a trace to a person."""
    counts = trace["counts"]
    size = sum(table["bytes"] for table in trace["tables"].values())
    yield f"{name}  ({trace['origin']['format']}, trace format {trace['format']})"
    if trace["origin"]["note"]:
        yield trace["origin"]["note"]
    yield from _pauses(pauses)
    yield ""
    yield _row("events", _events(trace, size))
    yield _row(
        "roots", ", ".join(f"{root['directory']} as {root['name']}/" for root in trace["roots"])
    )
    yield _row(
        "data",
        f"{format_bytes(counts['bytes_read'])} read,"
        f" {format_bytes(counts['bytes_written'])} written",
    )
    yield _row("ops", format_counts(counts["ops"]))
    yield _row("errors", format_counts(counts["errors"]) or "none")
    yield from _requests(trace)
    yield from _files(trace)
    yield from _trust(trace)


def _pauses(pauses: Pauses) -> Iterator[str]:
    """Yield what of a replay's time the recorder may have made; nothing where that is known."""
    if pauses.recorder_ns is None:
        return
    share = pauses.recorder_ns / max(pauses.calls_ns + pauses.pauses_ns, 1)
    if share < NOTED_SHARE:
        yield "under 1 % of the recorded time are pauses that the recorder may have made"
        return
    made, of = (format_time_ns(ns) for ns in (pauses.recorder_ns, pauses.pauses_ns))
    yield (
        f"up to {100 * share:.0f} % of the recorded time are pauses that the recorder may have made"
        f" ({made} of {of})"
    )
    yield f"hint: {ADVICE}"


def _events(trace: Mapping[str, Any], size: int) -> str:
    counts = trace["counts"]
    per_event = size / max(counts["events"], 1)
    return (
        f"{format_count(counts['events'])} of {format_many(counts['threads'], 'thread')}"
        f" over {format_time_ns(counts['span_ns'])};"
        f" {format_bytes(size)} on disk, {per_event:.1f} B an event"
    )


def _requests(trace: Mapping[str, Any]) -> Iterator[str]:
    found = sorted(trace["requests"], key=lambda item: -int(item["count"]))
    if not found:
        yield _row(
            "requests",
            "none: the log has no accepted connections, and no markers or times were given",
        )
    for index, item in enumerate(found[:MOST_REQUESTS]):
        mean = item["events"] / max(item["count"], 1)
        text = f"{format_count(item['count'])} x {item['label']} ({mean:,.1f} events each)"
        yield _row("" if index else "requests", text)
    if len(found) > MOST_REQUESTS:
        yield _row("", f"and {len(found) - MOST_REQUESTS} more labels")


def _files(trace: Mapping[str, Any]) -> Iterator[str]:
    tree, labels, counts = trace["tree"], trace["labels"], trace["counts"]
    repairs = counts["tree_repairs"]
    yield _row(
        "tree before",
        f"{format_many(tree['files'], 'file')},"
        f" {format_many(tree['directories'], 'directory', 'directories')},"
        f" {format_many(tree['links'], 'link')}, {format_bytes(tree['bytes'])};"
        f" {format_count(tree['inferred'])} inferred from events",
    )
    corrections = repairs["missing_in_manifest"] + repairs["not_there"] + repairs["corrected"]
    if counts["manifest_rows"] is not None and corrections:
        yield _row(
            "",
            f"manifest: {repairs['missing_in_manifest']} files were missing in it,"
            f" {repairs['not_there']} were not there, {repairs['corrected']} differed",
        )
    unnamed = repairs.get("unnamed", 0)
    if unnamed:
        yield _row(
            "",
            f"{format_many(unnamed, 'name')} made up for files that are known only from listings",
        )
    yield _row(
        "paths",
        f"{format_count(counts['paths'])}:"
        f" {format_count(labels['shared read-only'])} shared read-only,"
        f" {format_count(labels['private'])} private,"
        f" {format_count(labels['shared mutable'])} shared mutable;"
        f" {format_count(labels['open in two threads at once'])} open in two threads at once",
    )
    reasons = format_counts(counts["edges_by_reason"])
    yield _row(
        "order",
        f"{format_many(counts['edges'], 'edge')} between threads"
        + (f": {reasons}" if reasons else ""),
    )
    guessed = trace["blind_spots"].get(ORDER_GUESSED)
    if guessed:
        yield _row(
            "",
            f"the order of {guessed} tasks is a guess, except for parents, children and waits: "
            "their log files have no time stamps, or coarse ones",
        )
        yield _row("", "record with strace -f, or with -ff -ttt, to get the exact order")


def _mapped(counts: Mapping[str, Any]) -> str:
    written = counts["pages_written"]
    return (
        f"mmap: at least {format_many(counts['pages_touched'], 'page')} of "
        f"{format_many(counts['files_mapped'], 'file')} touched; others may have been mapped"
    ) + (f"; {format_count(written)} of them written, which a replay only reads" if written else "")


def _asynchronous(counts: Mapping[str, Any]) -> Iterator[str]:
    known = counts.get("calls_asynchronous", 0)
    if known:
        yield _row("", f"{format_many(known, 'call')} through io_uring or libaio: understood")


def _trust(trace: Mapping[str, Any]) -> Iterator[str]:
    counts = trace["counts"]
    yield _row("not understood", _not_understood(counts))
    for sample in counts["lines_not_understood_first"][:3]:
        yield _row("", f"{sample['at']}: {sample['text'][:100]}")
    yield from _asynchronous(counts)
    yield _row("not replayable", format_counts(counts["calls_not_representable"]) or "none")
    hidden = {
        "without a path": counts["calls_without_path"],
        "relative to an unknown directory (give --cwd)": counts["calls_with_unknown_directory"],
        "on an unknown descriptor": counts["calls_with_unknown_file"],
        "cut off": counts["calls_cut"],
    }
    for what, named in hidden.items():
        if named:
            yield _row("", f"{what}: {format_counts(named)}")
    if counts["tree_repairs"]["unexplained"]:
        yield _row(
            "",
            f"{counts['tree_repairs']['unexplained']} results contradict the tree: an untraced "
            "program changed it",
        )
    yield _row("blind spots", format_counts(trace["blind_spots"]) or "none seen")
    if counts.get("pages_touched"):
        yield _row("", _mapped(counts))
    yield _row("calibration", _calibration(trace["calibration"]) + _told(trace["origin"]))
    untraced = trace["calibration"].get("untraced")
    if untraced:
        yield _row("", _untraced(untraced))
    fit = trace["calibration"].get("fit")
    if fit:
        yield _row("", _fit(fit))


def _not_understood(counts: Mapping[str, Any]) -> str:
    return (
        f"{format_count(counts['lines_not_understood'])} of {format_many(counts['lines'], 'line')}"
    )


def _calibration(calibration: Mapping[str, Any]) -> str:
    after = [value for value in calibration.get("gap_ns_after", {}).values() if value is not None]
    # Then each gap loses so much that the CPU time is left of all: far more than the tracer added.
    by_cpu_time = bool(after) and calibration.get("most_owed_ns") == 0
    told = {calibration["gap_ns"]} if by_cpu_time or not after else {*after}
    gaps = sorted(told - {None})
    parts = [
        f"{' to '.join(format_time_ns(value) for value in values)} {where}"
        for values, where in (
            ([calibration["call_ns"]], "in each call"),
            ([gaps[0], gaps[-1]] if len(gaps) > 1 else gaps, "between calls"),
        )
        if any(value is not None for value in values)
    ]
    if not parts:
        return "unknown: nothing is subtracted"
    rest = "; pauses are limited to the CPU time of the program" if by_cpu_time else ""
    return f"the tracer added {' and '.join(parts)}{rest}"


def _told(origin: Mapping[str, Any]) -> str:
    return ", beside what it told of itself" if origin["format"] == "bpf" else ""


def _untraced(untraced: Mapping[str, int]) -> str:
    elapsed, computed = (format_time_ns(untraced[name]) for name in ("elapsed_ns", "user_ns"))
    runs = format_many(untraced["runs"], "run")
    return (
        f"without the tracer the command took {elapsed} (median of {runs}), {computed} of it in "
        "user space"
    )


def _fit(fit: Mapping[str, Any]) -> str:
    took, without = (format_time_ns(fit[name]) for name in ("closed_ns", "asap_ns"))
    return (
        f"pauses fitted on {fit['filesystem']}: {fit['pauses_percent']} % of the recorded ones; "
        f"there a closed replay took {took}, one without pauses {without}"
    )


def _row(name: str, text: str) -> str:
    return f"{name:<{COLUMN}} {text}"
