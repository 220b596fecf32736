"""What a run counted is the same number wherever it stands, to the op and to the last second."""

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from replayer.measure.record import load_run
from tests.behaviour.shell import Shell

Counts = Counter[tuple[str, str]]


def of_histograms(folder: Path) -> Counts:
    found: Counts = Counter()
    for key, histogram in load_run(folder).log.histograms.items():
        if key.segment.phase == "measured" and "." not in key.op and key.outcome != "cancelled":
            found[key.transaction, key.op] += histogram.count
    return found


def of_timeline(folder: Path) -> Counts:
    found: Counts = Counter()
    with (folder / "timeline.csv").open() as file:
        for row in csv.DictReader(file):
            counted = "." not in row["op"] and row["outcome"] != "cancelled"
            if row["phase"] == "measured" and counted:
                found[row["transaction"], row["op"]] += int(row["count"])
    return found


def of_summary(summary: Any) -> Counts:  # noqa: ANN401 - JSON
    found: Counts = Counter()
    (target,) = summary["targets"]
    for transaction in target["overall"]["transactions"]:
        found[transaction["name"], "transaction"] = transaction["count"]
        for op in transaction["ops"]:
            found[transaction["name"], op["op"]] = op["count"]
    return found


def of_report(text: str) -> Counts:
    found: Counts = Counter()
    for row in csv.DictReader(io.StringIO(text)):
        whole = row["round"] == "all" and row["transaction"] != "all"
        if whole and "." not in row["op"]:
            found[row["transaction"], row["op"]] = int(row["count"])
    return found


@pytest.mark.parametrize("more", [(), ("--processes", "2")], ids=["one", "two"])
def test_every_form_has_the_same_counts(shell: Shell, more: tuple[str, ...]) -> None:
    shell.target()
    done = shell.run(
        *("run", "tiny.yaml", "--target", "here=mount", "-t", "2s", "--json", "--csv", "own"),
        *("-o", "out", "--quiet", *more),
    )
    folder = shell.home / "out"
    wanted = of_histograms(folder)
    assert sum(wanted.values()) > 100, done.err
    assert of_timeline(folder) == wanted
    assert of_summary(done.document()["summary"]) == wanted
    assert of_summary(json.loads((folder / "run.json").read_text())["summary"]) == wanted
    with (shell.home / "own_stats.csv").open() as file:
        rows = {row["Name"]: int(row["Request Count"]) for row in csv.DictReader(file)}
    whole = {name: count for (name, op), count in wanted.items() if op == "transaction"}
    assert rows == {**whole, "Aggregated": sum(whole.values())}
    assert of_report(shell.run("report", "out", "--format", "csv").out) == wanted


COLUMNS = (("p50", "50%"), ("p95", "95%"), ("max", "100%"))
"""Ours, and Locust's."""


@pytest.mark.parametrize("more", [("--rounds", "2"), ("--processes", "2")], ids=["turns", "two"])
def test_locusts_csv_has_the_figures_of_the_summary(shell: Shell, more: tuple[str, ...]) -> None:
    words = [f"--target={name}={shell.target(name)}" for name in ("near", "far")]
    done = shell.run("run", "tiny.yaml", *words, "-t", "1s", "--json", "--csv", "own", *more)
    with (shell.home / "own_stats.csv").open() as file:
        rows = {row["Name"]: row for row in csv.DictReader(file)}
    for target in done.document()["summary"]["targets"]:
        for found in target["overall"]["transactions"]:
            row, latency = rows[f"{target['name']}/{found['name']}"], found["latency"]
            ours = {name: latency[f"{name}_ns"] / 1e6 for name in ("p50", "p95", "max")}
            theirs = {name: float(row[column]) for name, column in COLUMNS}
            assert float(row["Median Response Time"]) == theirs["p50"]
            for name, part in (("p50", 2), ("p95", 20)):
                if found["count"] % part == 0:  # Locust's is the sample behind, by rounding
                    assert theirs.pop(name) >= ours.pop(name) * 0.98
            assert theirs == pytest.approx(ours, rel=0.02)
            assert float(row["Requests/s"]) == pytest.approx(found["rate_per_s"], rel=0.05)
