"""Compiles the steps of a transaction into those of plan format 1."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from replayer.plan.bindings import (
    compile_copy,
    compile_parts,
    compile_place,
    compile_template,
    refuse,
)
from replayer.plan.bounds import check_bounds, largest_write
from replayer.plan.scope import Scope
from replayer.plan.traces import replay_step
from replayer.scenario import steps as s
from replayer.scenario.document import Key
from replayer.scenario.flow import APART
from replayer.scenario.references import places_of

OPEN_FLAGS: Mapping[str, int] = {
    # Linux x86-64, from asm-generic/fcntl.h
    "rdonly": 0o0,
    "wronly": 0o1,
    "rdwr": 0o2,
    "creat": 0o100,
    "create": 0o100,
    "excl": 0o200,
    "noctty": 0o400,
    "trunc": 0o1000,
    "append": 0o2000,
    "nonblock": 0o4000,
    "dsync": 0o10000,
    "direct": 0o40000,
    "directory": 0o200000,
    "nofollow": 0o400000,
    "noatime": 0o1000000,
    "sync": 0o4010000,
    "path": 0o10000000,
}
DIRECTORY_FLAGS = OPEN_FLAGS["directory"] | OPEN_FLAGS["nonblock"]
"""What opendir(3) and PHP give beside O_RDONLY and O_CLOEXEC."""

ACCESS = {"exists": os.F_OK, "read": os.R_OK, "write": os.W_OK, "execute": os.X_OK}
WHENCE = {"set": 0, "cur": 1, "end": 2}
RENAME = {"replace": 0, "refuse": 1, "exchange": 2}  # renameat2(2)
FALLOCATE = {"allocate": 0, "keep_size": 1, "punch_hole": 3, "zero_range": 16}  # fallocate(2)

PlanStep = dict[str, Any]


def compile_steps(scope: Scope, steps: Sequence[s.StepPart], key: Key) -> list[PlanStep]:
    """Return the plan's steps for a list of a scenario's steps."""
    found: list[PlanStep] = []
    for index, step in enumerate(steps):
        found += _compile_step(scope, step, (*key, index))
    return found


def _compile_step(scope: Scope, step: s.StepPart, key: Key) -> list[PlanStep]:
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


def _compile_call(scope: Scope, step: s.StepPart, key: Key) -> list[PlanStep]:
    """Compile a step that binds names and makes calls."""
    if isinstance(step, s.OfTwoPaths) and step.takes_over:
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
        raise refuse(scope.book, key, "is all zero: at least one weight must be more than 0")
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
        name_key = (*key, "names", index)
        found.append(compile_template(scope, step.as_, step.in_, name_key, name))
        found += compile_steps(scope, step.steps, (*key, "steps"))
    return found


def _play(scope: Scope, step: s.Script, key: Key) -> list[PlanStep]:
    found: list[PlanStep] = []
    sequences = scope.book.scenario.sequences
    for line in step.lines:
        found.append(compile_template(scope, step.as_, step.in_, key, line.name))
        found += compile_steps(scope, sequences[line.sequence], ("sequences", line.sequence))
    return found


def _calls(scope: Scope, step: s.StepPart, key: Key) -> list[PlanStep]:
    if isinstance(step, s.Bind):
        return []
    if not isinstance(step, s.Timed):
        message = f"no compiler for the step {step.do}"
        raise TypeError(message)
    if isinstance(step, s.List):
        return _list(scope, step, key)
    expect = _expect(scope, step, key)
    scope.book.writes(largest_write(scope.book, step))
    op, operands = _operands(scope, step, key)
    return [_call(expect, op, operands)]


def _expect(scope: Scope, step: s.Timed, key: Key) -> list[str]:
    """Return the allowed outcomes; ``layout`` becomes what the dataset says of the name."""
    if step.expect != ("layout",):
        return list(step.expect)
    slot = step.slot if isinstance(step, s.OfPath) else ""
    if slot not in scope.exists:
        hint = "bind it with in: and a name: without placeholders"
        message = "is layout, but nothing says whether the dataset holds this name"
        raise refuse(scope.book, (*key, "expect"), message, hint)
    return ["ok"] if scope.exists[slot] else ["ENOENT"]


def _call(expect: list[str], op: str, operands: PlanStep) -> PlanStep:
    return {"do": "call", "op": op, "expect": expect, **operands}


def _list(scope: Scope, step: s.List, key: Key) -> list[PlanStep]:
    if step.file is not None:
        return [_call(list(step.expect), "getdents", {"file": scope.slot(step.file)})]
    slot = scope.slot(step.slot)
    expect = _expect(scope, step, key)
    scope.whole.pop(step.slot, None)
    opening = {"path": slot, "flags": DIRECTORY_FLAGS, "mode": 0}
    found = [_call(expect, "open", opening)]
    if not {"ok", "any"} & set(expect):
        return found  # it is not there, so there is nothing to list
    # Without a descriptor (an allowed failure of open) the two others fail with EBADF.
    after = ["ok"] if expect == ["ok"] else ["ok", "EBADF"]
    rest: list[PlanStep] = [
        {"do": "call", "op": op, "expect": after, "file": slot} for op in ("getdents", "close")
    ]
    return [*found, *rest]


def _operands(scope: Scope, step: s.Timed, key: Key) -> tuple[str, PlanStep]:
    """Return the op of a step and its operands."""
    match step:
        case s.OfEither():
            return _either(scope, step)
        case s.OfPath():
            return step.do, {"path": scope.slot(step.slot), **_of_path(scope, step, key)}
        case s.OfFile():
            file = {"file": scope.slot(step.file)}
            name, more = FILE_CALLS.get(type(step), _plain)(scope, step)
            return name, {**file, **more}
        case _:
            message = f"no compiler for the step {step.do}"
            raise TypeError(message)


def _either(scope: Scope, step: s.OfEither) -> tuple[str, PlanStep]:
    operands: PlanStep = {}
    match step:
        case s.Truncate():
            operands["size"] = scope.draw(step.size)
        case s.Chmod():
            operands["mode"] = step.mode
        case s.Chown():
            operands.update(uid=step.uid, gid=step.gid)
        case s.Utimens():
            operands["mtime_ns"] = None if step.mtime is None else scope.draw(step.mtime)
        case _:
            pass
    if step.file is None:
        return step.do, {"path": scope.slot(step.slot), **operands}
    return {"utimens": "futimens"}.get(step.do, f"f{step.do}"), {
        "file": scope.slot(step.file),
        **operands,
    }


def _of_path(scope: Scope, step: s.OfPath, key: Key) -> PlanStep:
    match step:
        case s.Open():
            return _open(scope, step)
        case s.Symlink():
            return {"target": _target(scope, step, key)}
        case s.Rename():
            return {"to": scope.slot(step.to.slot), "flags": RENAME[step.existing]}
        case s.Setxattr():
            return {"name": step.attribute, "size": scope.draw(step.size)}
        case _:
            return _plain_path(scope, step)


def _plain_path(scope: Scope, step: s.OfPath) -> PlanStep:
    match step:
        case s.Access():
            return {"mode": ACCESS[step.check]}
        case s.Mkdir():
            return {"mode": step.mode}
        case s.Link():
            return {"to": scope.slot(step.to.slot)}
        case s.Getxattr() | s.Removexattr():
            return {"name": step.attribute}
        case _:
            return {}


def _open(scope: Scope, step: s.Open) -> PlanStep:
    flags = 0
    for flag in step.flags:
        flags |= OPEN_FLAGS[flag]
    scope.whole[step.slot] = step.slot in scope.sized
    return {"flags": flags, "mode": step.mode}


def _target(scope: Scope, step: s.Symlink, key: Key) -> object:
    if step.target is None:
        return None
    parts = compile_parts(scope, step.target)
    depth = (step.name or "").count("/") + 1  # the dataset's directory is one level below the run's
    for part in step.target.split("/"):
        depth += -1 if part == ".." else 1
        if step.name is not None and depth < 0:
            message = f"({step.target}) leads out of the run's folder"
            raise refuse(scope.book, (*key, "target"), message)
    return parts[0] if parts == [step.target] else {"parts": parts}


def _plain(_scope: Scope, step: Any) -> tuple[str, PlanStep]:  # noqa: ANN401 - any file step
    return step.do, {}


def _read(scope: Scope, step: s.Read) -> tuple[str, PlanStep]:
    to_end = step.until == "end"
    known = scope.whole.pop(step.file, False)
    checked = to_end and (known or step.length == "entry")
    operands = {"size": scope.draw(step.size), "until_end": to_end, "check_size": checked}
    return "read", operands


def _write(scope: Scope, step: s.Write | s.Append) -> tuple[str, PlanStep]:
    first = {} if step.first is None else {"first": scope.draw(step.first)}
    return step.do, {"total": scope.draw(step.size), **first, "block": scope.draw(step.block)}


def _at(scope: Scope, step: s.Pread | s.Pwrite) -> tuple[str, PlanStep]:
    size = {"size": scope.draw(step.size)}
    if isinstance(step.offset, str):
        return f"{step.do}_random", {**size, "align": step.align}
    return step.do, {**size, "offset": scope.draw(step.offset)}


def _lseek(scope: Scope, step: s.Lseek) -> tuple[str, PlanStep]:
    asks_only = step.whence == "cur" and step.offset.const == 0
    if not asks_only:
        scope.whole.pop(step.file, None)
    return "lseek", {"offset": scope.draw(step.offset), "whence": WHENCE[step.whence]}


def _fallocate(scope: Scope, step: s.Fallocate) -> tuple[str, PlanStep]:
    operands = {"offset": scope.draw(step.offset), "size": scope.draw(step.size)}
    return "fallocate", {**operands, "mode": FALLOCATE[step.how]}


def _flock(_scope: Scope, step: s.Flock) -> tuple[str, PlanStep]:
    free = step.kind == "unlock"
    return ("flock_unlock", {}) if free else ("flock", {"kind": step.kind, "wait": step.wait})


def _lock(scope: Scope, step: s.Lock) -> tuple[str, PlanStep]:
    span = {"offset": scope.draw(step.offset), "size": scope.draw(step.size)}
    if step.kind == "unlock":
        return "fcntl_unlock", span
    return "fcntl_lock", {"kind": step.kind, "wait": step.wait, **span}


def _copy_range(scope: Scope, step: s.CopyRange) -> tuple[str, PlanStep]:
    scope.whole.pop(step.file, None)
    operands = {"to": scope.slot(step.to), "size": scope.draw(step.size), **_once(step)}
    return "copy_file_range", operands


def _sendfile(scope: Scope, step: s.Sendfile) -> tuple[str, PlanStep]:
    scope.whole.pop(step.file, None)
    return "sendfile", {"size": scope.draw(step.size), **_once(step)}


def _once(step: s.CopyRange | s.Sendfile) -> PlanStep:
    return {"once": True} if step.until == "once" else {}


FILE_CALLS: Mapping[type, Callable[[Scope, Any], tuple[str, PlanStep]]] = {
    s.Read: _read,
    s.Write: _write,
    s.Append: _write,
    s.Pread: _at,
    s.Pwrite: _at,
    s.Lseek: _lseek,
    s.Fallocate: _fallocate,
    s.Flock: _flock,
    s.Lock: _lock,
    s.CopyRange: _copy_range,
    s.Sendfile: _sendfile,
}
