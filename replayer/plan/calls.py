"""Compiles the steps of a transaction into those of plan format 1."""

import os
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any

from replayer.plan.bindings import (
    check_bounds,
    compile_copy,
    compile_parts,
    compile_place,
    compile_template,
    largest_write,
)
from replayer.plan.scope import Scope
from replayer.plan.traces import replay_step
from replayer.scenario import calls as c
from replayer.scenario import steps as s
from replayer.scenario.document import Key
from replayer.scenario.draws import Draw
from replayer.scenario.flow import APART
from replayer.scenario.places import Place
from replayer.scenario.references import places_of, refuse

OPEN_FLAGS = {
    "rdonly": 0o0, "wronly": 0o1, "rdwr": 0o2, "creat": 0o100, "create": 0o100, "excl": 0o200,
    "noctty": 0o400, "trunc": 0o1000, "append": 0o2000, "nonblock": 0o4000, "dsync": 0o10000,
    "direct": 0o40000, "directory": 0o200000, "nofollow": 0o400000, "noatime": 0o1000000,
    "sync": 0o4010000, "path": 0o10000000,
}  # fmt: skip
"""Of Linux x86-64, from asm-generic/fcntl.h: a plan is the same on every machine."""
DIRECTORY_FLAGS = OPEN_FLAGS["directory"] | OPEN_FLAGS["nonblock"]
"""What opendir(3) and PHP give beside O_RDONLY and O_CLOEXEC."""

CODES: Mapping[str, Mapping[str, int]] = {
    "check": {"exists": os.F_OK, "read": os.R_OK, "write": os.W_OK, "execute": os.X_OK},
    "whence": {"set": 0, "cur": 1, "end": 2},
    "existing": {"replace": 0, "refuse": 1, "exchange": 2},  # renameat2(2)
    "how": {"allocate": 0, "keep_size": 1, "punch_hole": 3, "zero_range": 16},  # fallocate(2)
}
"""What stands for the words of an operand."""
OPERANDS = {
    "check": "mode",
    "existing": "flags",
    "how": "mode",
    "mtime": "mtime_ns",
    "attribute": "name",
}
"""What plan format 1 calls operands that have another name in a scenario."""

PlanStep = dict[str, Any]


def compile_steps(scope: Scope, steps: Sequence[c.StepPart], key: Key) -> list[PlanStep]:
    """Return the plan's steps for a list of a scenario's steps."""
    found: list[PlanStep] = []
    for index, step in enumerate(steps):
        found += _compile_step(scope, step, (*key, index))
    return found


def _compile_step(scope: Scope, step: c.StepPart, key: Key) -> list[PlanStep]:
    inside = (*key, step.do)
    check_bounds(scope.book, step, inside)
    match step:
        case s.Repeat() | s.Choose() | s.Each() | s.Pipeline() | s.Until():
            return [_compile_block(scope, step, inside)]
        case s.For():
            return _unroll(scope, step, inside)
        case s.Script():
            return _play(scope, step, inside)
        case s.Use():
            name = step.sequence
            return compile_steps(scope, scope.book.scenario.sequences[name], ("sequences", name))
        case s.Think() | s.Replay() | s.Signal() | s.Await():
            return [_compile_single(scope, step)]
        case _:
            return _compile_call(scope, step, inside)


def _compile_call(scope: Scope, step: c.StepPart, key: Key) -> list[PlanStep]:
    """Compile a step that binds names and makes calls."""
    if isinstance(step, c.OfTwoPaths) and step.takes_over:
        to = step.to.model_copy(update={"as_": APART})
        call = _compile_call(scope, step.model_copy(update={"to": to}), key)
        return [*call, compile_copy(scope, step.slot, to)]
    binds = [
        bind
        for place_key, place in places_of(step, key)
        for bind in compile_place(scope, step, place, place_key)
    ]
    return [*binds, *_calls(scope, step, key)]


def _compile_single(scope: Scope, step: s.Think | s.Replay | s.Signal | s.Await) -> PlanStep:
    """Compile a step that binds nothing and has no steps inside."""
    if isinstance(step, s.Think):
        return {"do": "think", "time": scope.draw(step.time)}
    if isinstance(step, s.Signal | s.Await):
        return _signal(scope, step)
    number = scope.book.traces.add(scope.book.scenario.traces[step.trace])
    return replay_step(number, step.request, step.pace, step.speed)


def _signal(scope: Scope, step: s.Signal | s.Await) -> PlanStep:
    number = {"do": step.do, "signal": scope.book.signal(step.signal)}
    if isinstance(step, s.Signal):
        return number
    return {**number, "limit": scope.draw(step.limit), "expect": list(step.expect)}


def _until(scope: Scope, step: s.Until, key: Key) -> PlanStep:
    since = None if step.since is None else scope.book.signal(step.since)
    return {
        "do": "until",
        "steps": compile_steps(scope, step.steps, (*key, "steps")),
        "every": scope.draw(step.every),
        "limit": scope.draw(step.limit),
        "since": since,
        "expect": list(step.expect),
    }


def _compile_block(
    scope: Scope, step: s.Repeat | s.Choose | s.Each | s.Pipeline | s.Until, key: Key
) -> PlanStep:
    """Compile a step whose blocks may run any number of times, or not at all."""
    scope.forget()
    compiled: PlanStep
    match step:
        case s.Repeat():
            inner = compile_steps(scope, step.steps, (*key, "steps"))
            compiled = {"do": "repeat", "times": scope.draw(step.times), "steps": inner}
        case s.Choose():
            compiled = {"do": "choose", "branches": _branches(scope, step, key)}
        case s.Each():
            compiled = _each(scope, step, key)
        case s.Pipeline():
            stages = compile_steps(scope, step.stages, key)
            compiled = {"do": "pipeline", "steps": stages, "batches": step.batches[:-1]}
        case s.Until():
            compiled = _until(scope, step, key)
    scope.forget()
    return compiled


def _branches(scope: Scope, step: s.Choose, key: Key) -> list[list[Any]]:
    if not any(branch.weight for branch in step.branches):
        raise refuse(
            scope.book.scenario, key, "is all zero: at least one weight must be more than 0"
        )
    found = []
    for index, branch in enumerate(step.branches):
        scope.forget()
        found.append([branch.weight, compile_steps(scope, branch.steps, (*key, index, "steps"))])
    return found


def _each(scope: Scope, step: s.Each, key: Key) -> PlanStep:
    book = scope.book
    compiled: PlanStep = {
        "do": "each",
        "dataset": book.numbers[step.of],
        "slot": scope.slot(step.as_),
        "reverse": step.reverse,
    }
    for letter, name, steps in (
        ("f", "file", step.file),
        ("d", "directory", step.directory),
        ("l", "link", step.link),
    ):
        scope.forget()
        if letter == "f" and book.stays(step.of):
            scope.sized[step.as_] = step.of
        compiled[letter] = compile_steps(scope, steps, (*key, name))
    return compiled


def _unroll(scope: Scope, step: s.For, key: Key) -> list[PlanStep]:
    found: list[PlanStep] = []
    for index, name in enumerate(step.names):
        found.append(compile_template(scope, step.as_, step.in_, (*key, "names", index), name))
        found += compile_steps(scope, step.steps, (*key, "steps"))
    return found


def _play(scope: Scope, step: s.Script, key: Key) -> list[PlanStep]:
    found: list[PlanStep] = []
    sequences = scope.book.scenario.sequences
    for line in step.lines:
        found.append(compile_template(scope, step.as_, step.in_, key, line.name))
        found += compile_steps(scope, sequences[line.sequence], ("sequences", line.sequence))
    return found


def _calls(scope: Scope, step: c.StepPart, key: Key) -> list[PlanStep]:
    if isinstance(step, c.Bind):
        return []
    if not isinstance(step, c.OfPath | c.OfFile):
        raise TypeError(f"no compiler for the step {step.do}")
    if isinstance(step, c.List):
        return _list(scope, step, key)
    expect = _expect(scope, step, key)
    scope.book.writes(largest_write(scope.book, step))
    return [_call(expect, *_operands(scope, step, key))]


def _expect(scope: Scope, step: c.Timed, key: Key) -> list[str]:
    """Return the allowed outcomes; ``layout`` becomes what the dataset says of the name."""
    if step.expect != ("layout",):
        return list(step.expect)
    slot = step.slot if isinstance(step, c.OfPath) else ""
    if slot not in scope.exists:
        hint = "bind it with in: and a name: without placeholders"
        message = "is layout, but no dataset says whether this name exists"
        raise refuse(scope.book.scenario, (*key, "expect"), message, hint)
    return ["ok"] if scope.exists[slot] else ["ENOENT"]


def _call(expect: list[str], op: str, operands: PlanStep) -> PlanStep:
    return {"do": "call", "op": op, "expect": expect, **operands}


def _list(scope: Scope, step: c.List, key: Key) -> list[PlanStep]:
    if step.file is not None:
        return [_call(list(step.expect), "getdents", {"file": scope.slot(step.file)})]
    slot = scope.slot(step.slot)
    expect = _expect(scope, step, key)
    scope.whole.pop(step.slot, None)
    opening = _call(expect, "open", {"path": slot, "flags": DIRECTORY_FLAGS, "mode": 0})
    if not {"ok", "any"} & set(expect):
        return [opening]  # it is not there, so there is nothing to list
    # Without a descriptor (an allowed failure of open) the two others fail with EBADF.
    after = ["ok"] if expect == ["ok"] else ["ok", "EBADF"]
    return [opening, *(_call(after, op, {"file": slot}) for op in ("getdents", "close"))]


def _operands(scope: Scope, step: c.OfPath | c.OfFile, key: Key) -> tuple[str, PlanStep]:
    """Return the op of a step and its operands: its own fields, in the form of plan format 1."""
    operands = {
        operand: _encode(scope, name, getattr(step, name))
        for name, operand in _own_operands(type(step))
    }
    if isinstance(step, c.OfFile):
        return _of_file(scope, step, {"file": scope.slot(step.file), **operands})
    if isinstance(step, c.OfEither) and step.file is not None:
        op = "futimens" if step.do == "utimens" else f"f{step.do}"
        return op, {"file": scope.slot(step.file), **operands}
    if isinstance(step, c.Open):
        scope.whole[step.slot] = step.slot in scope.sized
        operands["flags"] = reduce(or_, (OPEN_FLAGS[flag] for flag in step.flags), 0)
    if isinstance(step, c.Symlink):
        operands["target"] = _target(scope, step, key)
    return step.do, {"path": scope.slot(step.slot), **operands}


@cache
def _own_operands(kind: type[c.OfPath | c.OfFile]) -> tuple[tuple[str, str], ...]:
    """Return the fields that a kind of steps has of its own, each with its name in a plan."""
    base = c.OfFile if issubclass(kind, c.OfFile) else c.OfEither
    own = [name for name in kind.model_fields if name not in base.model_fields]
    return tuple((name, OPERANDS.get(name, name)) for name in own)


def _encode(scope: Scope, name: str, value: object) -> object:
    match value:
        case Draw():
            return scope.draw(value)
        case Place():
            return scope.slot(value.slot)
        case str() if name in CODES:
            return CODES[name][value]
        case _:
            return value


def _target(scope: Scope, step: c.Symlink, key: Key) -> object:
    if step.target is None:
        return None
    parts = compile_parts(scope, step.target)
    depth = (step.name or "").count("/") + 1  # the dataset's directory is one level below the run's
    for part in step.target.split("/"):
        depth += -1 if part == ".." else 1
        if step.name is not None and depth < 0:
            message = f"({step.target}) leads out of the run's folder"
            raise refuse(scope.book.scenario, (*key, "target"), message)
    return parts[0] if parts == [step.target] else {"parts": parts}


def _of_file(scope: Scope, step: c.OfFile, operands: PlanStep) -> tuple[str, PlanStep]:
    """Return the op of a call on an open file, and the operands that this op has."""
    op = step.do
    match step:
        case c.Read():
            to_end = step.until == "end"
            known = scope.whole.pop(step.file, False)
            checked = to_end and (known or step.length == "entry")
            operands = {**_less(operands, "until", "length"), "until_end": to_end}
            operands["check_size"] = checked
        case c.Write():
            operands = _less(operands, "size", *(["first"] if step.first is None else []))
            operands["total"] = scope.draw(step.size)
        case c.AtOffset():
            is_random = step.offset == "random"
            op = f"{op}_random" if is_random else op
            operands = _less(operands, "offset" if is_random else "align")
        case c.Lseek() if step.whence != "cur" or step.offset.const != 0:
            scope.whole.pop(step.file, None)
        case c.Flock() | c.Lock():
            op, operands = _lock(step, operands)
        case c.CopyRange() | c.Sendfile():
            op, operands = _transfer(scope, step, operands)
        case _:
            pass
    return op, operands


def _less(operands: PlanStep, *names: str) -> PlanStep:
    return {name: value for name, value in operands.items() if name not in names}


def _lock(step: c.Flock | c.Lock, operands: PlanStep) -> tuple[str, PlanStep]:
    if step.kind == "unlock":
        op = "flock_unlock" if isinstance(step, c.Flock) else "fcntl_unlock"
        return op, _less(operands, "kind", "wait")
    return ("flock" if isinstance(step, c.Flock) else "fcntl_lock"), operands


def _transfer(
    scope: Scope, step: c.CopyRange | c.Sendfile, operands: PlanStep
) -> tuple[str, PlanStep]:
    scope.whole.pop(step.file, None)
    once = {"once": True} if step.until == "once" else {}
    operands = {**_less(operands, "until"), **once}
    if isinstance(step, c.Sendfile):
        return "sendfile", operands
    return "copy_file_range", {**operands, "to": scope.slot(step.to)}
