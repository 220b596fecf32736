"""``python -m tests.bench.faith [matches] [order]``: do replays do what was recorded, in its order?

*matches*: every shipped trace (or those below ``--traces``) on tmpfs and on a new ext4, with 1 and
with 16 users. *order*: every one of several threads, so often at each pace, each time held against
the edges of its trace. With ``--raw`` the captures below a folder are imported first and take part.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import replayer
from replayer.trace.importing import LARGEST_NS, Window
from replayer.trace.timeline import load_events
from tests.bench import arena
from tests.bench.captures import import_capture, logs_in, name_of
from tests.bench.replay import REPLAYED, Place, replay

TRACES = Path(replayer.__file__).parent.parent / "traces"
USERS = (1, 16)
PACES = ("asap", "closed", "timed", "open")
SPEED = 20
"""Pauses are shortened at least so much while order is checked (chosen: more events meet)."""
ANY_RESULTS = "--threshold=errors < 100%"
JUDGED = REPLAYED | {1}
"""Exit codes of a replay that was done: 1: the order was not kept, or no transaction went well."""
WHOLE = Window(0, LARGEST_NS, "all of it")
"""Captures are imported as one request, so that all their threads and edges arrive together."""
CONTENDED = "shared mutable"
"""Label of the files on which users may meet; everywhere else each has its own."""
OWN = re.compile(r"~\d+(\.\d+)?(?=/|$)")
"""What is put behind the name of a file that is a user's own."""
MOST_EXAMPLES = 5


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
        examples: In words.
    """

    trace: str
    users: int
    compared: int
    matched: int
    allowed: int
    diverged: int
    private: int
    examples: tuple[str, ...]

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


def import_all(folder: Path, scratch: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Import the raw captures below a folder; give folders and trace.json of those with events."""
    for log in logs_in(folder):
        target = scratch / "captures" / name_of(log)
        trace = import_capture(log, target, [WHOLE])
        if trace["counts"]["events"]:
            yield str(target), trace


def match(targets: Sequence[Path], output: Path, trace: str, users: int) -> Match:
    """Replay a trace once on each target without pauses."""
    first, *others = targets
    words = [f"--target={each}" for each in others]
    words += ["--pace=asap", "--rounds=1", f"-u{users}", ANY_RESULTS]
    run = replay(Place(first, output), trace, *words, codes=JUDGED)
    found = run["replay"]["results"]
    return Match(
        trace=trace,
        users=users,
        compared=found["compared"],
        matched=found["matched"],
        allowed=sum(each["count"] for each in found["allowed"]),
        diverged=sum(each["count"] for each in found["diverged"]),
        private=sum(label != CONTENDED for label in _labels(trace, found["examples"])),
        examples=tuple(map(_in_words, found["examples"])),
    )


def _in_words(example: Mapping[str, Any]) -> str:
    names = "user {user} row {row} {op} {path}: recorded {recorded}, got {got}"
    return names.format_map(example)


def _labels(trace: str, examples: list[dict[str, Any]]) -> Iterator[str]:
    """Give the labels of the paths on which events diverged; empty for what the trace lacks."""
    if not examples:
        return
    events = load_events(Path(trace))
    labels = dict(zip(events.paths, events.labels, strict=True))
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
        return self.violated == 0

    def plus(self, other: "Kept") -> "Kept":
        """Add the counts of another trace or pace."""
        return replace(
            self,
            runs=self.runs + other.runs,
            edges=self.edges + other.edges,
            violated=self.violated + other.violated,
        )

    def row(self) -> str:
        word = "ok" if self.edges else "nothing had to wait"
        word = word if self.passes() else "misses its target"
        checked = f"{self.edges:,} edges checked, {self.violated:,} violated: {word}"
        return f"  {Path(self.trace).name[:40]:<42}{self.pace:<8}{self.runs:>3} runs, {checked}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.faith", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="matches, order (both)")
    parser.add_argument("--turns", type=int, default=20, help="runs at each pace (20)")
    parser.add_argument("--only", default="", metavar="NAME", help="traces whose name has this")
    parser.add_argument("--traces", type=Path, default=TRACES, help="a folder of traces (shipped)")
    parser.add_argument("--raw", type=Path, metavar="FOLDER", help="a folder of raw captures, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = dict(found_in(options.traces))
        if options.raw:
            found |= import_all(options.raw, Path(scratch))
        traces = {name: trace for name, trace in found.items() if options.only in name}
        for part in options.parts or ["matches", "order"]:
            {"matches": _matches, "order": _order}[part](traces, options.turns)


def _matches(traces: dict[str, dict[str, Any]], _: int) -> None:
    grounds = ("tmpfs", "ext4") if arena.has_loop_devices() else ("tmpfs",)
    print(f"results as recorded, on {' and '.join(grounds)}")
    with ExitStack() as stack, tempfile.TemporaryDirectory() as scratch:
        targets = [stack.enter_context(arena.ARENAS[ground]()) for ground in grounds]
        for users in USERS:
            for number, name in enumerate(traces):
                found = match(targets, Path(scratch) / f"{users}-{number}", name, users)
                print(found.row(), flush=True)
                for example in found.examples[:MOST_EXAMPLES]:
                    print(f"      {example}", flush=True)


def _order(traces: dict[str, dict[str, Any]], turns: int) -> None:
    print("order of events of several threads, on tmpfs")
    several = {name: each for name, each in traces.items() if each["counts"]["threads"] > 1}
    total = Kept("all", "", 0, 0, 0)
    for name, trace in several.items():
        for pace in PACES if trace["requests"] else PACES[:-1]:
            kept = _kept(name, trace, pace, turns)
            print(kept.row(), flush=True)
            total = total.plus(kept)
    print(total.row())


def _kept(name: str, trace: dict[str, Any], pace: str, turns: int) -> Kept:
    speed = max(SPEED, round(trace["counts"]["span_ns"] / 1e9))  # a second at most (chosen)
    requests = max(sum(each["count"] for each in trace["requests"]), 1)
    loops = -(-turns // requests) if pace == "open" else turns  # that many performances at least
    words = [f"--pace={pace}", "--check-order", f"--loops={loops}", ANY_RESULTS]
    words += [] if pace == "asap" else [f"--speed={speed}"]
    words += ["--requests"] if pace == "open" else []
    with arena.tmpfs() as folder, tempfile.TemporaryDirectory() as scratch:
        run = replay(Place(folder, Path(scratch) / "run"), name, *words, codes=JUDGED)
    found = run["replay"]["order"]
    return Kept(name, pace, found["performances"], found["edges"], found["violated"])


if __name__ == "__main__":
    main()
