"""``python -m tests.bench.faith [matches] [order]``: do replays do what was recorded, in its order?

*matches*: every shipped trace (or those below ``--traces``) on tmpfs and on a new ext4, with 1 and
with 16 users. *order*: every one of several threads, so often at each pace, each time held against
the edges of its trace.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import replayer
from replayer.trace import load_labels
from tests.bench import arena
from tests.bench.replay import Place, replay

TRACES = Path(replayer.__file__).parent.parent / "traces"
USERS = (1, 16)
PACES = ("asap", "closed", "timed", "open")
SPEED = 20
"""Pauses are shortened so much while order is checked (chosen: more events meet)."""
CONTENDED = "shared mutable"
"""Label of the files on which users may meet; everywhere else each has its own."""
OWN = re.compile(r"~\d+(\.\d+)?(?=/|$)")
"""What is put behind the name of a file that is a user's own."""


@dataclass(frozen=True)
class Match:
    """A trace replayed, and how much of it came out as recorded.

    Attributes:
        trace: Its name.
        users: How many at once.
        compared: Events whose results are known.
        matched: Those that came out as recorded.
        allowed: Those that differ where differences mean nothing.
        diverged: The others.
        private: Of these, examples on paths that the trace does not label as contended.
    """

    trace: str
    users: int
    compared: int
    matched: int
    allowed: int
    diverged: int
    private: int

    def passes(self) -> bool:
        return self.private == 0 and (self.users > 1 or self.diverged == 0)

    def row(self) -> str:
        share = (self.matched + self.allowed) / max(self.compared, 1)
        word = "ok" if self.passes() else "misses its target"
        return (
            f"  {Path(self.trace).name:<32}{self.users:>3} users"
            f" {self.compared:>10,} compared {share:>10.4%}"
            f" ({self.allowed:,} allowed differences, {self.diverged:,} diverged: {word})"
        )


def found_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give folders and trace.json of all traces below a folder."""
    for document in sorted(folder.rglob("trace.json")):
        yield str(document.parent), json.loads(document.read_text())


def match(place: Place, trace: str, users: int) -> Match:
    """Replay a trace once without pauses."""
    run = replay(place, trace, "--pace=asap", f"-u{users}", "--threshold=errors < 100%")
    found = run["replay"]["results"]
    diverged = sum(each["count"] for each in found["diverged"])
    return Match(
        trace=trace,
        users=users,
        compared=found["compared"],
        matched=found["matched"],
        allowed=sum(each["count"] for each in found["allowed"]),
        diverged=diverged,
        private=sum(label != CONTENDED for label in _labels(trace, found["examples"])),
    )


def _labels(trace: str, examples: list[dict[str, Any]]) -> Iterator[str]:
    """Give the labels of the paths on which events diverged; empty for what the trace lacks."""
    labels = load_labels(Path(trace)) if examples else {}
    for each in examples:
        # The first component is the trace's own directory in the run's folder.
        _, _, path = each["path"].partition("/")
        yield labels.get(path) or labels.get(OWN.sub("", path), "")


@dataclass(frozen=True)
class Kept:
    """A trace's order, held against its edges.

    Attributes:
        trace: Its name.
        pace: How events followed each other.
        runs: How often.
        edges: Edges of all runs.
        violated: Those of them in which an event did not wait.
    """

    trace: str
    pace: str
    runs: int
    edges: int
    violated: int

    def passes(self) -> bool:
        return self.violated == 0 and self.edges > 0

    def row(self) -> str:
        word = "ok" if self.passes() else "misses its target"
        checked = f"{self.edges:,} edges checked, {self.violated:,} violated: {word}"
        return f"  {Path(self.trace).name:<32}{self.pace:<8}{self.runs:>3} runs, {checked}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.faith", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="matches, order (both)")
    parser.add_argument("--turns", type=int, default=20, help="runs at each pace (20)")
    parser.add_argument("--only", default="", metavar="NAME", help="traces whose name has this")
    parser.add_argument("--traces", type=Path, default=TRACES, help="a folder of traces (shipped)")
    options = parser.parse_args()
    traces = {name: trace for name, trace in found_in(options.traces) if options.only in name}
    for part in options.parts or ["matches", "order"]:
        {"matches": _matches, "order": _order}[part](traces, options.turns)


def _matches(traces: dict[str, dict[str, Any]], _: int) -> None:
    for ground in ("tmpfs", "ext4") if arena.has_loop_devices() else ("tmpfs",):
        print(f"{ground}: results as recorded")
        with arena.ARENAS[ground]() as folder, tempfile.TemporaryDirectory() as scratch:
            for users in USERS:
                for number, name in enumerate(traces):
                    place = Place(folder, Path(scratch) / f"{users}-{number}")
                    print(match(place, name, users).row(), flush=True)


def _order(traces: dict[str, dict[str, Any]], turns: int) -> None:
    print("order of events of several threads, on tmpfs")
    for name, trace in traces.items():
        if trace["counts"]["threads"] > 1:
            has_requests = bool(trace["requests"])
            for pace in PACES if has_requests else PACES[:-1]:
                print(_kept(name, pace, turns).row(), flush=True)


def _kept(name: str, pace: str, turns: int) -> Kept:
    loops = 1 if pace == "open" else turns  # all requests are enough performances
    words = [f"--pace={pace}", "--check-order", f"--loops={loops}"]
    words += [] if pace == "asap" else [f"--speed={SPEED}"]
    words += ["--requests"] if pace == "open" else []
    with arena.tmpfs() as folder, tempfile.TemporaryDirectory() as scratch:
        run = replay(Place(folder, Path(scratch) / "run"), name, *words)
    found = run["replay"]["order"]
    return Kept(name, pace, found["performances"], found["edges"], found["violated"])


if __name__ == "__main__":
    main()
