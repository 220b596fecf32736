"""What one transaction is expected to do: ops by kind, bytes, failing look-ups, files made.

The plan's steps are walked once; distributions stay distributions (``Spread``), so that a file of
11 KiB written in blocks of 10 KiB counts as the two writes that it is. What cannot be known before
a run (how large a directory has become) is estimated.
"""

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from replayer.ops import MAKING, PATH_OPS, READING, UNTIMED, WRITING, timed_as
from replayer.plan.census import ZERO, Census, Spread, constant, pieces, ratio_up, smaller
from replayer.plan.space import SpaceEstimate, Tally, count_names


class KnownSlots:
    """What each slot is bound to, and how its open file stands, as far as a plan tells."""

    def __init__(self) -> None:
        self.identities: dict[int, Hashable] = {}
        """What each slot is bound to: equal ones are one entry, or the same entries in turn."""
        self.homes: dict[int, int] = {}
        """The dataset of what each slot is bound to."""
        self.names_of: dict[int, float] = {}
        """How many names each slot may be bound to, by all users in all transactions."""
        self.names: dict[int, str] = {}
        """What each slot bound by name is called, so that the same name is known again."""
        self.sizes: dict[int, Spread] = {}
        """Of what each slot is bound to, in bytes."""
        self.places: dict[int, int] = {}
        """How many entries the directory bound to a slot has, where known."""
        self.opened: set[int] = set()
        """Slots with an open file."""
        self.opened_as: dict[int, Hashable] = {}
        """What each open file was bound to when it was opened."""
        self.left: dict[int, Spread] = {}
        """What is left to read of each open file, in bytes."""
        self.listed: set[int] = set()
        """Open directories that have been read to their end."""

    def copy(self, source: int, slot: int) -> None:
        """Bind a slot to what another one is bound to; files stay as they are."""
        known: list[dict[int, Any]] = [self.identities, self.homes, self.names_of]
        for each in (*known, self.sizes, self.names, self.places):
            if source in each:
                each[slot] = each[source]
            else:
                each.pop(slot, None)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Know nothing of any slot, as a stage of a pipeline; then what was known before."""
        fresh = vars(KnownSlots())
        own = {name: vars(self)[name] for name in fresh}
        vars(self).update(fresh)
        yield
        vars(self).update(own)


class Rewriting:
    """Follows writes into files that were there before a transaction; amounts are expected ones."""

    def __init__(self) -> None:
        self._done_bytes = 0.0
        self._open: dict[int, list[float]] = {}
        """Of each slot: bytes written, and how many of them fit into what is there."""

    def begin(self, slot: int, size_bytes: float) -> None:
        """A file of this size is open, and its writes begin at its begin."""
        self._open[slot] = [0.0, size_bytes]

    def wrote(self, slot: int, size_bytes: float) -> None:
        """So much was written."""
        if slot in self._open:
            self._open[slot][0] += size_bytes

    def fits(self, slot: int, size_bytes: float) -> None:
        """So much more will be written somewhere within the file."""
        if slot in self._open:
            self._open[slot][1] += size_bytes

    def end(self, slot: int) -> None:
        """The slot has another file, or writes go behind the end of this one."""
        self._done_bytes += min(self._open.pop(slot, [0.0]))

    def finish(self) -> float:
        """Return how many bytes made no file longer."""
        for slot in list(self._open):
            self.end(slot)
        return self._done_bytes


O_CREAT = 0o100
O_APPEND = 0o2000
SEEK_END = 2
ENTRIES_PER_GETDENTS = 800  # 32 KiB of entries of about 40 bytes


def expect_transaction(census: Census, steps: Sequence[Mapping[str, Any]]) -> Tally:
    """Return what a transaction is expected to do."""
    walker = _Walker(census)
    walker.block(steps, 1.0)
    tally, space = walker.tally, walker.space
    tally.ops["close"] += len(walker.opened)
    tally.passed_bytes, tally.passed_files = space.passed_bytes, space.passed_files
    tally.held_bytes += space.held_bytes
    tally.held_files += space.held_files
    tally.kept, tally.hoards = space.kept(), space.hoards
    tally.passed_bytes += walker.rewriting.finish()
    return tally


class _Walker(KnownSlots):
    def __init__(self, census: Census) -> None:
        super().__init__()
        self.census = census
        self.tally = Tally()
        self.space = SpaceEstimate()
        self.rewriting = Rewriting()
        self.written: dict[str, Spread] = {}
        """Sizes of the files that this transaction has written, by name."""

    def block(self, steps: Sequence[Mapping[str, Any]], times: float) -> None:
        for step in steps:
            self.step(step, times)

    def step(self, step: Mapping[str, Any], times: float) -> None:
        match step["do"]:
            case "call":
                self.call(step, times)
            case "bind":
                self.bind(step)
            case "repeat" | "choose" | "each" | "pipeline":
                self.blocks(step, times)
            case "think":
                self.tally.think_ns += times * self.draw(step["time"]).mean
            case "replay":
                self.replay(step, times)
            case _:
                self.wait(step, times)

    def blocks(self, step: Mapping[str, Any], times: float) -> None:
        """Walk through a step that holds others."""
        match step["do"]:
            case "repeat":
                turns = self.draw(step["times"]).mean
                with self.space.turns(turns):
                    self.block(step["steps"], times * turns)
            case "choose":
                self.choose(step, times)
            case "each":
                self.each(step, times)
            case _:
                for stage in step["steps"]:
                    with self.apart():
                        self.each(stage, times)

    def choose(self, step: Mapping[str, Any], times: float) -> None:
        whole = sum(weight for weight, _ in step["branches"])
        for weight, steps in step["branches"]:
            self.branch(steps, times, weight / whole)

    def wait(self, step: Mapping[str, Any], times: float) -> None:
        """Count one look of ``until``, the fewest that it can make; signals are no ops."""
        if step["do"] != "signal":
            self.tally.ops[step["do"]] += times
            self.block(step.get("steps", ()), times)

    def branch(self, steps: Sequence[Mapping[str, Any]], times: float, turns: float) -> None:
        before = set(self.opened)
        with self.space.turns(turns):
            self.block(steps, times * turns)
        # No step behind can close these: the next open of the slot does, or the transaction's end.
        self.tally.ops["close"] += times * turns * len(self.opened - before)
        self.opened &= before

    def bind(self, step: Mapping[str, Any]) -> None:
        slot = step["slot"]
        copied = self.copied(step)
        if copied is not None:
            self.copy(copied, slot)
            return
        self.places.pop(slot, None)
        self.names.pop(slot, None)
        self.identities[slot] = self.identity_of(step)
        self.homes[slot] = self.home_of(step)
        self.names_of[slot] = self.count_names(step)
        if "pick" in step:
            dataset = self.homes[slot]
            self.sizes[slot] = self.census.spread_of_pick(step["pick"])
            picked = self.census.picked(step["pick"])
            self.touch(dataset, [index for index, _ in picked])
        elif "dataset" in step:
            self.sizes[slot] = ZERO
            self.places[slot] = len(self.census.entries(step["dataset"]))
        else:
            self.names[slot] = json.dumps(step["name"])
            known = self.written.get(self.names[slot])
            self.sizes[slot] = self.size_of_name(step["name"]) if known is None else known

    def count_names(self, step: Mapping[str, Any]) -> float:
        """Return how many names a ``bind`` step can give, to all users together."""
        if "pick" in step:
            named = float(len(self.census.picked(step["pick"])))
            return named * self.census.copies(self.home_of(step))
        parts = step["name"]["parts"] if "name" in step else []
        own = self.census.copies(self.home_of(step)) > 1
        users = int(self.census.body["users"])
        return count_names([*parts, *([{"user": True}] if own else [])], self.names_of, users)

    def home_of(self, step: Mapping[str, Any]) -> int:
        """Return the dataset that a ``bind`` step binds something of."""
        if "pick" in step:
            step = self.census.body["pickers"][step["pick"]]
        dataset: int = step["name"]["dataset"] if "name" in step else step["dataset"]
        return dataset

    def copied(self, step: Mapping[str, Any]) -> int | None:
        """Return the slot that has the path already to which another one will be bound."""
        match step:
            case {"name": {"dataset": int(home), "parts": [{"path_of": int(slot)}]}}:
                return slot if self.homes.get(slot) == home else None
            case _:
                return None

    def identity_of(self, step: Mapping[str, Any]) -> Hashable:
        """Tell what a slot will be bound to from all else; what is drawn is like nothing else."""
        parts = step["name"]["parts"] if "name" in step else [{"draw": None}]
        identity: list[Hashable] = [json.dumps(step.get("name"))]
        for part in parts:
            match part:
                case {"path_of": int(slot)} | {"name_of": int(slot)}:
                    identity.append(self.identities.get(slot))
                case {"draw": _} | {"hex": _}:
                    identity.append(object())
                case _:
                    pass
        return tuple(identity)

    def size_of_name(self, name: Mapping[str, Any]) -> Spread:
        parts = name["parts"]
        if len(parts) == 1 and isinstance(parts[0], str):
            index = self.census.find(name["dataset"], parts[0])
            if index is not None:
                self.touch(name["dataset"], [index])
                return constant(self.census.entries(name["dataset"])[index][2])
        for part in parts:
            if isinstance(part, dict) and ("path_of" in part or "name_of" in part):
                slot: int = part["path_of"] if "path_of" in part else part["name_of"]
                return self.sizes.get(slot, ZERO)
        return ZERO

    def touch(self, dataset: int, indexes: Sequence[int]) -> None:
        if self.census.body["datasets"][dataset]["laid_out"]:
            self.tally.touched.update((dataset, index) for index in indexes)

    def each(self, step: Mapping[str, Any], times: float) -> None:
        dataset = step["dataset"]
        for kind in "fdl":
            indexes = self.census.of_type(dataset, kind)
            if indexes and step[kind]:
                self.sizes[step["slot"]] = self.census.sizes_of_type(dataset, kind)
                self.identities[step["slot"]] = ("each", dataset, kind)
                self.homes[step["slot"]] = dataset
                self.names_of[step["slot"]] = float(len(indexes) * self.census.copies(dataset))
                self.touch(dataset, indexes)
                self.branch(step[kind], times, len(indexes))

    def replay(self, step: Mapping[str, Any], times: float) -> None:
        census = self.census.replayed(step)
        each = times / census.performances
        for op, found in census.ops.items():
            if op not in UNTIMED:
                self.tally.ops[timed_as(op)] += each * found.count
            self.tally.failing_lookups += each * found.errors * (op in PATH_OPS)
            self.tally.bytes_read += each * found.size_bytes * (op in READING)
            written = each * found.size_bytes * (op in WRITING)
            self.tally.bytes_written += written
            self.tally.replayed_bytes += written
        self.tally.held_bytes += each * census.grown_bytes
        made = sum(found.count - found.errors for op, found in census.ops.items() if op in MAKING)
        self.tally.held_files += min(each * made, times * census.entries)

    def draw(self, draw: Mapping[str, Any]) -> Spread:
        return self.census.draw(draw, self.sizes)

    def call(self, step: Mapping[str, Any], times: float) -> None:
        op = step["op"]
        allowed = step["expect"]
        if "ok" not in allowed and "any" not in allowed:
            self.tally.ops[op] += times
            self.tally.failing_lookups += times * (op in PATH_OPS)
            return
        handler = getattr(self, f"call_{op}", None)
        if handler is not None:
            handler(step, times)
        else:
            self.tally.ops[op] += times

    def call_open(self, step: Mapping[str, Any], times: float) -> None:
        slot = step["path"]
        self.tally.ops["open"] += times
        if slot in self.opened:
            self.tally.ops["close"] += times
        self.opened.add(slot)
        self.listed.discard(slot)
        fresh = step["flags"] & O_CREAT
        self.opened_as[slot] = self.identities.get(slot)
        self.rewriting.end(slot)
        if fresh:
            self.create(slot, times)
        elif not step["flags"] & O_APPEND:
            self.rewriting.begin(slot, times * self.sizes.get(slot, ZERO).mean)
        if step["flags"] & O_APPEND:
            self.space.grows(self.opened_as[slot])
        self.left[slot] = self.sizes.get(slot, ZERO)
        if fresh and slot in self.names:
            self.left[slot] = self.written[self.names[slot]] = ZERO

    def call_close(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops["close"] += times
        self.opened.discard(step["file"])

    def call_read(self, step: Mapping[str, Any], times: float) -> None:
        left = self.left.get(step["file"], ZERO)
        size = self.draw(step["size"])
        if step["until_end"]:
            self.tally.ops["read"] += times * (ratio_up(left, size) + 1)
            self.tally.bytes_read += times * left.mean
            self.left[step["file"]] = ZERO
            return
        self.tally.ops["read"] += times
        self.tally.bytes_read += times * smaller(left, size)
        taken = size.mean
        self.left[step["file"]] = left.map(lambda values: (values - taken).clip(0))

    def call_pread(self, step: Mapping[str, Any], times: float) -> None:
        offset = self.draw(step["offset"]).mean if "offset" in step else 0.0
        size = self.sizes.get(step["file"], ZERO).map(lambda values: (values - offset).clip(0))
        self.tally.ops[step["op"]] += times
        self.tally.bytes_read += times * smaller(size, self.draw(step["size"]))

    call_pread_random = call_pread

    def call_write(self, step: Mapping[str, Any], times: float) -> None:
        total, block = self.draw(step["total"]), self.draw(step["block"])
        first = self.draw(step["first"]) if "first" in step else block
        self.tally.ops[step["op"]] += times * pieces(total, first, block)
        self.write(step["file"], times, total.mean)
        name = self.names.get(step["file"])
        if name is not None:
            self.written[name] = self.sizes[step["file"]] = total

    call_append = call_write

    def call_rename(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops["rename"] += times
        self.sizes[step["to"]] = self.sizes.get(step["path"], ZERO)
        names = self.names_of.get(step["to"], math.inf)
        self.space.moved(self.identities.get(step["path"]), self.identities.get(step["to"]), names)
        if step["to"] in self.names:
            self.written[self.names[step["to"]]] = self.sizes[step["to"]]

    def call_pwrite(self, step: Mapping[str, Any], times: float) -> None:
        size = self.draw(step["size"])
        self.tally.ops[step["op"]] += times
        slot = step["file"]
        self.write(slot, times, size.mean)
        if "offset" in step and slot in self.names:  # a file of this transaction grows to there
            end = self.draw(step["offset"]).maximum + size.maximum
            if end > self.left.get(slot, ZERO).maximum:
                self.left[slot] = constant(end)

    def call_pwrite_random(self, step: Mapping[str, Any], times: float) -> None:
        if self.sizes.get(step["file"], ZERO).mean:  # within what is there
            self.rewriting.fits(step["file"], times * self.draw(step["size"]).mean)
        self.call_pwrite(step, times)

    def call_lseek(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops["lseek"] += times
        if step["whence"] == SEEK_END:
            self.space.grows(self.opened_as.get(step["file"]))
            self.rewriting.end(step["file"])
        if step["whence"] == 0:
            self.listed.discard(step["file"])
            at = self.draw(step["offset"]).mean
            whole = self.sizes.get(step["file"], ZERO)
            self.left[step["file"]] = whole.map(lambda values: (values - at).clip(0))

    def call_getdents(self, step: Mapping[str, Any], times: float) -> None:
        entries = self.places.get(step["file"], 1)
        calls = max(1, -(-entries // ENTRIES_PER_GETDENTS))
        self.tally.ops["getdents"] += times * (1 + calls * (step["file"] not in self.listed))
        self.listed.add(step["file"])

    def call_copy_file_range(self, step: Mapping[str, Any], times: float) -> None:
        self.write(step["to"], times, self.transfer(step, times))

    def call_sendfile(self, step: Mapping[str, Any], times: float) -> None:
        self.transfer(step, times)

    def transfer(self, step: Mapping[str, Any], times: float) -> float:
        """Count calls that copy or send what is left of a file; return the bytes of one step."""
        left, size = self.left.get(step["file"], ZERO), self.draw(step["size"])
        moved = left.mean
        if step.get("once"):
            self.tally.ops[step["op"]] += times
            moved = smaller(left, size)
            self.left[step["file"]] = left.map(lambda values: (values - size.mean).clip(0))
        else:
            self.tally.ops[step["op"]] += times * (ratio_up(left, size) + 1)
            self.tally.ends[step["op"]] += times
            self.left[step["file"]] = ZERO
        self.tally.bytes_read += times * moved
        return moved

    def call_mmap_read(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops["mmap_read"] += times
        self.tally.bytes_read += times * self.sizes.get(step["file"], ZERO).mean

    def made(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops[step["op"]] += times
        self.create(step["path"], times)

    call_mkdir = call_symlink = made

    def call_link(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops["link"] += times
        name = self.identities.get(step["path"])
        self.space.shared(name, self.names_of.get(step["to"], math.inf))
        self.space.left(name)

    def create(self, slot: int, times: float) -> None:
        self.tally.created += times
        self.space.made(self.identities.get(slot), times, self.names_of.get(slot, math.inf))

    def write(self, file: int, times: float, size_bytes: float) -> None:
        self.tally.bytes_written += times * size_bytes
        self.rewriting.wrote(file, times * size_bytes)
        self.space.written(self.opened_as.get(file), times, size_bytes)

    def gone(self, step: Mapping[str, Any], times: float) -> None:
        self.tally.ops[step["op"]] += times
        self.tally.removed += times
        self.space.removed(self.identities.get(step["path"]), times)

    call_unlink = call_rmdir = gone
