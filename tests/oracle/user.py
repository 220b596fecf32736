"""One user: its stream and slots, what it draws, binds and notes. Its steps run in steps.py.

Every method here is a sentence of plan format 1: Draw, Picker, bind, Part, and the counting of ops.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from replayer.ops import BY_NAME
from tests.oracle.calls import errno_name
from tests.oracle.layout import home
from tests.oracle.randomness import ops_stream, shuffled, stage_stream
from tests.oracle.slots import SLOTS, Binding, DirectoryBinding, Slot

Step = dict[str, Any]

WRITES = frozenset({"write", "append", "pwrite", "pwrite_random"})
READS = frozenset({"read", "pread", "pread_random", "mmap_read"})
COUNTED_BYTES = WRITES | READS | {"copy_file_range", "sendfile"}

MAX_STAGES = 8
"""Of a pipeline: what numbers of writes are set apart for."""

# Second names of errno numbers that `expect` takes too.
OTHER_NAMES = {"EWOULDBLOCK": "EAGAIN", "EDEADLOCK": "EDEADLK", "ENOTSUP": "EOPNOTSUPP"}


@dataclass(frozen=True)
class Sample:
    """One op that was made, with what came of it."""

    user: int
    transaction: str
    op: str
    path: str
    outcome: str
    bytes: int
    expected: bool


MAY_CHANGE = frozenset({"ok", "SHORT", "ENOENT", "EAGAIN", "EEXIST", "ESTALE"})
"""Outcomes that may become others when a call is made again (FORMAT.md, until)."""


class UnmetError(Exception):
    """What is looked for is not there yet."""


class TransactionFailedError(Exception):
    """An op had an outcome that its step does not expect: the transaction's rest is skipped."""


class ShortError(Exception):
    """A call that did not fail, but moved less than it had to."""

    def __init__(self, moved: int) -> None:
        super().__init__(moved)
        self.moved = moved


def _allows(step: Step, outcome: str) -> bool:
    expect = {OTHER_NAMES.get(name, name) for name in step["expect"]}
    return bool(expect & {outcome, "any"})


def _draws(document: dict[str, Any]) -> int:
    """Return the seed of what users draw."""
    seed: int = document["seed"]
    draws: int = document.get("draws", seed)
    return draws


class User:
    """A user in one round (one segment): its stream, its slots and what it has done."""

    def __init__(
        self, document: dict[str, Any], number: int, round_number: int, signals: dict[int, int]
    ) -> None:
        self.document = document
        self.number = number
        self.round_number = round_number
        self.stream = ops_stream(_draws(document), round_number, number)
        self.turns: Counter[int] = Counter()  # of each sequential picker
        self.transactions = 0
        self.writes = 0
        self.pipelines = 0
        self.slots: list[Slot] = []
        self.transaction = ""
        self.samples: list[Sample] = []
        self.looking = False
        self.signals = signals
        """Of each signal: the latest transaction that gave it, of any user."""

    def begin(self) -> dict[str, Any]:
        """Choose the next transaction and empty the slots for it."""
        chosen: dict[str, Any] = self.document["transactions"][self.stream.weighted(self.mix())]
        self.transaction = chosen["name"]
        self.slots = [Slot() for _ in range(SLOTS)]
        return chosen

    @contextmanager
    def pipeline(self) -> Iterator[Callable[[int], None]]:
        """Yield what begins a stage, by its number: it has its own slots, stream and counts."""
        own = (self.slots, self.stream, self.turns, self.writes)
        number = self.pipelines
        self.pipelines += 1

        def begin(stage: int) -> None:
            ops = ops_stream(_draws(self.document), self.round_number, self.number)
            self.slots = [Slot() for _ in range(SLOTS)]
            self.stream = stage_stream(ops, number, stage)
            self.turns = Counter()
            self.writes = (number * MAX_STAGES + stage + 1) << 32

        try:
            yield begin
        finally:
            self.slots, self.stream, self.turns, self.writes = own

    def mix(self) -> list[int]:
        """Find the weights of the role that this user has."""
        first = 0
        for users, weights in self.document.get("roles", []):
            first += users
            if self.number < first:
                return list(weights)
        return list(self.document["mix"])

    def timed(self, step: Step, call: Callable[[], int | None]) -> int:
        """Make one op, note it, and return its value; 0 when its outcome is not ok."""
        outcome, value = "ok", 0
        try:
            value = call() or 0
        except OSError as error:
            outcome = errno_name(error)
        except ShortError as short:
            outcome, value = "SHORT", short.moved
        ended = outcome == "ok" and not value and "ends" in BY_NAME[step["op"]].flags
        found_end = ended and _allows(step, "ok")
        moved = value if step["op"] in COUNTED_BYTES else 0
        self._note(step, "END" if found_end else outcome, moved)
        return value if outcome == "ok" else 0

    def _note(self, step: Step, outcome: str, moved: int) -> None:
        expected = outcome == "END" or _allows(step, outcome)
        unmet = not expected and self.looking and outcome in MAY_CHANGE
        slot = self.slots[step["path"] if "path" in step else step["file"]]
        path = f"{slot.entry.home}/{slot.entry.path}"
        name = (self.number, self.transaction, step["op"], path)
        self.samples.append(Sample(*name, outcome, moved, expected or unmet))
        if unmet:
            raise UnmetError
        if not expected:
            raise TransactionFailedError

    def waited(self, step: Step, outcome: str) -> None:
        """Note a waiting for others, which is no call."""
        expected = _allows(step, outcome)
        name = (self.number, self.transaction, step["do"], "")
        self.samples.append(Sample(*name, outcome, 0, expected))
        if not expected:
            raise TransactionFailedError

    def drawn(self, draw: dict[str, Any]) -> int:
        """Get the number that a Draw stands for."""
        match draw:
            case {"const": int(number)}:
                return number
            case {"uniform": [int(low), int(high)]}:
                return low + self.stream.below(high - low + 1)
            case {"table": int(index)}:
                table: list[int] = self.document["tables"][index]
                return table[self.stream.below(len(table))]
            case {"size_of": int(slot)}:
                return self.slots[slot].entry.size
            case _:
                message = f"no draw of plan format 1: {draw!r}"
                raise ValueError(message)

    def composed(self, parts: list[Any]) -> str:
        """Put a name together."""
        return "".join(self._part(part) for part in parts)

    def _part(self, part: str | dict[str, Any]) -> str:
        match part:
            case str(text):
                return text
            case {"draw": draw}:
                return str(self.drawn(draw))
            case {"hex": int(digits)}:
                return f"{self.stream.draw():016x}"[:digits]
            case {"path_of": int(slot)}:
                return self.slots[slot].entry.within
            case {"name_of": int(slot)}:
                return self.slots[slot].entry.within.rpartition("/")[2]
            case _:
                return str(self._number(part))

    def _number(self, part: dict[str, Any]) -> int:
        done = self.transactions
        known = {"user": self.number, "round": self.round_number, "seq": done, "next": done + 1}
        [key] = part
        return known[key]

    def bound(self, step: Step) -> Binding:
        """Find what a bind step binds."""
        datasets = self.document["datasets"]
        match step:
            case {"pick": int(picker)}:
                dataset = datasets[self.document["pickers"][picker]["dataset"]]
                return self.entry_binding(dataset, self.picked(picker))
            case {"name": {"dataset": int(index), "parts": list(parts)}}:
                return self.name_binding(home(datasets[index], self.number), parts)
            case _:
                return DirectoryBinding(home(datasets[step["dataset"]], self.number))

    def entry_binding(self, dataset: dict[str, Any], entry: list[Any]) -> Binding:
        """Bind an entry."""
        path, _type, size, mode, link = entry
        return Binding(home(dataset, self.number), path, size, mode, link)

    def name_binding(self, base: str, parts: list[Any]) -> Binding:
        """Bind a composed path; size, mode and link are those of the first slot named in it."""
        named = [
            slot
            for part in parts
            if isinstance(part, dict)
            for key, slot in part.items()
            if key in {"path_of", "name_of"}
        ]
        like = self.slots[named[0]].entry if named else Slot().entry
        return Binding(base, self.composed(parts), like.size, like.mode, like.link)

    def picked(self, index: int) -> list[Any]:
        """Choose an entry."""
        picker = self.document["pickers"][index]
        entries = self.document["datasets"][picker["dataset"]]["entries"]
        candidates: list[list[Any]] = [entry for entry in entries if entry[1] in picker["types"]]
        users = self.document["users"]
        match picker["kind"]:
            case "sequential":
                at = self.number * len(candidates) // users + self.turns[index]
                self.turns[index] += 1
                return candidates[at % len(candidates)]
            case "own":
                own = candidates[self.number % users :: users]
                return own[self.stream.below(len(own))]
            case _:
                return candidates[self._rank(picker, len(candidates))]

    def _rank(self, picker: dict[str, Any], candidates: int) -> int:
        weights = [weight for weight, _start, _count in picker["segments"]]
        _weight, start, count = picker["segments"][self.stream.weighted(weights)]
        rank = int(start) + self.stream.below(count)
        if picker["shuffle"] is None:
            return rank
        return shuffled(candidates, picker["shuffle"])[rank]
